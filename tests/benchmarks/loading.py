"""How fast and how lean a trace is read, against `orjson.loads` of the same bytes: one table of ratios.

    python -m tests.benchmarks.loading TRACE [TRACE ...] [--big MEGABYTES ...] [--rounds 5]

Every figure is CPU time (user and system, children included) of a fresh process, in rounds that alternate with the
baseline; the best of the rounds counts. `orjson.loads` runs with Python's default garbage collection. With --big the
first trace is replicated to that size in a temporary folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.big_trace import replicate

_MEASURE = """
import json, os, resource, sys, time
path = sys.argv[1]
{imports}
def cpu():
    return sum(resource.getrusage(who)[k] for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for k in (0, 1))
def peak_kib():
    # Not ru_maxrss: a child begins with that of the process that started it.
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
base, begun, wall = peak_kib(), cpu(), time.perf_counter()
{work}
print(json.dumps([cpu() - begun, time.perf_counter() - wall, peak_kib() - base]))
"""
_JOBS = {
    "orjson.loads": ("import orjson; data = open(path, 'rb').read()", "orjson.loads(data)"),
    "load": ("from analyze.trace.read import read", "read(path, jobs=1)"),
    "load + analyse + report": (
        "from analyze.trace import Trace; from analyze.report import build_report, render; "
        "import analyze.report.build, analyze.report.files",
        "report = build_report(Trace.load(path, jobs=1)); render(report, 'json'); render(report, 'md')",
    ),
}


def measure(job: str, path: Path) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and growth of the peak memory in KiB of one job in a fresh process."""
    imports, work = _JOBS[job]
    code = _MEASURE.format(imports=imports, work=work)
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    cpu, wall, kib = json.loads(done.stdout)
    return cpu, wall, kib


def whole_process(*command: str) -> float:
    """Wall seconds of a command."""
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def compare(path: Path, rounds: int) -> None:
    """Print the rows of one file."""
    found: dict[str, list[tuple[float, float, int]]] = {job: [] for job in _JOBS}
    walls: dict[str, list[float]] = {"orjson.loads": [], "analyze": []}
    baseline = "import sys, orjson; orjson.loads(open(sys.argv[1], 'rb').read())"
    for _ in range(rounds):
        for job, results in found.items():
            results.append(measure(job, path))
        walls["orjson.loads"].append(whole_process(sys.executable, "-c", baseline, str(path)))
        walls["analyze"].append(whole_process(sys.executable, "-m", "analyze", str(path), "--report", "md"))
    megabytes = path.stat().st_size / 1e6
    least = min(cpu for cpu, _, _ in found["orjson.loads"])
    for job, results in found.items():
        cpu, memory = min(cpu for cpu, _, _ in results), min(kib for _, _, kib in results) * 1.024e-3 / megabytes
        print(f"| {path.name} | {megabytes:,.0f} | {job} | {cpu:.2f} | {cpu / least:.2f} | {memory:.2f} |")
    wall = min(walls["analyze"])
    ratio = wall / min(walls["orjson.loads"])
    print(f"| {path.name} | {megabytes:,.0f} | whole process, wall | {wall:.2f} | {ratio:.2f} | |")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--big", type=int, nargs="*", default=[], metavar="MEGABYTES")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(f"{time.strftime('%Y-%m-%d')}, {machine}, {given.rounds} rounds\n")
    print("| file | MB | job | s, best | of orjson.loads | memory, MB per MB |\n|:--|--:|:--|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for trace in given.traces:
            plain = Path(folder) / trace.name.removesuffix(".gz")
            plain.write_bytes(gzip.decompress(trace.read_bytes()) if trace.suffix == ".gz" else trace.read_bytes())
            compare(plain, given.rounds)
            plain.unlink()
        for megabytes in given.big:
            large = Path(folder) / f"replicated-{megabytes}.json"
            replicate(given.traces[0], large, megabytes)
            compare(large, max(given.rounds // 2, 1))
            large.unlink()


if __name__ == "__main__":
    main()
