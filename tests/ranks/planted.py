"""A job of 16 ranks on two hosts with planted faults: one slow rank, and one that is late once.

A simulation of streams and collectives, drawn anew from each seed; it shares no code with the analysis.

    python -m tests.ranks.planted FOLDER [SEED]     write one
    python -m tests.ranks.planted --check 20        draw twenty, analyse them, and print what was found
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RANKS, STEPS, LAYERS = 16, 4, 8
GEMM_NS, TP_NS, DP_NS = 780_000, 60_000, 600_000
SLOW, ONCE_NS, HOST_NS = 1.12, 1_500_000, 2_000
BYSTANDER, CLOCK_NS = 0.10, 1_000  # own lateness of anybody else, of that of the planted ranks; error of clocks


@dataclass(frozen=True)
class Planted:
    """What was planted.

    Attributes:
        slow: rank whose kernels take 12 % longer.
        once: rank whose host pauses once, on another tensor-parallel pair.
        offset_ns: how far the clock of ranks 8 to 15 is ahead.
    """

    slow: int
    once: int
    offset_ns: int


class _Rank:
    def __init__(self, number: int, clock_ns: int) -> None:
        self.number, self.clock_ns, self.at, self.rows, self.seq = number, clock_ns, 0, [], {}  # type: ignore[var-annotated]
        self.correlation = 0

    def run(self, name: str, start: int, end: int, stream: int, **args: Any) -> None:
        self.correlation += 1
        begin = start + self.clock_ns
        common = {"ph": "X", "ts": begin / 1000, "dur": (end - start) / 1000}
        self.rows.append(
            {**common, "cat": "kernel", "name": name, "pid": 0, "tid": stream,
             "args": {"device": 0, "stream": stream, "correlation": self.correlation, **args}}
        )  # fmt: skip
        self.rows.append(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
             "ts": (begin - 12_000) / 1000, "dur": 4.0, "args": {"correlation": self.correlation}}
        )  # fmt: skip


def _exchange(draw: random.Random, ranks: list[_Rank], group: str, description: str, name: str, size: int,
              data_ns: int, starts: dict[int, int]) -> dict[int, int]:  # fmt: skip
    """A collective: everybody ends a data time after the last arrival, give or take."""
    members = [rank.number for rank in ranks]
    done = max(starts.values()) + data_ns
    ends = {}
    for rank in ranks:
        end = done + draw.randint(0, 900)
        seq = rank.seq[group] = rank.seq.get(group, 40) + 1
        kernel = {"allreduce": "AllReduce", "_reduce_scatter_base": "ReduceScatter"}[name]
        rank.run(
            f"ncclDevKernel_{kernel}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", starts[rank.number], end,
            22 if description == "mesh_tp" else 26,
            **{"Collective name": name, "In msg nelems": size, "Out msg nelems": size, "dtype": "BFloat16",
               "Group size": len(members), "Process Group Name": group, "Process Group Description": description,
               "Process Group Ranks": str(members), "Seq": seq},
        )  # fmt: skip
        ends[rank.number] = end
    return ends


def planted_job(seed: int, folder: Path) -> Planted:
    """Write the files of one draw."""
    draw = random.Random(seed)
    slow = draw.randrange(RANKS)
    once = draw.choice([r for r in range(RANKS) if r // 2 != slow // 2 and r % 2 != slow % 2])
    offset = draw.randint(2_000_000, 5_000_000)
    ranks = [_Rank(n, 5_000_000_000_000 + (offset if n >= 8 else 0)) for n in range(RANKS)]
    for rank in ranks:
        rank.at = draw.randint(0, 40_000)
    pause = draw.randrange(1, STEPS), draw.randrange(LAYERS)
    for step in range(STEPS):
        begun = {rank.number: rank.at for rank in ranks}
        _step(draw, ranks, Planted(slow, once, offset), pause[1] if step == pause[0] else -1)
        for rank in ranks:
            start = begun[rank.number] + rank.clock_ns
            rank.rows.append(
                {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 10}", "pid": 1, "tid": 1,
                 "ts": start / 1000, "dur": (rank.at - begun[rank.number]) / 1000, "args": {}}
            )  # fmt: skip
    folder.mkdir(exist_ok=True)
    for rank in ranks:
        info = {"backend": "nccl", "rank": rank.number, "world_size": RANKS, "pg_config": []}
        document = {
            "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Example GPU", "numSms": 132}],
            "baseTimeNanoseconds": 1_782_967_788_000_000_000, "distributedInfo": info, "traceEvents": rank.rows,
        }  # fmt: skip
        (folder / f"rank{rank.number}.json.gz").write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))
    return Planted(slow, once, offset)


def _step(draw: random.Random, ranks: list[_Rank], planted: Planted, pause: int) -> None:
    """Layers of computation and a tensor-parallel all-reduce; gradients of data-parallel groups beside them."""
    buckets: list[tuple[list[_Rank], str, dict[int, int]]] = []
    for layer in range(LAYERS):
        ready = {}
        for rank in ranks:
            length = int(GEMM_NS * draw.uniform(0.995, 1.005) * (SLOW if rank.number == planted.slow else 1))
            begin = rank.at + HOST_NS + (ONCE_NS if rank.number == planted.once and layer == pause else 0)
            rank.run("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", begin, begin + length, 7)
            ready[rank.number] = begin + length
        for pair in range(RANKS // 2):
            two = ranks[2 * pair : 2 * pair + 2]
            ends = _exchange(draw, two, str(pair + 1), "mesh_tp", "allreduce", 1 << 22, TP_NS,
                             {r.number: ready[r.number] + HOST_NS for r in two})  # fmt: skip
            for rank in two:
                rank.at = ends[rank.number]
        if layer % 4 == 3:
            for side in range(2):
                group = ranks[side::2]
                starts = {r.number: r.at + 1_500 for r in group}
                buckets.append((group, str(100 + side), starts))
    free = {rank.number: 0 for rank in ranks}
    for group, name, starts in buckets:
        begin = {number: max(start, free[number]) for number, start in starts.items()}
        ends = _exchange(draw, group, name, "mesh_dp", "_reduce_scatter_base", 1 << 25, DP_NS, begin)
        free |= ends
    for rank in ranks:
        rank.at = max(rank.at, free[rank.number])


def check(seeds: int) -> int:
    """Draw so many jobs, analyse each, and print what was planted and what was found; how many went wrong."""
    import tempfile

    from analyze.ranks import Job
    from analyze.report.ranks import build_ranks_report

    wrong = 0
    print("seed | planted: slow, late once | latest ranks by own lead | named | own of others, at most | clocks off by")
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            planted = planted_job(seed, Path(folder) / "job")
            job = Job.load(Path(folder) / "job")
        assert job.joined is not None
        late, named = job.stragglers, build_ranks_report(job).verdict.named
        others = max(one.own_ns for one in late[2:]) / min(one.own_ns for one in late[:2])
        offsets = job.joined.clocks.offset_ns.tolist()
        off = max(abs(at - (planted.offset_ns if rank >= RANKS // 2 else 0)) for rank, at in enumerate(offsets))
        first = [one.rank for one in late[:2]]
        right = (
            first == [planted.slow, planted.once] and named[:1] == (planted.slow,) and set(named) <= set(first)
            and others < BYSTANDER and off < CLOCK_NS
        )  # fmt: skip
        wrong += not right
        print(
            f"{seed:4} | {planted.slow}, {planted.once} | "
            + ", ".join(f"{one.rank} ({one.own_ns / 1e6:.2f} ms)" for one in late[:3])
            + f" | {', '.join(map(str, named))} | {others:.1%} | {off} ns | {'right' if right else 'WRONG'}",
            flush=True,
        )
    print(f"{seeds - wrong} of {seeds} right")
    return wrong


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        sys.exit(bool(check(int(sys.argv[2]))))
    print(planted_job(int(sys.argv[2]) if len(sys.argv) > 2 else 0, Path(sys.argv[1])))
