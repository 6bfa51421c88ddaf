"""How long the join of fabricated summaries takes, and how much memory: `python tests/benchmarks/ranks_join.py`.

    python tests/benchmarks/ranks_join.py [RANKS ...] [--events 2000]

Each size runs in a process of its own over a store that is written first and not counted. Half of the collectives are
of tensor-parallel groups of 8 ranks, half of data-parallel groups of all ranks with one place in theirs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from analyze import schema
from analyze.ranks.store import Store
from analyze.ranks.summary import FileInfo, Summary
from analyze.ranks.tables import EVENTS, GROUPS, PARTS, STRETCHES

TP = 8


def fabricate(store: Store, ranks: int, events: int) -> None:
    """Write the summaries of a job."""
    draw = np.random.default_rng(0)
    begin = np.arange(events, dtype=np.int64) * 500_000
    for rank in range(ranks):
        start = begin + draw.integers(0, 100_000, events)
        end = begin + 250_000 + draw.integers(0, 800, events)
        sides = np.arange(events) % 2
        frame = pl.DataFrame(
            {
                "event": np.arange(events), "group": sides, "seq": np.arange(events) // 2, "kind": "all_reduce",
                "kind_from": "args", "source": None, "target": None, "in_elements": 1 << 20, "out_elements": 1 << 20,
                "element_type": "BFloat16", "stream": 20 + sides, "start_ns": start, "end_ns": end,
                "computes_at_end": False,
            }
        ).cast(schema.dtypes(EVENTS))  # fmt: skip
        first = rank // TP * TP
        groups = pl.DataFrame(
            [
                (0, f"tp{rank // TP}", "mesh_tp", TP, list(range(first, min(first + TP, ranks))), None),
                (1, f"dp{rank % TP}", "mesh_dp", ranks // TP, list(range(rank % TP, ranks, TP)), None),
            ],
            schema=schema.dtypes(GROUPS),
            orient="row",
        )
        stretches = pl.DataFrame({"start_ns": start, "end_ns": end, "owner": 1}).cast(schema.dtypes(STRETCHES))
        info = FileInfo(
            path=f"rank{rank}.json", key=f"{rank:064x}"[::-1], size_bytes=1, modified_ns=0, rank=rank,
            rank_from="distributedInfo", world=str(ranks), window_start_ns=int(start[0]), window_end_ns=int(end[-1]),
            exposed_communication_ns=int((end - start).sum()), communication_ns=int((end - start).sum()),
            idle_ns=int(end[-1] - start[0] - (end - start).sum()),
        )  # fmt: skip
        frames = {name: schema.empty(columns) for name, columns in PARTS.items()}
        store.put(Summary(info, {**frames, "event": frame, "group": groups, "stretch": stretches}))


def join(folder: str) -> None:
    """Join a store, and print the wall time in s and the peak memory in MB."""
    from analyze.ranks import Job, from_store

    begun = time.perf_counter()
    job = Job.of("fabricated", from_store(folder))
    assert job.joined is not None
    assert job.stragglers
    assert job.waits.height
    wall = time.perf_counter() - begun
    print(json.dumps([wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000]))


def main() -> None:
    """Fabricate, join, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ranks", nargs="*", type=int, default=[200, 2000])
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--join", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.join:
        join(options.join)
        return
    print("ranks x events | rows | wall | peak memory")
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            fabricate(Store(folder), ranks, options.events)
            command = [sys.executable, str(Path(__file__)), "--join", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        wall, mb = json.loads(done.stdout)
        rows = ranks * options.events / 1e6
        print(f"{ranks:,} x {options.events:,} | {rows:.1f} M | {wall:.1f} s | {mb:,.0f} MB", flush=True)


if __name__ == "__main__":
    main()
