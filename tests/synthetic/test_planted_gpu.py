"""Causes planted on the simulated GPU: found first, at their true saving; clean runs raise no alarm."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from tests.synthetic.gpu import COMPUTE, MAIN, QUEUE, Draw, Host, Machine, Thread, Work
from tests.synthetic.gpu_plan import Plan
from tests.synthetic.gpu_programs import Program
from tests.synthetic.gpu_rows import Rows
from tests.synthetic.planted_gpu import KINDS, draw, judge, line, summary

FIXED = 20_260


@pytest.mark.slow
@pytest.mark.parametrize("seed", [FIXED, random.randrange(10**6)], ids=["fixed", "fresh"])
def test_planted_causes_are_found_first_and_at_their_true_saving(seed: int, tmp_path: Path) -> None:
    judged = [judge(plan, tmp_path / "trace.json") for plan in draw(len(KINDS), seed)]
    # Shown when it fails.
    print(f"python -m tests.synthetic.planted_gpu --seed {seed} --runs {len(KINDS)}")
    print("\n".join(line(number, one) for number, one in enumerate(judged)))
    first, near, alarms = summary(judged)
    assert first >= 0.95
    assert near >= 0.95
    assert not alarms


def quiet() -> tuple[Machine, Thread]:
    machine = Machine(Draw(1), Host(), Rows())
    return machine, Thread(machine, MAIN, 0)


def activities(machine: Machine) -> list[tuple[int, int]]:
    rows = [row for row in machine.rows.rows if row["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    return [(row["ts"], row["ts"] + row["dur"]) for row in rows]


def calls(machine: Machine, name: str) -> list[tuple[int, int]]:
    rows = [row for row in machine.rows.rows if row["name"] == name]
    return [(row["ts"], row["ts"] + row["dur"]) for row in rows]


def test_a_kernel_on_an_idle_stream_starts_some_microseconds_after_its_call_began() -> None:
    machine, thread = quiet()
    for i in range(50):
        thread.launch(Work("k", 1_000), i)
        thread.spend(100_000)
    delays = [
        start - call
        for (start, _), (call, _) in zip(activities(machine), calls(machine, "cudaLaunchKernel"), strict=True)
    ]
    assert min(delays) >= 3_000
    assert max(delays) <= 8_000
    assert len(set(delays)) > 40


def test_queued_kernels_follow_each_other_by_a_microsecond_or_two_and_copies_by_more() -> None:
    machine, thread = quiet()
    for i in range(60):
        thread.launch(Work("k", 50_000), i)
    thread.launch(Work("Memcpy DtoH (Device -> Pinned)", 1_000, "memcpy"), "copy")
    rows = activities(machine)
    pairs = pairwise(rows)
    gaps = [after[0] - before[1] for before, after in pairs]
    assert all(900 <= gap <= 2_000 for gap in gaps[:-1])
    assert 3_000 <= gaps[-1] <= 6_000


def test_a_full_queue_stalls_the_launch_call() -> None:
    machine, thread = quiet()
    for i in range(QUEUE + 40):
        thread.launch(Work("k", 1_000_000), i)
    lengths = [end - start for start, end in calls(machine, "cudaLaunchKernel")]
    assert max(lengths[: QUEUE - 5]) < 20_000
    assert min(lengths[QUEUE + 10 :]) > 900_000


def test_a_copy_from_pageable_memory_outlasts_its_call_by_a_little() -> None:
    machine, thread = quiet()
    thread.launch(Work("k", 500_000), "k")
    thread.copy_in(Work("Memcpy HtoD (Pageable -> Device)", 80_000, "memcpy"), "in", waits=False)
    (_, returned), (_, ended) = calls(machine, "cudaMemcpyAsync")[0], activities(machine)[1]
    assert 2_000 <= ended - returned <= 4_000


@pytest.mark.parametrize("pinned", [False, True])
def test_a_result_is_waited_for_in_the_copy_or_behind_it(pinned: bool) -> None:
    machine, thread = quiet()
    thread.launch(Work("k", 500_000), "k")
    thread.copy_out(Work("Memcpy DtoH", 1_400, "memcpy"), "out", pinned=pinned)
    copy, wait = calls(machine, "cudaMemcpyAsync")[0], calls(machine, "cudaStreamSynchronize")[0]
    long, short = (wait, copy) if pinned else (copy, wait)
    assert long[1] - long[0] > 400_000
    assert short[1] - short[0] < 10_000
    assert thread.now > machine.stream(COMPUTE).end_ns


def lengths_of_kernels(program: Program) -> list[int]:
    return [row["dur"] for row in program.run().rows.rows if row["cat"] == "kernel"]


@pytest.mark.parametrize("cause", ["input-wait", "python", "sync-stall", "iteration-sync", "allocator-stall"])
def test_a_run_and_its_repaired_one_draw_the_same_lengths(cause: str) -> None:
    plan = Plan(FIXED, (cause,))
    planted, repaired = Program(plan), Program(plan, frozenset([cause]))
    assert lengths_of_kernels(planted) == lengths_of_kernels(repaired)
    assert planted.machine.window_ns > repaired.machine.window_ns
