"""The same job by HolisticTraceAnalysis, for the ratio: temporal, kernel and idle time breakdown of one rank.

python -m venv hta && hta/bin/pip install HolisticTraceAnalysis
python tests/benchmarks/peer_hta.py TRACE --peer hta/bin/python [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_CPU = "import json, resource; u = resource.getrusage(resource.RUSAGE_SELF); print(json.dumps(u.ru_utime + u.ru_stime))"
_OURS = """
import sys
from analyze.report import build_report, render
from analyze.trace import Trace
report = build_report(Trace.load(sys.argv[1], jobs=1))
render(report, "json")
"""
_THEIRS = """
import sys, logging
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_files={0: sys.argv[1]})
t.get_temporal_breakdown(visualize=False)
t.get_gpu_kernel_breakdown(visualize=False)
t.get_idle_time_breakdown(ranks=[0], visualize=False)
t.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
t.get_queue_length_summary(ranks=[0])
t.get_comm_comp_overlap(visualize=False)
"""


def cpu(python: str, code: str, trace: Path) -> float:
    """CPU seconds of a fresh process, imports included."""
    done = subprocess.run([python, "-c", code + _CPU, str(trace)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--peer", required=True, help="Python with HolisticTraceAnalysis")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / given.trace.name  # the peer writes beside its input
        shutil.copy(given.trace, trace)
        ours, theirs = [], []
        for _ in range(given.rounds):
            ours.append(cpu(sys.executable, _OURS, trace))
            theirs.append(cpu(given.peer, _THEIRS, trace))
    print(f"{given.trace.name}: {min(ours):.2f} s against {min(theirs):.2f} s of CPU, {min(theirs) / min(ours):.1f}x")


if __name__ == "__main__":
    main()
