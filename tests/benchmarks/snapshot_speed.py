"""How long a memory snapshot of a million events takes, against loading it alone.

`python -m tests.benchmarks.snapshot_speed [EVENTS]` makes the snapshot with the simulator and measures, in processes
of their own: the unpickler that denies all imports, alone; and the whole report. Prints both, their ratio and memory.
"""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.synthetic.allocator import KIB, MIB, Allocator, Piece, snapshot

_DEPTH = 30
_STACKS = 4000


def make(events: int, path: Path, seed: int = 1) -> None:
    """A training-like program: stacks of thirty frames, many shared, some blocks that stay."""
    random.seed(seed)
    frames = [
        {"name": f"function_{i}", "filename": f"/home/ann/project/module_{i % 40}.py", "line": i} for i in range(700)
    ]
    stacks = [[random.choice(frames) for _ in range(_DEPTH)] for _ in range(_STACKS)]
    allocator, live = Allocator(), list[Piece]()
    while len(allocator.events) < events:
        if random.random() < (0.7 if len(live) < 300 else 0.35):
            size = random.choice((700, 4 * KIB, 200 * KIB, 3 * MIB, 12 * MIB))
            piece = allocator.allocate(size, random.choice(stacks))
            live += [piece] if piece else []
        elif live:
            allocator.free(live.pop(random.randrange(len(live))))
        if len(allocator.events) % 20_000 == 0:
            allocator.annotate("ProfilerStep#1", start=True)
    path.write_bytes(pickle.dumps(snapshot(allocator), protocol=4))


_LOAD = """
import io, sys, time, pickle
from analyze.snapshot.read import DenyingUnpickler
data = open(sys.argv[1], "rb").read()
begun = time.perf_counter()
kept = DenyingUnpickler(io.BytesIO(data)).load()
print(time.perf_counter() - begun)
"""
_REPORT = """
import sys, time
from analyze.report.snapshot import build_snapshot_report
from analyze.report.files import render
from analyze.snapshot import Snapshot
begun = time.perf_counter()
report = build_snapshot_report(Snapshot.load(sys.argv[1]))
text = render(report, "terminal") + render(report, "json")
print(time.perf_counter() - begun)
"""


def _run(code: str, path: Path) -> tuple[float, int]:
    """Seconds that the code printed, and the process's largest memory in KiB."""
    wrapped = code + "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", wrapped, str(path)], capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


def measure(events: int) -> dict[str, Any]:
    """Both times in seconds, their ratio, sizes in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.pickle"
        begun = time.perf_counter()
        make(events, path)
        made = time.perf_counter() - begun
        load_s, load_kib = _run(_LOAD, path)
        report_s, report_kib = _run(_REPORT, path)
        return {
            "events": events,
            "file_mib": round(path.stat().st_size / MIB, 1),
            "made_s": round(made, 1),
            "load_s": round(load_s, 2),
            "load_mib": load_kib >> 10,
            "report_s": round(report_s, 2),
            "report_mib": report_kib >> 10,
            "ratio": round(report_s / load_s, 2),
        }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000), indent=1))
