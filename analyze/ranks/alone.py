"""What one rank's trace says of its collectives: sizes, times, and bounds, as waiting and transfer are one there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.metrics import DeviceTime
from analyze.metrics.collectives import BYTES_PER_S, LATENCY_NS, WAITS, element_bytes
from analyze.ranks.bandwidth import factor, size_bucket
from analyze.ranks.events import collect
from analyze.ranks.groups import dimension_of
from analyze.ranks.matching import lower_median
from analyze.timeline import DeviceTimeline, device_timelines
from analyze.trace import Trace
from analyze.units import TRANSFER_UNITS, duration, memory, percent, plural, scaled

_SECOND_NS = 10**9
_OUTPUTS = ("all_gather", "gather")
_RATED = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Alone(Struct, frozen=True):
    """Collectives of one rank that are alike.

    Attributes:
        kind: all_reduce, all_gather ...
        group: process group by name, or its stream.
        dimension: parallel dimension of the group.
        bucket_bytes: message size, the power of two below it; None where not recorded.
        count: how many.
        sum_ns: their kernels added up, waiting and data alike.
        exposed_ns: of that, what no computation covers.
        p50_ns: lower median of one kernel.
        busbw_at_least: bytes per s: bus bandwidth of the median kernel, were it all data; None where not known.
        waiting: kernels whose bytes explain no more than a tenth of their time.
        waiting_ns: these kernels added up.
    """

    kind: str
    group: str
    dimension: str
    bucket_bytes: int | None
    count: int
    sum_ns: int
    exposed_ns: int
    p50_ns: int
    busbw_at_least: int | None
    waiting: int
    waiting_ns: int


def measure_alone(trace: Trace, line: DeviceTimeline) -> tuple[Alone, ...]:
    """The collectives of a device inside its window, most exposed first."""
    events, groups, _ = collect(trace, line)
    base, (low, high) = trace.metadata.base_ns, line.window
    events = events.filter(pl.col("start_ns").is_between(low + base, high + base, closed="left"))
    if not events.height:
        return ()
    start, end = events["start_ns"].to_numpy() - base, events["end_ns"].to_numpy() - base
    each = element_bytes(events["element_type"])
    outputs = pl.col("kind").is_in(_OUTPUTS)
    elements = pl.when(outputs).then("out_elements").otherwise("in_elements")
    rows = events.with_columns(
        size=elements * each,
        dur=pl.Series(end - start),
        exposed=pl.Series(end - start - line.by_class[0].covered_within(start, end)),
    ).join(groups, on="group", how="left", maintain_order="left", suffix="_of_group")
    rows = rows.with_columns(
        bucket=pl.Series([None if s is None or s < 0 else size_bucket(s) for s in rows["size"]], dtype=pl.Int64)
    )
    key = ["kind", "group", "bucket"]
    world = trace.metadata.world_size
    found = [_alike(mine, world) for _, mine in rows.group_by(key, maintain_order=True)]
    return tuple(sorted(found, key=lambda one: (-one.exposed_ns, -one.sum_ns, one.kind, one.group)))


def _alike(rows: pl.DataFrame, world: int | None) -> Alone:
    first = rows.row(0, named=True)
    dur, size = rows["dur"].to_numpy(), rows["size"]
    members = len(first["members"]) if first["members"] is not None else first["size_of_group"]
    needed = LATENCY_NS + size.fill_null(0).to_numpy() * (_SECOND_NS // BYTES_PER_S)
    waiting = (dur >= WAITS * needed) & size.is_not_null().to_numpy()
    rate = None
    if size.null_count() == 0 and members and first["kind"] in _RATED and (dur > 0).all():
        up, down = factor(first["kind"], members)
        rates = [s * _SECOND_NS * up // (d * down) for s, d in zip(size.to_list(), dur.tolist(), strict=True)]
        rate = lower_median(np.array(rates))
    return Alone(
        kind=first["kind"],
        group=first["name"] if first["name"] is not None else f"stream {first['stream']}",
        dimension=dimension_of(first["description"], members, world),
        bucket_bytes=first["bucket"],
        count=rows.height,
        sum_ns=int(dur.sum()),
        exposed_ns=int(rows["exposed"].sum()),
        p50_ns=lower_median(dur),
        busbw_at_least=rate or None,
        waiting=int(waiting.sum()),
        waiting_ns=int(dur[waiting].sum()),
    )


def alone_section(trace: Trace, device: DeviceTime) -> Section | None:
    """The section "Collectives" of a report on one trace; None without collectives."""
    if not (trace.activities["category"].cast(pl.String) == "communication").any():
        return None
    inside = trace.activities.filter(
        pl.col("start_ns").is_between(device.window_start_ns, device.window_start_ns + device.window_ns, closed="left")
    )
    lines = device_timelines(trace.activities, inside)
    line = next((one for one in lines if (one.process, one.device) == (device.process, device.id)), None)
    found = measure_alone(trace, line) if line is not None else ()
    if not found:
        return None
    return Section("collectives", "Collectives", (*_stats(found, device), _table(found)))


def _stats(found: tuple[Alone, ...], device: DeviceTime) -> Iterator[Stat]:
    waiting, ns = sum(one.waiting for one in found), sum(one.waiting_ns for one in found)
    if waiting and device.window_ns:
        few = min((one for one in found if one.waiting), key=lambda one: one.bucket_bytes or 0)
        text = (
            f"{plural(waiting, 'collective')} of {duration(ns)} in all ({percent(ns / device.window_ns)} of window) "
            f"move too few bytes for their time, such as {few.kind} of about {memory(few.bucket_bytes or 0)} in "
            f"{duration(few.p50_ns)}: nearly all of that is waiting for other ranks"
        )
        yield Stat("Waiting", text, brief=False)


def _table(found: tuple[Alone, ...]) -> Table:
    return Table(
        title="Collectives",
        columns=(
            Column("kind", Kind.TEXT),
            Column("group", Kind.CODE),
            Column("dimension", Kind.TEXT),
            Column("size", Kind.FIGURE),
            Column("n", Kind.COUNT),
            Column("time", Kind.TIME),
            Column("exposed", Kind.TIME),
            Column("p50", Kind.TIME),
            Column("busbw at least", Kind.FIGURE),
        ),
        rows=tuple(
            (
                one.kind,
                one.group,
                one.dimension,
                memory(one.bucket_bytes) if one.bucket_bytes is not None else "–",
                one.count,
                one.sum_ns,
                one.exposed_ns,
                one.p50_ns,
                f"{scaled(one.busbw_at_least, TRANSFER_UNITS)}/s" if one.busbw_at_least else "–",
            )
            for one in found
        ),
        note="One rank's trace does not show how much of a kernel is waiting for other ranks: times hold waiting and "
        "transfer, and the bandwidth of the median kernel is a lower bound. Sizes are rounded down to a power of two. "
        "Pass the folder of all ranks to separate waiting from transfer.",
    )
