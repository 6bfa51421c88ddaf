"""What a job costs beside its files one by one: `python tests/benchmarks/ranks_engine.py [TRACE ...] [--files 64]`.

Of each trace, CPU time in processes of their own, best of three: loading it, its whole report, and what a worker of
a job does with it (summary and store). Then a folder of files of 1 MB: wall time of one `analyze FOLDER` with two
workers, of one `analyze FILE` per file, and the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3
SIZE = 1_000_000
_CODE = {
    "load": "from analyze.trace import Trace; Trace.load(path, jobs=1).activities",
    "report": (
        "from analyze.trace import Trace; from analyze.report import build_report; "
        "build_report(Trace.load(path, jobs=1))"
    ),
    "worker": (
        "from analyze.ranks.engine import work; from analyze.ranks.files import candidates; "
        "assert work(candidates([path])[0], store)[1] is None"
    ),
}  # fmt: skip
_BEFORE = "import gc, sys, time; gc.disable(); path, store = sys.argv[1:3]; "
_IMPORTS = "import analyze.report, analyze.ranks.engine, analyze.ranks.files; begun = time.process_time(); "
_AFTER = "; print(time.process_time() - begun)"


def cpu_s(what: str, path: str) -> float:
    """Least CPU time of some rounds, imports left out."""
    found = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as store:
            command = [sys.executable, "-c", _BEFORE + _IMPORTS + _CODE[what] + _AFTER, path, store]
            found.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return min(found)


def fabricate(folder: Path, files: int) -> None:
    """Files of 1 MB of one job: GEMMs with their launches, and an all-reduce after each tenth."""
    draw = random.Random(0)
    said = {
        "Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "BFloat16",
        "Group size": files, "Process Group Name": "0", "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(files))),
    }  # fmt: skip
    for rank in range(files):
        rows, size, at, now = [], 0, 0, 1_000_000.0
        while size < SIZE:
            at += 1
            collective = at % 10 == 0
            start = now + (draw.random() * 20 if collective else 2)
            end = now + (60 if collective else 30)
            name = (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)" if collective else "sgemm"
            )
            args = {"device": 0, "stream": 20 if collective else 7, "correlation": at, "External id": at}
            made = [
                {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": start - 12, "dur": 6.0,
                 "args": {"External id": at}},
                {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start - 10,
                 "dur": 3.0, "args": {"correlation": at}},
                {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": args["stream"], "ts": start,
                 "dur": end - start, "args": args | ({**said, "Seq": at} if collective else {})},
            ]  # fmt: skip
            rows += made
            size += len(json.dumps(made))
            now = end
        info = {"backend": "nccl", "rank": rank, "world_size": files, "pg_config": []}
        document = {"schemaVersion": 1, "distributedInfo": info, "traceEvents": rows}
        (folder / f"rank{rank}.json").write_text(json.dumps(document))


def wall_s(*args: str) -> float:
    """Wall time of one run of the program; a cache of its own, so that nothing is there from before."""
    with tempfile.TemporaryDirectory() as cache:
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "analyze", *args, "--report", "md"],
            env={**os.environ, "XDG_CACHE_HOME": cache}, stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        return time.perf_counter() - begun


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--files", type=int, default=64)
    options = parser.parse_args()
    if options.traces:
        print("trace | load | report | worker | worker / report")
    for path in options.traces:
        load, report, worker = (cpu_s(what, path) for what in ("load", "report", "worker"))
        print(f"{Path(path).name} | {load:.2f} s | {report:.2f} s | {worker:.2f} s | {worker / report:.2f}", flush=True)
    if options.files:
        with tempfile.TemporaryDirectory() as place:
            fabricate(Path(place), options.files)
            job = wall_s(place, "--workers", "2")
            alone = sum(wall_s(str(path)) for path in sorted(Path(place).iterdir()))
        print(f"{options.files} files of 1 MB | one job {job:.1f} s | one by one {alone:.1f} s | {job / alone:.2f}")


if __name__ == "__main__":
    main()
