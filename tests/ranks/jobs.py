"""Random small jobs as documents: ranks, groups, clocks, losses, kinds. Drawing them shares no code with it."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from analyze.metrics import Measures
from analyze.ranks import Job
from analyze.ranks.engine import Outcome
from analyze.ranks.files import candidates
from analyze.ranks.worker import joinable
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from analyze.trace.read import read

_SYMMETRIC = ("allreduce", "_allgather_base", "_reduce_scatter_base", "all_to_allv", "barrier")
_BASE_NS = 1_780_000_000_000_000_000


def us(ns: int) -> float:
    return ns / 1000


def kernel(name: str, start: int, end: int, stream: int, cat: str = "kernel", **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": us(start), "dur": us(end - start),
        "args": {"device": 0, "stream": stream, **args},
    }  # fmt: skip


def collective(name: str, group: str, members: list[int], start: int, end: int, **args: Any) -> dict[str, Any]:
    shown = {
        "Collective name": name, "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float",
        "Group size": len(members), "Process Group Name": group, "Process Group Ranks": str(members), **args,
    }  # fmt: skip
    return kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", start, end, 20 + int(group), **shown)


def random_job(seed: int, *, one_clock: bool = False) -> tuple[list[dict[str, Any]], int]:
    """Documents of a job, and its number of ranks."""
    draw = random.Random(seed)
    world = draw.randint(2, 4)
    ranks = [r for r in range(world) if draw.random() > 0.15] or [0]
    numbered, clocks = draw.random() < 0.6, [draw.choice((0, 0, 0, 3_000, 700_000, -4_000_000)) for _ in range(world)]
    clocks = [0] * world if one_clock else clocks
    groups = [("0", list(range(world)))]
    if world == 4 and draw.random() < 0.6:
        groups += [("1", [0, 1]), ("2", [2, 3])]
    rows: dict[int, list[dict[str, Any]]] = {r: [] for r in ranks}
    now = dict.fromkeys(range(world), 1_000_000)
    for at in range(draw.randint(1, 7)):
        name, members = draw.choice(groups)
        kind = draw.choice((*_SYMMETRIC, "broadcast"))
        pair = len(members) == 2 and draw.random() < 0.3
        arrive = {}
        for r in members:
            work, gap = draw.randrange(0, 90_000, 500), draw.randrange(0, 20_000, 500)
            begin = now[r] + gap
            arrive[r] = begin + draw.choice((work, work // 2))  # some computation runs beside the collective
            if r in rows and work:
                rows[r].append(kernel("gemm", clocks[r] + begin, clocks[r] + begin + work, 7))
            if r in rows and draw.random() < 0.3:
                copied = clocks[r] + begin + draw.randrange(0, 30_000, 500)
                rows[r].append(kernel("Memcpy HtoD", copied, copied + 7_500, 9, cat="gpu_memcpy"))
        done = max(arrive.values()) + draw.randrange(5_000, 60_000, 500)
        for place, r in enumerate(members):
            end = done + draw.randrange(0, 3_000, 250)
            now[r] = max(end, arrive[r]) if draw.random() < 0.7 else arrive[r] + 1_000
            mine = ("send", "recv")[place] if pair else kind
            if not pair and draw.random() < 0.03:
                mine = "_allgather_base"  # this rank disagrees
            args: dict[str, Any] = {"In msg nelems": 256 * (1 + at), "Seq": at + 3} if numbered else {}
            if pair:
                args |= {"Src Rank": members[0], "Dst Rank": members[1]}
            if r in rows and draw.random() > 0.06:  # some are lost
                rows[r].append(collective(mine, name, members, clocks[r] + arrive[r], clocks[r] + end, **args))
    documents = [_document(r, world, rows[r]) for r in ranks if rows[r]]
    return documents, world


def _document(rank: int, world: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "baseTimeNanoseconds": _BASE_NS,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": []},
        "traceEvents": rows,
    }


def write(documents: list[dict[str, Any]], folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for document in documents:
        rank = document["distributedInfo"]["rank"]
        (folder / f"rank{rank}.json").write_text(json.dumps(document))
    return folder


def figures_of(folder: Path) -> Job:
    """The job of a folder without findings of single ranks: no figure of a job needs them, and they take long."""
    made = [(Trace(read(one.path, jobs=1, key=True)), one) for one in candidates([str(folder)])]
    return Job.of(folder.name, Outcome([joinable(Measures(trace, Definitions(), Scope()), one) for trace, one in made]))


def joined(documents: list[dict[str, Any]]) -> Job:
    """The job of some documents, as `figures_of`."""
    with tempfile.TemporaryDirectory() as folder:
        job = figures_of(write(documents, Path(folder) / "job"))
        job.document()
        return job
