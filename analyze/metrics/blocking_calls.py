"""Blocking calls and their two costs: a wait is not a loss, only the idle time that follows it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.settings import Definitions
from analyze.timeline import Host, Intervals
from analyze.trace import Timed, Trace
from analyze.units import duration, plural

_DEVICE_SYNC = r"DeviceSynchronize|cuCtxSynchronize|cudaThreadSynchronize"
_LISTED = 12


@dataclass(frozen=True, slots=True)
class BlockingCall:
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


@dataclass(frozen=True, slots=True)
class Stalls:
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


def cost_of_syncs(gaps: pl.DataFrame, blocking: pl.DataFrame) -> pl.DataFrame:
    """Add to each gap the blocking call that it began in (row of `blocking`) and the two costs."""
    began_in_gap = pl.col("launch_start_ns").is_between(pl.col("start_ns"), pl.col("end_ns")).fill_null(value=False)
    call = Timed(blocking).innermost(gaps["thread"], gaps["start_ns"])
    length = pl.col("end_ns") - pl.col("start_ns")
    call_ns = blocking["dur_ns"].gather(call) if blocking.height else pl.Series([None] * gaps.height, dtype=pl.Int64)
    hit = began_in_gap & pl.col("call").is_not_null() & pl.col("thread").is_not_null()
    return (
        gaps.with_columns(call=call, call_ns=call_ns)
        .with_columns(
            after_sync_ns=pl.when(hit).then(length).otherwise(0),
            exposed_sync_ns=pl.when(hit).then(pl.min_horizontal(length, "call_ns")).otherwise(0),
        )
        .with_columns(call=pl.when(hit).then("call"))
        .drop("call_ns")
    )


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


def measure_stalls(
    trace: Trace,
    host: Host,
    gaps: pl.DataFrame,
    busy: Intervals,
    within: tuple[int, int] | None,
    final: int | None,
) -> Stalls:
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
        .sort("exposed_sync_ns", "blocked_ns", "name", "trigger", descending=[True, True, False, False])
    )
    rows = tuple(BlockingCall(**row) for row in grouped.iter_rows(named=True))
    return Stalls(calls.height, int(np.sum(calls["dur_ns"].to_numpy())), own, rows)


def section(stalls: Stalls) -> Section:
    """Blocking calls: how long the host waited, and what of it cost the device."""
    exposed = sum(call.exposed_sync_ns for call in stalls.by_trigger)
    text = "no blocking call"
    if stalls.calls:
        text = (
            f"{plural(stalls.calls, 'blocking call')}, {duration(stalls.blocked_ns)}; "
            f"exposed: {duration(exposed)} of idle GPU"
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
