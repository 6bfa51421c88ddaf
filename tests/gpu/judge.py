"""What a GPU session brought back, held against analyze: ``python -m tests.gpu.judge OUT``. Needs no GPU.

1. The peak that analyze replays from each snapshot against the allocator's own (memory_stats).
2. torch's key_averages() against analyze's table of ops, in counts and times.
3. Planted faults against the findings that must name them.
4. Measured pairs against what the replay predicted from the eager trace: the error of each prediction.

Ends with 1 where one of the first three does not hold, or nothing could be compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from analyze import Report, Snapshot, Trace, build_report
from analyze.snapshot import measure_snapshot

BATCHES = (8, 64)
PREDICTED_BY = {
    "compile": "fusible-chain",
    "cuda_graph": "launch-bound",
    "fp16": "fp32-gemm",
    "channels_last": "layout",
}
PLANTED = {"item_loop": ("sync-stall", "iteration-sync"), "cpu_sleep": ("input-wait",)}
_NS_PER_US = 1000
_ROUNDING = 0.001  # key_averages has microseconds


class Line(NamedTuple):
    """One comparison; `holds` is None where it is a figure rather than a check."""

    holds: bool | None
    text: str


def judge(out: Path) -> list[Line]:
    """All comparisons that the recordings allow."""
    folder = out / "recordings" if (out / "recordings").is_dir() else out
    lines: list[Line] = []
    reports: dict[str, Report] = {}
    for run in sorted(path.parent for path in folder.glob("*/run.json")):
        if (run / "trace.json.gz").is_file():
            reports[run.name] = build_report(Trace.load(run / "trace.json.gz"))
        lines += _peaks(run)
        if run.name in reports:
            lines += _averages(run, reports[run.name])
    lines += _planted(reports)
    lines += _pairs(folder, reports)
    return lines


def _peaks(run: Path) -> Iterator[Line]:
    stats = run / "snapshot_memory_stats.json"
    if not stats.is_file() or not (run / "snapshot.pickle").is_file():
        return
    told = json.loads(stats.read_text())["requested_bytes.all.peak"]
    devices = measure_snapshot(Snapshot.load(run / "snapshot.pickle"))[0]
    replayed = max((device.requested_peak_bytes for device in devices), default=0)
    yield Line(replayed == told, f"{run.name}: peak {replayed:,} bytes replayed, {told:,} by the allocator")


def _averages(run: Path, report: Report) -> Iterator[Line]:
    path = run / "key_averages.json"
    if not path.is_file():
        return
    ops = {op.name: op for op in report.measures.ops.ops if op.kind in ("op", "range")}
    compared, wrong = 0, []
    for row in json.loads(path.read_text()):
        op = ops.get(row["key"])
        if op is None or not row["device_type"].endswith("CPU") or row["is_user_annotation"]:
            continue
        compared += 1
        pairs: list[tuple[Any, Any]] = [
            (op.self_cpu_ns, row["self_cpu_time_total"] * _NS_PER_US),
            (op.self_device_ns, (row["self_device_time_total"] or 0) * _NS_PER_US),
        ]
        if op.calls != row["count"] or any(
            abs(ours - theirs) > max(_ROUNDING * abs(theirs), 1) for ours, theirs in pairs
        ):
            wrong.append(row["key"])
    shown = f"; differ: {', '.join(wrong[:5])}" if wrong else ""
    yield Line(compared > 0 and not wrong, f"{run.name}: {compared} keys of key_averages() equal{shown}")


def _planted(reports: dict[str, Report]) -> Iterator[Line]:
    for name, wanted in PLANTED.items():
        report = reports.get(name)
        if report is not None and report.trace.device_names:
            found = [finding.id for finding in report.findings]
            yield Line(bool(set(found) & set(wanted)), f"{name}: findings {', '.join(found) or 'none'}")


def _pairs(folder: Path, reports: dict[str, Report]) -> Iterator[Line]:
    for batch in BATCHES:
        eager = _latency_ns(folder / f"eager_b{batch}")
        report = reports.get(f"eager_b{batch}")
        if eager is None or report is None:
            continue
        for variant, rule in PREDICTED_BY.items():
            measured = _latency_ns(folder / f"{variant}_b{batch}")
            if measured is None:
                continue
            saving = next((one.saving for one in report.findings if one.id == rule), None)
            predicted = eager * (1 - (saving.share if saving else 0.0))
            bound = " (an upper bound of the saving)" if saving and saving.bound else "" if saving else " (no finding)"
            yield Line(
                None,
                f"batch {batch}, {variant}: {eager / 1e6:.3f} ms eager, {predicted / 1e6:.3f} ms predicted{bound}, "
                f"{measured / 1e6:.3f} ms measured: error {predicted / measured - 1:+.1%}",
            )


def _latency_ns(run: Path) -> int | None:
    path = run / "run.json"
    return int(json.loads(path.read_text())["latency"]["p50_ns"]) if path.is_file() else None


def main() -> None:
    """Print every comparison, and end with 0 or 1."""
    lines = judge(Path(sys.argv[1]))
    for line in lines:
        print({True: "ok     ", False: "FAILED ", None: "       "}[line.holds] + line.text)
    checks = [line.holds for line in lines if line.holds is not None]
    print(f"{sum(checks)} of {len(checks)} checks hold")
    sys.exit(0 if checks and all(checks) else 1)


if __name__ == "__main__":
    main()
