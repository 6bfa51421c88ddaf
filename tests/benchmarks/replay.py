"""How well replays explain the reference traces: `python tests/benchmarks/replay.py [FOLDER]`.

Unchanged, a replay gives the record. What counts is how much of the window rests on delays for which the file holds no
reason: the deviation. Savings are not stated where it is above 5 %.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

from analyze.report import build_report
from analyze.trace import Trace

SHARED = Path(os.environ.get("GPULEDGER_SHARED", Path(__file__).parents[3] / "shared"))


def main(folder: Path) -> None:
    """Print the table."""
    print(f"{'trace':<42} {'window':>12} {'deviation':>9}  records")
    complete = []
    for path in sorted(folder.glob("*.json*")):
        if path.name == "ledger.json":
            continue
        report = build_report(Trace.load(path))
        savings = report.measures.savings
        if not savings.window_ns:
            continue
        doubted = any(finding.id == "incomplete-records" for finding in report.diagnosis.findings)
        if not doubted:
            complete.append(savings.deviation)
        state = "in doubt: no idle advice" if doubted else "complete"
        print(f"{path.name:<42} {savings.window_ns / 1e6:>9.2f} ms {100 * savings.deviation:>8.2f}%  {state}")
    print(f"median where records are complete: {100 * statistics.median(complete):.2f}% of {len(complete)} traces")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED / "traces")
