"""Threads that take turns, and those of the backward engine, which others drive (times in us)."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.timeline import Host, build_schedule, engine_threads
from analyze.trace import Trace
from tests.builder import HOST, TraceBuilder

NODE = "autograd::engine::evaluate_function: MmBackward0"


def two_threads(node: str, beside: float, folder: Path) -> tuple[Trace, dict[str, int]]:
    """A forward pass of 1,000 on the main thread; 500 of another thread's ops, of which `beside` run next to it."""
    builder = TraceBuilder().op("aten::mm", 0, 1_000).run("k", (10, 5), (20, 100))
    builder.op(node, 1_000 - beside, 500, tid=5_000).run("k", (1_400, 5), (1_420, 100), tid=5_000)
    trace = Trace.load(builder.write(folder / "trace.json"))
    return trace, {str(tid): int(thread) for thread, tid in trace.threads.select("thread", "tid").iter_rows()}


@pytest.mark.parametrize(
    ("node", "beside", "one"),
    [("aten::mul", 20, True), ("aten::mul", 100, False), (NODE, 20, True), (NODE, 100, True)],
)
def test_who_takes_turns(node: str, beside: float, one: bool, tmp_path: Path) -> None:
    """Side by side for more than 5 % of its time: independent, unless it is the engine's."""
    trace, thread = two_threads(node, beside, tmp_path)
    chains = build_schedule(trace, Host(trace)).threads
    assert (chains[thread[str(HOST)]] == chains[thread["5000"]]) is one


@pytest.mark.parametrize(("forward", "engine"), [(0, True), (160, True), (170, False)])
def test_a_thread_of_the_engine_does_little_else(forward: float, engine: bool, tmp_path: Path) -> None:
    """500 of backward ops and so much of others: more than three quarters, or less."""
    builder = TraceBuilder().op("aten::mm", 0, 100).op(NODE, 200, 500, tid=5_000).run("k", (10, 5), (20, 100))
    if forward:
        builder.op("aten::mm", 800, forward, tid=5_000)
    trace = Trace.load(builder.write(tmp_path / "trace.json"))
    thread = next(int(t) for t, tid in trace.threads.select("thread", "tid").iter_rows() if tid == "5000")
    assert (thread in engine_threads(trace)) is engine


def test_a_thread_with_steps_is_none_of_the_engine(tmp_path: Path) -> None:
    builder = TraceBuilder().step(1, 0, 1_000).op(NODE, 200, 500).run("k", (210, 5), (220, 100))
    assert not engine_threads(Trace.load(builder.write(tmp_path / "trace.json")))
