"""Step times: the device's pace, worked by hand, and the host's beside it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from analyze.compare import comparable_of, compare
from analyze.compare.gates import judge_gate, parse_gate
from analyze.metrics import Step, step_times
from analyze.metrics.steps import host_pace, spread_text
from analyze.report import build_report
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import HOST, TraceBuilder

US = 1000
Made = Callable[..., dict[str, Any]]


def times(report: dict[str, Any]) -> list[tuple[int, str]]:
    return [(step["time_ns"] // US, step["basis"]) for step in report["steps"]]


def ahead() -> TraceBuilder:
    """The host is done with each step in 100 us, the device needs 1,000 for each.

    host  |0|1|2|                                 0, 100, 200
    GPU     |k0        |k1        |k2        |    20..1020, 1020..2020, 2020..3020
    """
    b = TraceBuilder()
    for i in range(3):
        b.step(i, 100 * i, 100).run("k", (100 * i + 10, 5), (20 + 1000 * i, 1000))
    return b


def test_a_host_that_runs_ahead_is_no_fast_step(report_of: Made) -> None:
    report = report_of(ahead())
    assert times(report) == [(1000, "device")] * 3
    assert [step["wall_ns"] for step in report["steps"]] == [100 * US] * 3
    assert report["metrics"]["step_time"]["value"] == 1000 * US
    (stat,) = [b for s in report["sections"] if s["id"] == "steps" for b in s["blocks"] if b["type"] == "stat"][:1]
    assert stat["text"] == "1.00 ms (median of 3; 1.00 ms to 1.00 ms); the host's pace is 100 µs"


def test_a_step_takes_as_long_whatever_is_selected(report_of: Made) -> None:
    report = report_of(ahead(), steps=(1, 2))
    assert times(report) == [(1000, "device")]
    assert report["steps"][0]["edge"] == ""


@pytest.mark.parametrize("category", ["Operator", "cpu_op", "user_annotation"])
def test_steps_count_in_every_category(category: str, report_of: Made) -> None:
    """They are steps and no ops: what the host does inside them and outside ops is Python."""
    b = ahead()
    for row in b.rows:
        row["cat"] = category if row["name"].startswith("ProfilerStep") else row["cat"]
    b.rows += [row for row in b.rows if row["name"] == "ProfilerStep#1"]  # written twice
    report = report_of(b)
    assert times(report) == [(1000, "device")] * 3
    assert not [op for op in report["ops"]["ops"] if op["kind"] == "op"]
    assert report["devices"][0]["idle"]["host_op_ns"] == 0


def test_steps_without_device_work(report_of: Made) -> None:
    """Step 1 launches nothing: it takes the host's pace, and step 0 runs to the end of its own last activity."""
    b = TraceBuilder().step(0, 0, 100).step(1, 100, 300).step(2, 400, 100).op("aten::add", 150, 10)
    b.run("k", (10, 5), (20, 50)).run("k", (410, 5), (420, 70))
    report = report_of(b)
    assert times(report) == [(50, "device"), (300, "host"), (70, "device")]
    assert "step, no spread" not in json.dumps(report["sections"])


def test_a_device_that_begins_the_next_step_first(report_of: Made) -> None:
    """Step 1 has copied on its own stream before the kernel of step 0 began: no pace of the device's."""
    b = TraceBuilder().step(0, 0, 100).step(1, 100, 100)
    b.run("k", (10, 5), (500, 100)).run("Memcpy HtoD", (110, 5), (120, 10), stream=20, cat="gpu_memcpy")
    assert times(report_of(b)) == [(100, "host"), (10, "device")]


def test_overlapping_rows_and_several_devices(report_of: Made) -> None:
    """The first activity on any device begins a step; the last one ends with the last on any device.

    Rows that overlap by rounding do not matter: a step ends where the next one begins.
    """
    b = TraceBuilder().step(0, 0, 130).step(1, 100, 100)
    b.run("k", (10, 5), (30, 300), device=0).run("k", (20, 5), (25, 300), device=1)
    b.run("k", (110, 5), (400, 100), device=0).run("k", (120, 5), (390, 200), device=1)
    report = report_of(b)
    assert times(report) == [(365, "device"), (200, "device")]
    assert [step["activities"] for step in report["steps"]] == [2, 2]


def test_each_program_of_a_merged_file_has_its_own_steps(report_of: Made) -> None:
    b = TraceBuilder()
    for rank, shift, dur in ((0, 0, 100), (1, 5, 700)):
        pid = f"[rank{rank}] {HOST}"
        for i in range(2):
            b.row("user_annotation", f"ProfilerStep#{i}", shift + 100 * i, 100, pid=pid)
            b.row("cuda_runtime", "cudaLaunchKernel", shift + 100 * i + 10, 5, pid=pid, correlation=10 * rank + i + 1)
            b.row("kernel", "k", 50 + dur * i, dur, pid=f"[rank{rank}] 0", tid=7, device=0, stream=7,
                  correlation=10 * rank + i + 1)  # fmt: skip
    report = report_of(b)
    assert times(report) == [(100, "device"), (700, "device"), (100, "device"), (700, "device")]


def step(time: int, wall: int, edge: str = "", number: int = 0) -> Step:
    return Step(f"ProfilerStep#{number}", time, "device", wall, time, 1, edge)


def test_figures_of_several_steps() -> None:
    assert step_times(()) is None
    assert step_times((step(5, 5, "first"), step(1, 5, "last"))) == (5, 1, 5)
    assert step_times((step(5, 5), step(1, 5))) == (1, 1, 5), "steps that are selected have a successor"
    assert step_times((step(8, 8), step(9, 9), step(50, 50), step(7, 8))) == (8, 7, 50)
    assert host_pace((step(100, 110),)) is None
    assert host_pace((step(100, 111),)) == 111
    assert host_pace((step(100, 89),)) == 89


def test_an_outlier_is_named_where_host_and_device_agree_on_it() -> None:
    usual = [step(10, 10, number=i) for i in range(4)]
    assert "30 ns in step 7)" in spread_text((*usual, step(30, 30, number=7)))
    assert " in step" not in spread_text((*usual, step(14, 14, number=7)))
    assert " in step" not in spread_text((*usual, step(30, 10, number=7), step(10, 30, number=8)))


@pytest.mark.parametrize(
    ("file", "median", "low", "high"),
    [
        ("cases/17-gc-pause/trace.json", 8_000, 7_810, 49_500),
        ("cases/20-kernel-95-percent/host.88.pt.trace.json", 40_000, 38_395, 40_000),
        ("cases/29-backward-thread-first/trace.json", 25_000, 14_979, 25_000),
    ],
)
def test_files_with_known_paces(shared: Path, file: str, median: int, low: int, high: int) -> None:
    report = build_report(Trace.load(shared / file))
    assert step_times(report.measures.steps) == (median * US, low * US, high * US)
    assert host_pace(report.measures.steps) is None


def plainly(path: Path) -> list[Decimal]:
    """Step times in microseconds from the rows alone, row by row."""
    with gzip.open(path, "rt") as file:
        rows = json.load(file, parse_float=Decimal)["traceEvents"]
    rows = [row for row in rows if row.get("ph") == "X"]
    calls = {row["args"]["correlation"]: row["ts"] for row in rows if row.get("cat") in ("cuda_runtime", "cuda_driver")}
    work = [row for row in rows if row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    steps = [row for row in rows if row["name"].startswith("ProfilerStep#") and row["cat"] == "user_annotation"]
    begins = sorted(row["ts"] for row in steps)
    ends = [*begins[1:], begins[-1] + max(row["dur"] for row in steps if row["ts"] == begins[-1])]
    mine = [
        [row for row in work if begin <= calls.get(row["args"]["correlation"], -1) < end]
        for begin, end in zip(begins, ends, strict=True)
    ]
    firsts = [min(row["ts"] for row in rows) for rows in mine]
    return [b - a for a, b in pairwise((*firsts, max(row["ts"] + row["dur"] for row in mine[-1])))]


@pytest.mark.parametrize(("name", "least", "most"), [("a", 22.7, 23.7), ("b", 166, 172.1)])
def test_graphs_of_a_host_that_never_waits(shared: Path, name: str, least: float, most: float) -> None:
    path = shared / "more" / f"rtx3060_gpt_graphs_{name}.json.gz"
    steps = build_report(Trace.load(path)).measures.steps
    assert [step.time_ns for step in steps] == [int(time * 1000) for time in plainly(path)]
    assert all(least <= step.time_ns / 10**6 <= most for step in steps)
    assert (host_pace(steps) or 0) < 2_200 * US


def test_the_pause_of_one_step(shared: Path) -> None:
    report = build_report(Trace.load(shared / "cases" / "17-gc-pause" / "trace.json"))
    found = [step.time_ns for step in report.measures.steps]
    assert found == [8_000 * US, 8_000 * US, 49_500 * US, 7_810 * US]
    assert "49.5 ms in step 22" in spread_text(report.measures.steps)


def test_a_report_of_before_has_no_step_time_to_compare(tmp_path: Path) -> None:
    """Its figure was the host's pace: a gate on it could pass where the device became slower."""
    report = build_report(Trace.load(ahead().write(tmp_path / "trace.json")))
    this = comparable_of(report)
    old = replace(this, steps=tuple(replace(step, time_ns=None) for step in this.steps))
    assert old.metric("step_time") is None
    gate = judge_gate(parse_gate("step_time +5%"), this, old, compare(old, this, top=5))
    assert gate.outcome == "not-judged"
    row = compare(old, this, top=5).changes.row("step_time")
    assert row is not None
    assert row.verdict == "not-comparable"
    assert report.as_json()["steps"][0]["time_ns"] == 1000 * US


def test_a_range_has_no_steps(tmp_path: Path) -> None:
    trace = Trace.load(ahead().annotation("forward", 0, 150).write(tmp_path / "trace.json"))
    assert build_report(trace, range="forward").measures.steps == ()
    assert Scope(None, "forward").range == "forward"
