"""The evidence of a memory report: curves, what was alive at the peak, fragmentation, failures, growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyze.blocks import Block, Column, Kind, Section, Series, Stat, Table
from analyze.snapshot import Composition, DeviceMemory, Holding
from analyze.units import memory, plural

DEFINITIONS = {
    "requested": "sizes as asked for; falls when a free completes",
    "allocated": "rounded sizes, as torch.cuda.memory_allocated() counts them; falls when a free is asked for; "
    "allocations that were freed are rounded up to 512 bytes, since their own rounding is not recorded",
    "active": "rounded sizes; falls when a free completes, so memory that a stream still uses counts",
    "reserved": "what the allocator has from the driver",
    "before_recording": "the state at the end minus all recorded changes",
    "peak": "the largest requested size; the first event that reaches it",
    "site": "innermost Python frame outside torch and einops, else the backward node",
}
_LISTED = 50
_BRIEF = 8
_MANY = 100
_GROUPINGS = (
    ("by_site", "by place", "place"),
    ("by_stack", "by stack", "place < its callers"),
    ("by_module", "by module", "module"),
    ("by_annotation", "by annotation", "annotation"),
    ("by_pool", "by pool and stream", "pool and stream"),
)


def device_sections(device: DeviceMemory, top: int, *, alone: bool, brief: bool) -> Iterator[Section]:
    """The sections of one device.

    Args:
        device: its figures.
        top: rows of a one-screen table.
        alone: there is no other device to distinguish it from.
        brief: it is the one that a one-screen report shows.
    """
    of = "" if alone else f" of {device.label}"
    key = f"device-{device.id}"
    if device.events:
        yield Section(f"{key}-timeline", f"Memory over time{of}", tuple(_curves(device, brief=brief)))
        yield Section(f"{key}-peak", f"Alive at the peak{of}", tuple(_groupings(device, min(top, _BRIEF), brief=brief)))
    yield Section(f"{key}-reserved", f"Reserved memory{of}", tuple(_reserved(device, brief=brief)))
    if device.ooms:
        yield Section(f"{key}-oom", f"Out of memory{of}", (_failures(device),))
    if device.growth.missing is None:
        yield Section(f"{key}-growth", f"Growth from step to step{of}", tuple(_growth(device, brief=brief)))


def listed(devices: Sequence[DeviceMemory]) -> Section:
    """All devices in one table."""
    heads = ("before", "peak requested", "end", "reserved peak")
    table = Table(
        title="Devices",
        columns=(
            Column("device", Kind.TEXT),
            Column("events", Kind.COUNT),
            *(Column(head, Kind.MEMORY) for head in heads),
        ),
        rows=tuple(
            (
                d.label,
                d.events,
                d.before_recording_bytes,
                d.requested_peak_bytes,
                d.requested_end_bytes,
                d.reserved_peak_bytes,
            )
            for d in devices
        ),
        brief=len(devices),
    )
    return Section("devices", "Devices", (table,))


def _curves(device: DeviceMemory, *, brief: bool) -> Iterator[Block]:
    line, top = device.timeline, device.reserved_peak_bytes
    for name in ("requested", "allocated", "active", "reserved"):
        points = getattr(line, f"{name}_bytes")
        shown = brief and name in ("requested", "reserved")
        yield Series(name, Kind.MEMORY, points, max(top, *points), brief=shown)


def holdings_table(title: str, head: str, rows: Sequence[Holding], whole: int, brief: int) -> Table:
    """Holdings with their share of the peak."""
    return Table(
        title=title,
        columns=(
            Column(head, Kind.CODE),
            Column("size", Kind.MEMORY),
            Column("of peak", Kind.SHARE),
            Column("count", Kind.COUNT),
        ),
        rows=tuple((one.label, one.size_bytes, one.size_bytes / whole if whole else None, one.count) for one in rows),
        brief=brief,
        total=len(rows),
    )


def folded(rows: Sequence[Holding], most: int) -> tuple[Holding, ...]:
    """The first rows and the rest as one, so that the sum stays."""
    if len(rows) <= most:
        return tuple(rows)
    rest = rows[most:]
    label = f"{len(rest):,} others"
    return (*rows[:most], Holding(label, sum(one.size_bytes for one in rest), sum(one.count for one in rest)))


def shortened(held: Composition) -> dict[str, object]:
    """A composition with its long tails folded, as JSON has it."""
    names = (*(name for name, _, _ in _GROUPINGS), "before_recording")
    return {
        "event": held.event,
        "size_bytes": held.size_bytes,
        **{name: folded(getattr(held, name), _MANY) for name in names},
    }


def _groupings(device: DeviceMemory, shown: int, *, brief: bool) -> Iterator[Block]:
    whole = device.requested_peak_bytes
    for name, by, head in _GROUPINGS:
        rows = folded(getattr(device.at_peak, name), _LISTED)
        if len(rows) > 1 or name == "by_site":
            yield holdings_table(f"Alive at the peak, {by}", head, rows, whole, shown * (brief and name == "by_site"))
    early = folded(device.at_peak.before_recording, _LISTED)
    if len(early) > 1:
        yield holdings_table("Allocated before recording, by place as far as known", "place", early, whole, 0)


def _reserved(device: DeviceMemory, *, brief: bool) -> Iterator[Block]:
    unused = device.reserved_end_bytes - device.allocated_end_bytes
    kept = sum(pool.state.free_segments_bytes for pool in device.pools if pool.private)
    private = f" ({memory(kept)} of it in private pools)" if kept else ""
    text = (
        f"{memory(device.reserved_end_bytes)} at the end, {memory(device.allocated_end_bytes)} of it allocated; "
        f"{memory(unused)} unused: {memory(device.free_segments_bytes)} in free segments{private}, "
        f"{memory(device.inactive_split_bytes)} split off, {memory(device.pending_free_bytes)} pending. "
        f"Rounding {memory(device.rounding_bytes)}; largest free block {memory(device.largest_free_block_bytes)}."
    )
    yield Stat("Reserved", text, brief=brief)
    if device.outside_bytes is not None and device.device_total_bytes is not None:
        yield Stat(
            "Outside",
            f"{memory(device.outside_bytes)} of the device's {memory(device.device_total_bytes)} are in use outside "
            "this allocator: context, libraries, other processes.",
            brief=brief,
        )
    yield Table(
        title="Reserved memory by pool and stream",
        columns=(
            Column("pool", Kind.TEXT),
            Column("stream", Kind.COUNT),
            Column("segments", Kind.COUNT),
            *(Column(head, Kind.MEMORY) for head in ("reserved", "allocated", "free", "split", "pending", "largest")),
        ),
        rows=tuple(
            (
                pool.pool,
                pool.stream,
                pool.segments,
                pool.state.reserved_bytes,
                pool.state.allocated_bytes,
                pool.state.free_segments_bytes,
                pool.state.inactive_split_bytes,
                pool.state.pending_free_bytes,
                pool.state.largest_free_block_bytes,
            )
            for pool in device.pools[:_LISTED]
        ),
        note="free: whole segments, which empty_cache() gives back, those of a private pool only when no CUDA graph or "
        "MemPool holds it any more. split: stuck beside blocks in use. pending: freed, "
        "still in use by a stream. An allocation is served from its own pool and stream only.",
        total=len(device.pools),
    )


def _failures(device: DeviceMemory) -> Table:
    heads = ("asked", "device free", "reserved", "unused", "largest piece")
    return Table(
        title="Allocations that failed",
        columns=(
            Column("place", Kind.CODE),
            Column("event", Kind.COUNT),
            *(Column(head, Kind.MEMORY) for head in heads),
            Column("cause", Kind.TEXT),
        ),
        rows=tuple(
            (
                one.site,
                one.event,
                one.asked_bytes,
                one.device_free_bytes,
                one.reserved_bytes,
                one.unused_bytes,
                one.largest_free_block_bytes,
                one.cause,
            )
            for one in device.ooms[:_LISTED]
        ),
        note="Pieces are measured at the failure; freed neighbours are rounded to 512 bytes.",
        total=len(device.ooms),
    )


def _growth(device: DeviceMemory, *, brief: bool) -> Iterator[Block]:
    growth = device.growth
    count = plural(len(growth.steps), "step")
    if not growth.growing:
        yield Stat("Growth", f"none: no place has allocations of two of the {count} left at the end", brief=brief)
        return
    total = sum(one.size_bytes for one in growth.growing)
    first = growth.growing[0]
    yield Stat(
        "Growth",
        f"{memory(total)} of allocations from several of the {count} are still there at the end; most: "
        f"{memory(first.size_bytes)} by {first.label}.",
        brief=brief,
    )
    yield Table(
        title="Grows from step to step and stays",
        columns=(
            Column("place", Kind.CODE),
            Column("left at the end", Kind.MEMORY),
            Column("count", Kind.COUNT),
            Column("of steps", Kind.TEXT),
            Column("first step", Kind.MEMORY),
            Column("last step", Kind.MEMORY),
        ),
        rows=tuple(
            (
                one.label,
                one.size_bytes,
                one.count,
                f"{sum(size > 0 for size in one.bytes_per_step)} of {len(growth.steps)}",
                one.bytes_per_step[0],
                one.bytes_per_step[-1],
            )
            for one in growth.growing[:_LISTED]
        ),
        total=len(growth.growing),
    )
