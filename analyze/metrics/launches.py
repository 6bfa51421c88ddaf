"""Launches: how long from the call to the device, how deep the queue (docs/definitions.md)."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.metrics.device_time import HEADLINE
from analyze.metrics.question import Answers, Question
from analyze.metrics.spread import Spread, spread_of
from analyze.settings import Definitions
from analyze.timeline.blocking import LAUNCH_CALL
from analyze.trace import Trace
from analyze.units import duration, percent, plural

_CALLS_LISTED = 12
_CAPTURE_CALL = r"StreamBeginCapture|StreamEndCapture"


class ApiCalls(Struct, frozen=True):
    """API calls of one name.

    Attributes:
        name: API call.
        count: how many.
        sum_ns: time inside them.
        p50_ns: median.
        max_ns: longest.
    """

    name: str
    count: int
    sum_ns: int
    p50_ns: int
    max_ns: int


class Launches(Struct, frozen=True):
    """How work got to the devices.

    Attributes:
        calls: API calls that launched something: those with activities, and launch calls without.
        launch_calls: kernel and graph launch calls.
        complete_calls: those of them with a recorded activity.
        missing_at_start: launch calls without one before the first with one.
        capture: calls that capture a graph are in the file; launches inside a capture have no activity by nature.
        linked: activities with a recorded launch.
        unlinked: activities without.
        latency_ns: call start to activity start, over launches that met an idle stream.
        queue_time_ns: call end to activity start, over the others.
        max_queue_depth: most linked activities launched and not yet begun.
        skewed: launches whose activity starts before the call.
        worst_skew_ns: by how much at most.
        short_kernels: kernels below `short_kernel_ns`.
        kernels: timed kernels.
        api_calls: API calls by name, most time first.
    """

    calls: int
    launch_calls: int
    complete_calls: int
    missing_at_start: int
    capture: bool
    linked: int
    unlinked: int
    latency_ns: Spread | None
    queue_time_ns: Spread | None
    max_queue_depth: int
    skewed: int
    worst_skew_ns: int
    short_kernels: int
    kernels: int
    api_calls: tuple[ApiCalls, ...]

    @property
    def complete_share(self) -> float:
        """Share of launch calls with a recorded activity, 1 without any launch call."""
        return self.complete_calls / self.launch_calls if self.launch_calls else 1.0


def measure_launches(
    trace: Trace, selected: pl.DataFrame, within: tuple[int, int] | None, definitions: Definitions
) -> Launches:
    """Launch statistics of the selected activities.

    Args:
        trace: the trace.
        selected: its selected activities.
        within: host interval of the selection, None for everything.
        definitions: limits.
    """
    timed = selected.filter("timed")
    linked = timed.filter(pl.col("launch").is_not_null())
    launches = trace.launches.join(linked.select("launch").unique(), on="launch", how="semi", maintain_order="left")
    calls = trace.runtime.with_row_index("launch")
    if within is not None:
        calls = calls.filter(pl.col("start_ns").is_between(*within))
    launching = calls.filter(pl.col("name").cast(pl.String).str.contains(LAUNCH_CALL))
    recorded = launching.join(trace.activities.select("launch"), on="launch", how="semi")
    skew = (launches["start_ns"] - launches["first_start_ns"]).filter(launches["latency_ns"].is_null())
    idle = pl.col("idle_stream")
    kernels = timed.filter(pl.col("kind").cast(pl.String) == "kernel")
    names = trace.runtime["name"].cast(pl.String)
    return Launches(
        calls=launches.height + launching.height - recorded.height,
        launch_calls=launching.height,
        complete_calls=recorded.height,
        missing_at_start=_missing_at_start(launching, recorded),
        capture=bool(names.str.contains(_CAPTURE_CALL).any()),
        linked=linked.height,
        unlinked=timed.height - linked.height,
        latency_ns=spread_of(launches.filter(idle)["latency_ns"]),
        queue_time_ns=spread_of(launches.filter(~idle)["queue_time_ns"]),
        max_queue_depth=_max_depth(linked),
        skewed=len(skew),
        worst_skew_ns=int(skew.max()) if len(skew) else 0,
        short_kernels=kernels.filter(pl.col("dur_ns") < definitions.short_kernel_ns).height,
        kernels=kernels.height,
        api_calls=_by_name(calls),
    )


def _missing_at_start(launching: pl.DataFrame, recorded: pl.DataFrame) -> int:
    """Launch calls before the first one that has an activity."""
    first = recorded["start_ns"].min()
    return launching.filter(pl.col("start_ns") < first).height if first is not None else 0


def _max_depth(linked: pl.DataFrame) -> int:
    """Most activities whose launch has begun and that have not; skewed ones never wait."""
    waiting = linked.filter(pl.col("start_ns") >= pl.col("launch_start_ns"))
    times = np.concatenate((waiting["start_ns"].to_numpy(), waiting["launch_start_ns"].to_numpy()))
    change = np.repeat(np.array([-1, 1]), waiting.height)
    depth = np.cumsum(change[np.argsort(times, kind="stable")])
    return max(int(depth.max()), 0) if len(depth) else 0


def _by_name(calls: pl.DataFrame) -> tuple[ApiCalls, ...]:
    grouped = (
        calls.filter(pl.col("dur_ns").is_not_null())
        .group_by(pl.col("name").cast(pl.String))
        .agg(
            count=pl.len(),
            sum_ns=pl.col("dur_ns").sum(),
            p50_ns=pl.col("dur_ns").quantile(0.5, "lower"),
            max_ns=pl.col("dur_ns").max(),
        )
        .with_columns(pl.col("p50_ns").cast(pl.Int64))
        .sort("sum_ns", "name", descending=[True, False])
    )
    return tuple(ApiCalls(**row) for row in grouped.iter_rows(named=True))


def section(launches: Launches, window_ns: int) -> Section:
    """Launch statistics on three lines, and the API calls."""
    per_second = launches.calls * 10**9 // window_ns if window_ns else 0
    short = percent(launches.short_kernels / launches.kernels) if launches.kernels else "0%"
    table = Table(
        title="API calls with most time",
        columns=(
            Column("call", Kind.CODE),
            Column("count", Kind.COUNT),
            Column("time", Kind.TIME),
            Column("median", Kind.TIME),
            Column("longest", Kind.TIME),
        ),
        rows=tuple((c.name, c.count, c.sum_ns, c.p50_ns, c.max_ns) for c in launches.api_calls[:_CALLS_LISTED]),
        total=len(launches.api_calls),
    )
    idle, busy = launches.latency_ns, launches.queue_time_ns
    at_once = f"median {duration(idle.p50_ns)} on an idle stream" if idle else "no launch met an idle stream"
    queued = f", {duration(busy.p50_ns)} behind other work" if busy else ""
    blocks = (
        Stat(
            "Launch",
            f"{plural(launches.calls, 'launch', 'launches')} ({per_second:,}/s); {short} of "
            f"{plural(launches.kernels, 'kernel')} took less than 10 µs",
        ),
        Stat("Latency", f"{at_once}{queued}; at most {launches.max_queue_depth:,} queued at once", brief=False),
        Stat("Launch latency on an idle stream", _spread(idle), brief=False),
        Stat("Queue time behind other work", _spread(busy), brief=False),
        table,
    )
    return Section("launches", "Launches", blocks)


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "none"
    times = f"p50 {duration(spread.p50_ns)}, p90 {duration(spread.p90_ns)}, p99 {duration(spread.p99_ns)}"
    return f"{times}, max {duration(spread.max_ns)} (n = {spread.n:,})"


def _section(answers: Answers) -> Section | None:
    main = answers.ask(HEADLINE)
    return section(answers.ask(QUESTION), main.window_ns) if main else None


QUESTION = Question(
    "launches",
    lambda a: measure_launches(a.trace, a.selection.activities, a.selection.host_interval, a.definitions),
    answer=Launches,
    section=_section,
)
