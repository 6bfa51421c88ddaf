"""Why a rank is late, by hand: the cause of its idle time with the frame or op, the work with its op."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyze.ranks import Job
from analyze.ranks.why import ExtraWork, Idling, extra_work, idling, mostly
from analyze.report.ranks import build_ranks_report
from tests.builder import TraceBuilder
from tests.ranks.jobs import figures_of

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEP = 1_000
RANKS = 4
LATE = 2


def job(folder: Path, *, pause: float = 0, frame: str = "", op: str = "", extra: float = 0) -> Job:
    """Four ranks, three steps of 1 ms. In us after the step's begin:

        launch     10..15, gemm 20..300 (+ extra) by aten::mm
        launch     300 + extra + pause .. + 5, all-reduce 5 us behind it until 700 on all ranks

    The late rank's host pauses between the two launches.
    """
    folder.mkdir()
    for rank in range(RANKS):
        b, mine = TraceBuilder(), rank == LATE
        b.metadata["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": RANKS, "pg_config": []}
        for step in range(3):
            begin = step * STEP
            longer, later = (extra, pause) if mine else (0, 0)
            end = begin + 300 + longer
            b.step(step, begin, STEP - 1)
            b.op("aten::mm", begin + 9, 8)
            b.run("sgemm_128x64_nn", (begin + 10, 5), (begin + 20, end - begin - 20))
            if frame:
                b.frame("train.py(1): main", begin + 1, 900)
            if later and frame:
                b.frame(frame, end - 20, later + 15)
            if later and op:
                b.op(op, end - 20, later + 15)
            begun = end + later
            b.run("placeholder", (begun, 5), (begun + 10, begin + 700 - begun - 10), stream=20)
            b.rows[-1]["name"] = NCCL
            b.rows[-1]["args"] |= said(step)
        b.write(folder / f"rank{rank}.json")
    return figures_of(folder)


def said(step: int) -> dict[str, Any]:
    return {
        "Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float",
        "Group size": RANKS, "Process Group Name": "0", "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(RANKS))), "Seq": step,
    }  # fmt: skip


def test_a_pause_is_named_by_its_frame(tmp_path: Path) -> None:
    found = job(tmp_path / "job", pause=200, frame="/home/u/run/train.py(88): load_batch")
    assert found.joined is not None
    assert [one.rank for one in found.stragglers if one.own_ns] == [LATE]
    assert idling(found.joined, LATE) == Idling("host_other", "u/run/train.py(88): load_batch")
    said = " ".join(build_ranks_report(found).verdict.sentences)
    assert (
        "Rank 2 arrives last in 3 of 3 collectives; before these it idles 200 µs longer than its peers on average, "
        "most of it while its host runs code outside ops, mostly in u/run/train.py(88): load_batch."
    ) in said


def test_a_pause_is_named_by_its_op_where_no_frames_are(tmp_path: Path) -> None:
    found = job(tmp_path / "job", pause=200, op="aten::nonzero")
    assert found.joined is not None
    assert idling(found.joined, LATE) == Idling("host_op", "aten::nonzero")


def test_extra_work_is_named_by_category_and_op(tmp_path: Path) -> None:
    """100 us more in each of three steps, and nothing else differs."""
    found = job(tmp_path / "job", extra=100)
    assert found.joined is not None
    assert extra_work(found.joined, LATE) == ExtraWork("gemm", 300_000, "aten::mm")
    said = " ".join(build_ranks_report(found).verdict.sentences)
    assert (
        "before these it computes 100 µs longer than its peers on average; over the whole recording, its gemm kernels "
        "run 300 µs longer than theirs, most of that launched by aten::mm."
    ) in said


def test_nobody_idles_longer_where_all_are_on_time(tmp_path: Path) -> None:
    found = job(tmp_path / "job")
    assert found.joined is not None
    assert [idling(found.joined, rank) for rank in range(RANKS)] == [None] * RANKS


@pytest.mark.parametrize(
    ("amounts", "right"),
    [({"a": 5, "b": 5}, "b"), ({"a": 4, "b": 3, "c": 3}, ""), ({"a": 5, "b": 4, "c": -9}, "a"), ({"a": -1}, "")],
)
def test_half_speaks_for_all(amounts: dict[str, int], right: str) -> None:
    assert mostly(amounts) == right
