"""Every figure of one device of a snapshot."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from analyze.notices import Notice
from analyze.snapshot.composition import BEFORE_OLDEST, BEFORE_RECORDING, Composition, compose
from analyze.snapshot.fragments import PoolState, measure_fragments, measure_pools
from analyze.snapshot.growth import Growth, measure_growth
from analyze.snapshot.history import OVERFLOWED, history_notices, overflow, peak_notices, unknown_actions
from analyze.snapshot.oom import OutOfMemory, explain_ooms
from analyze.snapshot.outside import RecordedBeside
from analyze.snapshot.ranges import find_ranges
from analyze.snapshot.replay import BEFORE, AllocatorReplay, Curve, replay
from analyze.snapshot.tables import Events, Segment, Snapshot

_SAMPLES = 240
PINNED = -1


class Timeline(Struct, frozen=True):
    """Four curves over the recorded events, in bytes: the start, the largest value of each part, the end.

    Attributes:
        events_per_point: how many events one point stands for, the last one perhaps fewer.
        requested_bytes: sizes asked for.
        allocated_bytes: rounded sizes, until the free is asked for.
        active_bytes: rounded sizes, until the free is complete.
        reserved_bytes: from the driver.
    """

    events_per_point: int
    requested_bytes: tuple[int, ...]
    allocated_bytes: tuple[int, ...]
    active_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]


class DeviceMemory(Struct, frozen=True):
    """The memory of one device. Sizes in bytes; "requested" as asked for, "allocated" and "active" rounded.

    Attributes:
        id: device index; -1 for pinned host memory.
        label: as the report names it.
        events: recorded events.
        actions: how many of each kind.
        before_recording_bytes: requested bytes that existed before the first event.
        requested_end_bytes: requested at the end.
        requested_peak_bytes: largest requested.
        peak_event: index of the event that reached it, -1 for the start.
        peak_time_us: its time, microseconds of the Unix epoch; None where not recorded.
        peak_site: who allocated then; empty for the start.
        recorded_us: time from the first to the last event; None where not recorded.
        stacks_known: at least one event has a stack.
        allocated_end_bytes: allocated at the end.
        allocated_peak_bytes: largest allocated; sizes of freed allocations are rounded to 512 bytes.
        active_end_bytes: active at the end.
        active_peak_bytes: largest active.
        reserved_end_bytes: reserved at the end.
        reserved_peak_bytes: largest reserved.
        free_segments_bytes: at the end, see `Fragments`; so the next four.
        inactive_split_bytes: stuck in partly used segments.
        rounding_bytes: rounded minus requested.
        pending_free_bytes: freed, still in use by a stream.
        largest_free_block_bytes: largest free block.
        device_total_bytes: memory of the device, None where not noted.
        outside_bytes: in use on the device and not reserved here: context, libraries, other processes.
        mismatch_bytes: how far events and state at the end are apart; negative where frees were not recorded, and then
            peak and curves are those of the events alone.
        overflow: whether the ring of events overflowed: "yes", "possible", "none seen".
        pools: the state at the end by pool and stream.
        at_peak: what was alive at the peak.
        at_end: what is alive at the end.
        ooms: allocations that failed.
        growth: what grows from step to step.
        timeline: the curves.
    """

    id: int
    label: str
    events: int
    actions: dict[str, int]
    before_recording_bytes: int
    requested_end_bytes: int
    requested_peak_bytes: int
    peak_event: int
    peak_time_us: int | None
    peak_site: str
    recorded_us: int | None
    stacks_known: bool
    allocated_end_bytes: int
    allocated_peak_bytes: int
    active_end_bytes: int
    active_peak_bytes: int
    reserved_end_bytes: int
    reserved_peak_bytes: int
    free_segments_bytes: int
    inactive_split_bytes: int
    rounding_bytes: int
    pending_free_bytes: int
    largest_free_block_bytes: int
    device_total_bytes: int | None
    outside_bytes: int | None
    mismatch_bytes: int
    overflow: str
    pools: tuple[PoolState, ...]
    at_peak: Composition
    at_end: Composition
    ooms: tuple[OutOfMemory, ...]
    growth: Growth
    timeline: Timeline


def measure_snapshot(
    snapshot: Snapshot, noted: RecordedBeside | None = None
) -> tuple[tuple[DeviceMemory, ...], tuple[Notice, ...]]:
    """Every device with a segment or an event, pinned host memory last, and what is odd about them.

    Args:
        snapshot: the snapshot.
        noted: what was noted beside it.
    """
    found: list[DeviceMemory] = []
    notices: list[Notice] = []
    traces = dict(enumerate(snapshot.traces))
    for device in sorted({*(d for d, events in traces.items() if len(events)), *(s.device for s in snapshot.segments)}):
        segments = [segment for segment in snapshot.segments if segment.device == device]
        found.append(_measure(snapshot, device, traces.get(device, NO_EVENTS), segments, noted, notices))
    if snapshot.pinned_trace is not None or snapshot.pinned_segments:
        events = snapshot.pinned_trace or NO_EVENTS
        found.append(_measure(snapshot, PINNED, events, snapshot.pinned_segments, None, notices))
    return tuple(found), tuple(notices)


def _measure(
    snapshot: Snapshot,
    device: int,
    events: Events,
    segments: Sequence[Segment],
    noted: RecordedBeside | None,
    notices: list[Notice],
) -> DeviceMemory:
    label = "pinned host memory" if device == PINNED else f"device {device}"
    known = snapshot.has_segments or device == PINNED
    played = replay(events, segments, end_known=known)
    ranges = find_ranges(snapshot.annotations, device)
    peak = played.requested.peak_event
    state = overflow(snapshot, events, played, noted)
    notices += history_notices(label, events, played, state)
    notices += unknown_actions(label, events)
    parts = measure_fragments(segments)
    mine = noted if noted is not None and noted.events == len(events) else None
    notices += peak_notices(label, played, mine)
    before = BEFORE_OLDEST if state == OVERFLOWED else BEFORE_RECORDING
    return DeviceMemory(
        id=device,
        label=label,
        events=len(events),
        actions=dict(Counter(events.action)),
        before_recording_bytes=played.requested.start_bytes,
        requested_end_bytes=played.requested.end_bytes,
        requested_peak_bytes=played.requested.peak_bytes,
        peak_event=peak,
        peak_time_us=events.time_us[peak] if peak != BEFORE else None,
        peak_site=snapshot.stacks.site(events.stack[peak]) if peak != BEFORE else "",
        recorded_us=_recorded(events),
        stacks_known=any(events.stack),
        allocated_end_bytes=played.allocated.end_bytes,
        allocated_peak_bytes=played.allocated.peak_bytes,
        active_end_bytes=played.active.end_bytes,
        active_peak_bytes=played.active.peak_bytes,
        reserved_end_bytes=played.reserved.end_bytes,
        reserved_peak_bytes=played.reserved.peak_bytes,
        free_segments_bytes=parts.free_segments_bytes,
        inactive_split_bytes=parts.inactive_split_bytes,
        rounding_bytes=parts.rounding_bytes,
        pending_free_bytes=parts.pending_free_bytes,
        largest_free_block_bytes=parts.largest_free_block_bytes,
        device_total_bytes=mine.device_total_bytes if mine else None,
        outside_bytes=_outside(mine, parts.reserved_bytes),
        mismatch_bytes=played.mismatch_bytes,
        overflow=state,
        pools=measure_pools(segments),
        at_peak=compose(events, played, segments, ranges, snapshot.stacks, peak, before=before),
        at_end=compose(events, played, segments, ranges, snapshot.stacks, None, before=before),
        ooms=explain_ooms(events, played, segments, snapshot.stacks),
        growth=measure_growth(events, played, ranges, snapshot.stacks),
        timeline=_timeline(played, len(events)),
    )


def _recorded(events: Events) -> int | None:
    first, last = (events.time_us[0], events.time_us[-1]) if len(events) else (None, None)
    return None if first is None or last is None else max(last - first, 0)


def _outside(noted: RecordedBeside | None, reserved_bytes: int) -> int | None:
    if noted is None or noted.device_total_bytes is None or noted.device_free_bytes is None:
        return None
    return noted.device_total_bytes - noted.device_free_bytes - reserved_bytes


def _timeline(played: AllocatorReplay, events: int) -> Timeline:
    """The curves in few points, each the largest value of its part: no peak is lost."""
    each = max(-(-events // _SAMPLES), 1)

    def points(curve: Curve) -> tuple[int, ...]:
        parts = (curve.values[i : i + each].max() for i in range(0, events, each))
        return (curve.start_bytes, *map(int, parts), curve.end_bytes)

    curves = (played.requested, played.allocated, played.active, played.reserved)
    return Timeline(each, *(points(curve) for curve in curves))


NO_EVENTS = Events([], [], [], [], [], array("I"), [], [], [])
