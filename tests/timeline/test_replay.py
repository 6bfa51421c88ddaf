"""Replays worked out by hand, and what always holds: unchanged it is the record, and removal never lengthens it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.timeline import Change, Host, Replay, build_schedule, union
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.timeline.test_ledger import FAST, build, random_rows

Load = Callable[[TraceBuilder], Trace]


def replay_of(trace: Trace) -> Replay:
    return Replay(build_schedule(trace, Host(trace)))


def ends_us(replay: Replay, change: Change) -> list[float]:
    first = int(replay.run().start_ns.min())
    return [round((end - first) / 1000, 3) for end in replay.run(change).end_ns.tolist()]


def waiting() -> TraceBuilder:
    """The host waits for A before it launches B, 10 us after the wait.

    us      0    5   10                          60   65   75   80   85      105
    host    launchA  sync.........................  )      launchB
    device           A..........................|                  B.........|
    """
    return (
        TraceBuilder()
        .api("cudaLaunchKernel", 0, 5, correlation=1)
        .api("cudaStreamSynchronize", 10, 55)
        .api("cudaLaunchKernel", 75, 5, correlation=2)
        .kernel("a", 10, 50, correlation=1)
        .kernel("b", 85, 20, correlation=2)
    )


def test_a_wait_that_returns_at_once_lets_the_host_run_ahead(load: Load) -> None:
    """B is launched at 20, and starts when A ends plus the usual 1.5 us between two queued kernels."""
    replay = replay_of(load(waiting()))
    assert ends_us(replay, Change()) == [50, 95]
    assert ends_us(replay, Change(at_once={0: 0})) == [50, 71.5]


def test_what_remains_of_a_call_is_spent(load: Load) -> None:
    """A call that still takes 45 us ends at 55: B is launched at 65 and begins 10 us later, at 65 after A's start."""
    replay = replay_of(load(waiting()))
    assert ends_us(replay, Change(at_once={0: 45_000})) == [50, 85]
    assert ends_us(replay, Change(at_once={0: 10**9})) == [50, 95]  # never longer than recorded


def test_a_shorter_kernel_ends_the_wait_earlier(load: Load) -> None:
    """A takes 20 us instead of 50: the wait returns 30 us earlier, and so does all that follows."""
    assert ends_us(replay_of(load(waiting())), Change(durations={0: 20_000})) == [20, 65]


def test_host_time_that_vanishes(load: Load) -> None:
    """The 10 us between wait and launch vanish: B begins 10 us earlier."""
    trace = load(waiting())
    begin = int(trace.runtime["start_ns"].min()) + 65_000  # type: ignore[arg-type]
    gone = union(np.array([begin]), np.array([begin + 10_000]))
    assert ends_us(replay_of(trace), Change(host={0: gone})) == [50, 85]


def test_a_graph_is_launched_once(load: Load) -> None:
    """Only the first activity of a launch waits for the call; the next follows on its stream.

    us      0   5  10     20  22     32        100
    host    graph                              sync
    device         K1.....|   K2.....|
    """
    builder = TraceBuilder().api("cudaGraphLaunch", 0, 5, correlation=1)
    builder.kernel("k1", 10, 10, correlation=1).kernel("k2", 22, 10, correlation=1)
    replay = replay_of(load(builder))
    assert ends_us(replay, Change()) == [10, 22]
    assert ends_us(replay, Change(durations={0: 4_000})) == [4, 16]
    assert ends_us(replay, Change(gaps={1: 0})) == [10, 20]


def test_work_that_waits_for_another_stream(load: Load) -> None:
    """C on stream 9 was queued long ago and begins 1 us after A on stream 7 ends: it waited for A.

    us         0 2   4 6      10              50 51      61
    host       launchA launchC
    stream 7                  A...............|
    stream 9                                    C........|
    """
    builder = (
        TraceBuilder()
        .api("cudaLaunchKernel", 0, 2, correlation=1)
        .api("cudaLaunchKernel", 4, 2, correlation=2)
        .kernel("a", 10, 40, correlation=1, stream=7)
        .kernel("c", 51, 10, correlation=2, stream=9)
    )
    replay = replay_of(load(builder))
    assert ends_us(replay, Change(durations={0: 15_000})) == [15, 26]


def test_threads_that_take_turns_shift_together(load: Load) -> None:
    """Thread 2 works while thread 1 waits in Python, as autograd's does: its launch comes 30 us earlier with A."""
    builder = (
        TraceBuilder()
        .api("cudaLaunchKernel", 0, 5, correlation=1, tid=1)
        .api("cudaStreamSynchronize", 10, 50, tid=1)
        .api("cudaLaunchKernel", 70, 5, correlation=2, tid=2)
        .kernel("a", 10, 45, correlation=1)
        .kernel("b", 80, 10, correlation=2)
    )
    assert ends_us(replay_of(load(builder)), Change(durations={0: 15_000})) == [15, 50]


def test_threads_side_by_side_do_not(load: Load) -> None:
    """Both threads are inside ops all the time: nothing says that one waits for the other."""
    builder = TraceBuilder().op("main", 0, 100, tid=1).op("other", 0, 100, tid=2)
    builder.api("cudaLaunchKernel", 1, 5, correlation=1, tid=1).api("cudaStreamSynchronize", 10, 50, tid=1)
    builder.api("cudaLaunchKernel", 70, 5, correlation=2, tid=2)
    builder.kernel("a", 10, 45, correlation=1).kernel("b", 80, 10, correlation=2, stream=9)
    assert ends_us(replay_of(load(builder)), Change(durations={0: 15_000})) == [15, 80]


def test_ranks_of_a_merged_file_do_not_wait_for_each_other(load: Load) -> None:
    """X on rank 1's device ends last inside rank 0's wait, which waited for A all the same."""
    builder = TraceBuilder()
    for rank, call, start, dur in ((0, 0, 10, 50), (1, 1, 11, 52), (0, 75, 85, 20), (1, 90, 100, 7)):
        place = {"device": 0, "stream": 7, "correlation": call + 1}
        builder.row("cuda_runtime", "cudaLaunchKernel", call, 5, pid=f"[TP0{rank}] 83", correlation=call + 1)
        builder.row("kernel", "k", start, dur, pid=f"[TP0{rank}] 0", tid=7, **place)
    builder.row("cuda_runtime", "cudaStreamSynchronize", 10, 55, pid="[TP00] 83")
    replay = replay_of(load(builder))
    assert ends_us(replay, Change()) == [50, 53, 95, 97]
    assert ends_us(replay, Change(durations={1: 10_000})) == [50, 11, 95, 97]
    assert len(set(replay.schedule.threads.values())) == 2


def test_a_copy_that_holds_its_call(load: Load) -> None:
    """The call ends with its copy; made asynchronous it takes 4 us, and the next launch follows at once."""
    builder = (
        TraceBuilder()
        .api("cudaMemcpyAsync", 0, 100, correlation=1)
        .api("cudaLaunchKernel", 101, 4, correlation=2)
        .row("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 10, 88, pid=0, tid=7, device=0, stream=7, correlation=1)
        .kernel("k", 108, 10, correlation=2)
    )
    replay = replay_of(load(builder))
    assert ends_us(replay, Change(durations={0: 48_000})) == [48, 68]
    assert ends_us(replay, Change(at_once={0: 4_000})) == [88, 99.5]


def read_back(name: str) -> TraceBuilder:
    """A read-back whose call holds the host until its copy has ended, behind a kernel of 100 us.

    us       0   5  8                    110 113  116 118
    host     launchA copy............................)
    stream 7        A 100 us..............|  copy|
    """
    return (
        TraceBuilder()
        .api("cudaLaunchKernel", 0, 5, correlation=1)
        .api("cudaMemcpyAsync", 8, 110, correlation=2)
        .kernel("a", 10, 100, correlation=1)
        .row("gpu_memcpy", name, 113, 3, pid=0, tid=7, device=0, stream=7, correlation=2)
    )


@pytest.mark.parametrize("kind", ["Pageable", "Pinned"])
def test_a_read_back_follows_its_kernel_whatever_the_kernel_takes(load: Load, kind: str) -> None:
    """The stream came last: with A at 30 us the copy begins 3 us behind it, at 43 on the clock, 33 after A's start."""
    replay = replay_of(load(read_back(f"Memcpy DtoH (Device -> {kind})")))
    assert ends_us(replay, Change()) == [100, 106]
    assert ends_us(replay, Change(durations={0: 30_000})) == [30, 36]


@pytest.mark.parametrize(
    ("early_us", "kind", "waited"), [(3, "Pageable", True), (11, "Pageable", False), (3, "Pinned", False)]
)
def test_a_pageable_copy_call_returns_before_its_record_ends(
    load: Load, early_us: int, kind: str, waited: bool
) -> None:
    """The call lasts from 0 to 100 us and its copy ends a little later: the call waited if that is at most 10 us."""
    builder = (
        TraceBuilder()
        .api("cudaMemcpyAsync", 0, 100, correlation=1)
        .row(
            "gpu_memcpy",
            f"Memcpy HtoD ({kind} -> Device)",
            10,
            90 + early_us,
            pid=0,
            tid=7,
            device=0,
            stream=7,
            correlation=1,
        )
    )
    host = Host(load(builder))
    assert (host.waits["why"].to_list() == ["copy"]) == waited
    assert host.blocking.height == 0  # the ledger's definition stays


def test_memory_given_back_waits_for_the_device(load: Load) -> None:
    """cudaFree returns 20 us after A has ended; with A at 40 us, 60 us earlier, and B follows.

    us       0   5 10                   110  130 135  140    150
    host     launchA free...................) launchB
    stream 7       A 100 us..............|           B......|
    """
    builder = TraceBuilder().run("a", (0, 5), (10, 100)).api("cudaFree", 10, 120).run("b", (135, 5), (145, 10))
    replay = replay_of(load(builder))
    assert ends_us(replay, Change()) == [100, 145]
    assert ends_us(replay, Change(durations={0: 40_000})) == [40, 85]


def test_a_launch_into_a_full_queue_waits_for_a_place(load: Load) -> None:
    """The 1,201st launch finds more than 1,000 that have not begun: its call of 5 ms waits for the device."""
    builder = TraceBuilder()
    for i in range(1_200):
        builder.run("k", (i, 1), (10 + 10 * i, 9))
    builder.run("last", (1_200, 5_000), (10 + 10 * 1_200, 9))
    waits = Host(load(builder)).waits
    assert waits.select("why", "dur_ns").rows() == [("queue", 5_000_000)]


def first_use() -> TraceBuilder:
    """The call that launches B loads a module for 5 ms, and B begins when it returns.

    us         0  5  10    50                        5050 5053
    host       launchA     launchB......................)
    stream 7         A 100 us                             B 100 us
    """
    return TraceBuilder().run("a", (0, 5), (10, 100)).run("b", (50, 5_000), (5_053, 100))


def without_the_call(trace: Trace) -> Change:
    begin = int(trace.runtime["start_ns"].max())  # type: ignore[arg-type]
    return Change(host={0: union(np.array([begin]), np.array([begin + 5_000_000]))})


def test_a_long_launch_call_that_vanishes_holds_up_its_own_kernel_no_more(load: Load) -> None:
    """B is launched at 50 and could begin 6 us later: it follows A, 1.5 us after its end."""
    trace = load(first_use())
    assert ends_us(replay_of(trace), without_the_call(trace)) == [100, 201.5]


def test_work_that_ended_before_the_launch_call_returned_held_nothing_up(load: Load) -> None:
    """C ends on stream 9 while the host still launches B: that B did not wait for it."""
    trace = load(first_use().kernel("c", 20, 1_000, stream=9))
    assert ends_us(replay_of(trace), without_the_call(trace)) == [100, 1010, 201.5]


def test_unexplained_delays_are_told_apart(load: Load) -> None:
    """B was queued while A ran and began 400 us after it, for no reason in the file: 398.5 us are unexplained."""
    builder = (
        TraceBuilder()
        .api("cudaLaunchKernel", 0, 2, correlation=1)
        .api("cudaLaunchKernel", 4, 2, correlation=2)
        .kernel("a", 10, 100, correlation=1)
        .kernel("b", 510, 10, correlation=2)
    )
    replay = replay_of(load(builder))
    assert ends_us(replay, Change()) == [100, 510]
    assert int(replay.run(explained_only=True).end_ns[1] - replay.run().end_ns[1]) == -398_500


def recorded_times(replay: Replay) -> tuple[list[int], list[int]]:
    work = replay.schedule.work
    return work.start_ns.tolist(), (work.start_ns + work.dur_ns).tolist()


@given(seed=st.integers(0, 2**32))
@FAST
def test_unchanged_it_is_the_record_and_removal_never_lengthens(seed: int, tmp_path: Path) -> None:
    trace = Trace.load(build(random_rows(seed)).write(tmp_path / "trace.json"))
    replay = replay_of(trace)
    run = replay.run()
    assert (run.start_ns.tolist(), run.end_ns.tolist()) == recorded_times(replay)
    r = random.Random(seed)
    n, blocking = len(replay.schedule.work), int((replay.schedule.calls.blocking >= 0).sum())
    first, last = int(run.start_ns.min(initial=0)), int(run.end_ns.max(initial=0))
    begin = np.array([r.randint(first, last) for _ in range(3)])
    change = Change(
        host={0: union(begin, begin + r.randint(0, 50_000))},
        at_once={i: r.randint(0, 3_000) for i in range(blocking) if r.random() < 0.5},
        durations={i: r.randint(0, 3_000) for i in range(n) if r.random() < 0.5},
        gaps={i: r.randint(-100, 3_000) for i in range(n) if r.random() < 0.3},
    )
    later = replay.run(change | Change(durations={i: 0 for i in range(n) if r.random() < 0.2}))
    sooner = replay.run(change)
    assert (sooner.end_ns <= run.end_ns).all()
    assert (later.end_ns <= sooner.end_ns).all()  # removing more never lengthens either


@pytest.mark.slow
def test_unchanged_it_is_the_record_on_reference_traces(shared: Path) -> None:
    for path in sorted((shared / "traces").glob("*.json.gz")):
        replay = replay_of(Trace.load(path))
        run = replay.run()
        assert (run.start_ns.tolist(), run.end_ns.tolist()) == recorded_times(replay), path.name
