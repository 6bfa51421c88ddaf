"""Which findings claim the same time, which comes first, and what shows only once another cost is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analyze import Trace, build_report
from analyze.metrics.device_time import headline
from tests.builder import TraceBuilder
from tests.conftest import SHARED

Load = Callable[[TraceBuilder], Trace]

_TRACES = sorted(path for part in ("traces", "more") for path in (SHARED / part).glob("*.json.gz"))


def read_back_in_each_step() -> TraceBuilder:
    """Four times: a kernel of 100 us, a wait for its end inside `.item()`, 40 us of the host, the next launch.

    us      0 5       10 ................. 110  115        155 160
    host    launchA   item: sync............... )          launchB
    device            A...................|                    B
    """
    builder = TraceBuilder()
    for i in range(4):
        at = 155 * i
        builder.op("aten::mm", at, 8).run("gemm", (at, 5), (at + 10, 100))
        builder.op("aten::item", at + 12, 103).api("cudaStreamSynchronize", at + 13, 100)
    return builder


def test_the_wait_comes_before_the_launches_that_it_delays(load: Load) -> None:
    """Idle: 3 x 55 us between end and next start. Without waits, or with launches at once, nearly all of it goes."""
    diagnosis = build_report(load(read_back_in_each_step())).diagnosis
    waits, launches = diagnosis.findings[:2]
    assert (waits.id, launches.id) == ("sync-stall", "launch-bound")
    assert (waits.same_as, launches.same_as, launches.same_idle) == (None, "sync-stall", True)
    assert waits.saving is not None
    assert 0.9 * 165_000 <= waits.saving.ns <= 165_000


def slow_host() -> TraceBuilder:
    """Ten GEMMs of 10 us (the last 60 us), each with an all-reduce of 40 us beside it, launched every 100 us.

    The host sets the pace, and the last GEMM outlasts the last collective: without the collectives the window stays as
    long as it is. With launches that cost nothing the collectives, 10 x 40 us one behind the other, set it; without
    them it would be 9 x 10 + 60 us and the gaps between the GEMMs.
    """
    builder = TraceBuilder()
    for i in range(10):
        at = 100 * i
        builder.op("aten::mm", at, 98).run("gemm", (at, 5), (at + 10, 10 if i < 9 else 60))
        builder.run("ncclDevKernel_AllReduce_Sum_f32_RING_LL", (at + 12, 5), (at + 22, 40), stream=20)
    return builder


def test_communication_behind_a_slow_host_shows_once_the_host_is_fast(load: Load) -> None:
    """400 us less 150 us, give or take the gaps between ten activities in a row."""
    diagnosis = build_report(load(slow_host())).diagnosis
    assert diagnosis.findings[0].id == "launch-bound"
    assert "exposed-communication" not in [finding.id for finding in diagnosis.findings]
    (hidden,) = (one for one in diagnosis.hidden if one.id == "exposed-communication")
    assert hidden.behind == "launch-bound"
    assert hidden.time_ns == 400_000
    assert hidden.saving.ns == pytest.approx(250_000, abs=15_000)


def test_what_shows_by_itself_is_not_hidden(load: Load) -> None:
    diagnosis = build_report(load(slow_host())).diagnosis
    assert not {one.id for one in diagnosis.hidden} & {finding.id for finding in diagnosis.findings}


def test_input_before_the_first_launch_of_a_thread_counts(load: Load) -> None:
    """Another thread warms up until 10 us; the main thread loads from 12 to 5,012 and launches at 5,020."""
    builder = (
        TraceBuilder()
        .run("warm", (0, 5), (8, 4), tid=2)
        .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 12, 5_000)
        .run("gemm", (5_020, 5), (5_030, 100))
    )
    report = build_report(load(builder))
    finding = report.diagnosis.findings[0]
    assert finding.id == "input-wait"
    assert finding.saving is not None
    assert finding.saving.ns == 5_000_000


@pytest.mark.slow
@pytest.mark.parametrize("path", _TRACES, ids=lambda path: path.name)
def test_no_upper_bound_is_below_the_ledgers_own_figure(path: Path) -> None:
    measures = build_report(Trace.load(path)).measures
    device = headline(measures.devices)
    if device is None:
        return
    assert measures.savings.saved_ns("input") >= device.idle["host_data_loading_ns"]
