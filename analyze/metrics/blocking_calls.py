"""Blocking calls and their two costs: a wait is not a loss, only the idle time that follows it is."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.metrics.foundations import GAP_PARTS, HOST, TIMELINES
from analyze.metrics.question import Answers, Question
from analyze.settings import Definitions
from analyze.timeline import Host, Intervals, join
from analyze.timeline.intervals import NOTHING
from analyze.trace import Trace
from analyze.units import duration, plural

_DEVICE_SYNC = r"DeviceSynchronize|cuCtxSynchronize|cudaThreadSynchronize"
_LISTED = 12
_NUMBERS = ("exposed_sync_ns", "blocked_ns", "count", "device_busy_ns", "after_sync_ns")  # the order of rows
_COSTS = {"call": pl.Int64, "after_sync_ns": pl.Int64, "exposed_sync_ns": pl.Int64}


class BlockingCall(Struct, frozen=True):
    """Blocking calls of one kind: same API call, same trigger.

    Attributes:
        name: API call.
        trigger: innermost op around it, empty outside ops.
        count: how many.
        blocked_ns: time inside them.
        device_busy_ns: time of it during which some device worked: the wait that was needed.
        after_sync_ns: gaps that began inside them and whose launch began in the gap.
        exposed_sync_ns: per such gap the smaller of gap and call: what would vanish had they returned at once.
    """

    name: str
    trigger: str
    count: int
    blocked_ns: int
    device_busy_ns: int
    after_sync_ns: int
    exposed_sync_ns: int


class BlockingCalls(Struct, frozen=True):
    """All blocking calls of the selection, the profiler's own last one apart.

    Attributes:
        calls: how many.
        blocked_ns: time inside them.
        profiler_final_ns: the profiler's own last device synchronisation, None when there is none.
        by_trigger: grouped, most exposed first.
    """

    calls: int
    blocked_ns: int
    profiler_final_ns: int | None
    by_trigger: tuple[BlockingCall, ...]


def find_final_sync(trace: Trace, blocking: pl.DataFrame, definitions: Definitions) -> int | None:
    """Row of `blocking` with the profiler's own last device synchronisation.

    It is a device synchronisation outside ops, the last row of its thread, after the last step, and ends just before
    the profiler's span does.
    """
    span_end = (trace.spans["start_ns"] + trace.spans["dur_ns"]).max()
    candidates = blocking.with_row_index("row").filter(pl.col("name").cast(pl.String).str.contains(_DEVICE_SYNC))
    if span_end is None or not candidates.height:
        return None
    at = candidates.sort("start_ns").tail(1)
    last = at.row(0, named=True)
    end = last["start_ns"] + last["dur_ns"]
    later = [
        rows.filter((pl.col("thread") == last["thread"]) & (pl.col("start_ns") > last["start_ns"])).height
        for rows in (trace.ops, trace.runtime)
    ]
    last_step = trace.steps["end_ns"].max()
    inside = trace.timed_ops.innermost(at["thread"], at["start_ns"])[0]
    own = (
        inside is None
        and not any(later)
        and abs(int(span_end) - end) <= definitions.final_sync_slack_ns
        and (last_step is None or last["start_ns"] >= last_step)
    )
    return int(last["row"]) if own else None


def measure_blocking(
    trace: Trace,
    host: Host,
    gaps: pl.DataFrame,
    busy: Intervals,
    within: tuple[int, int] | None,
    final: int | None,
) -> BlockingCalls:
    """Count and cost the blocking calls.

    Args:
        trace: the trace.
        host: its host side.
        gaps: the gaps of all devices with `call` and the costs.
        busy: instants at which any device works.
        within: host interval of the selection, None for everything.
        final: row of the profiler's own synchronisation.
    """
    blocking = host.blocking.with_row_index("row")
    own = blocking["dur_ns"][final] if final is not None else None
    calls = blocking.filter(pl.col("row") != (-1 if final is None else final))
    if within is not None:
        calls = calls.filter(pl.col("start_ns").is_between(*within))
    costs = (
        gaps.filter(pl.col("call").is_not_null()).group_by("call").agg(pl.col("after_sync_ns", "exposed_sync_ns").sum())
    )
    start = calls["start_ns"].to_numpy()
    trigger = trace.timed_ops.names(calls["thread"], calls["start_ns"])
    grouped = (
        calls.with_columns(
            trigger=trigger.cast(pl.String).fill_null(""),
            name=pl.col("name").cast(pl.String),
            device_busy_ns=pl.Series(busy.covered_within(start, start + calls["dur_ns"].to_numpy()), dtype=pl.Int64),
        )
        .join(costs.with_columns(pl.col("call").cast(pl.UInt32)), left_on="row", right_on="call", how="left")
        .group_by("name", "trigger")
        .agg(
            count=pl.len(),
            blocked_ns=pl.col("dur_ns").sum(),
            device_busy_ns=pl.col("device_busy_ns").sum(),
            after_sync_ns=pl.col("after_sync_ns").sum(),
            exposed_sync_ns=pl.col("exposed_sync_ns").sum(),
        )
        .sort(*_NUMBERS, "name", "trigger", descending=[*(True for _ in _NUMBERS), False, False])
    )
    rows = tuple(BlockingCall(**row) for row in grouped.iter_rows(named=True))
    return BlockingCalls(calls.height, int(np.sum(calls["dur_ns"].to_numpy())), own, rows)


def section(stalls: BlockingCalls) -> Section:
    """Blocking calls: how long the host waited, and what of it cost the device."""
    exposed = sum(call.exposed_sync_ns for call in stalls.by_trigger)
    text = "no call waited for the GPU"
    if stalls.calls:
        text = (
            f"the host waited in {plural(stalls.calls, 'blocking call')} for {duration(stalls.blocked_ns)}; the GPU "
            f"idled for {duration(exposed)} because of them"
        )
    stats = [Stat("Waits", text, brief=False)]
    if stalls.profiler_final_ns is not None:
        own = f"{duration(stalls.profiler_final_ns)}, not counted above"
        stats.append(Stat("The profiler's own last synchronisation", own, brief=False))
    table = Table(
        title="Blocking calls",
        columns=(
            Column("call", Kind.CODE),
            Column("count", Kind.COUNT),
            Column("blocked", Kind.TIME),
            Column("GPU idle after", Kind.TIME),
            Column("exposed", Kind.TIME),
        ),
        rows=tuple(
            (_called(c), c.count, c.blocked_ns, c.after_sync_ns, c.exposed_sync_ns) for c in stalls.by_trigger[:_LISTED]
        ),
        total=len(stalls.by_trigger),
        note="A wait is not a loss. Exposed is the idle time that the call caused on the device.",
    )
    return Section("waits", "Blocking calls", (*stats, *((table,) if table.rows else ())))


def _called(call: BlockingCall) -> str:
    return f"{call.name} in {call.trigger}" if call.trigger else call.name


def _measure(answers: Answers) -> BlockingCalls:
    host, lines, gaps = answers.ask(HOST), answers.ask(TIMELINES), answers.ask(GAP_PARTS)
    costs = pl.concat([gap.select(*_COSTS) for gap in gaps]) if gaps else pl.DataFrame(schema=_COSTS)
    busy = join(*(line.busy for line in lines)) if lines else NOTHING
    return measure_blocking(answers.trace, host, costs, busy, answers.selection.host_interval, answers.ask(FINAL_SYNC))


FINAL_SYNC = Question("final-sync", lambda a: find_final_sync(a.trace, a.ask(HOST).blocking, a.definitions))
QUESTION: Question[BlockingCalls] = Question(
    "blocking_calls", _measure, answer=BlockingCalls, section=lambda a: section(a.ask(QUESTION)), on_screen=False
)
