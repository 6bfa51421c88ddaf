"""What is alive at one instant, grouped by who allocated it. Every grouping adds up to the same total."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64
from analyze.snapshot.fragments import pool_name
from analyze.snapshot.ranges import Range, open_ranges
from analyze.snapshot.replay import BEFORE, AllocatorReplay
from analyze.snapshot.stacks import Stacks
from analyze.snapshot.tables import Events, Segment

BEFORE_RECORDING = "allocated before recording"
BEFORE_OLDEST = "allocated before the oldest event that is left"
UNEXPLAINED = "not explained by the recorded events"
_NO_CONTEXT = ("", "N/A")


class Holding(Struct, frozen=True):
    """Allocations with one label.

    Attributes:
        label: who allocated them.
        size_bytes: requested bytes.
        count: how many; 0 where they cannot be counted.
    """

    label: str
    size_bytes: int
    count: int


class Composition(Struct, frozen=True):
    """What is alive at one instant, largest first; each grouping adds up to `size_bytes`.

    Attributes:
        event: index of the event after which it holds, -1 for the start.
        size_bytes: requested bytes.
        by_site: by the innermost Python frame outside torch.
        by_stack: by that frame and its callers.
        by_module: by the innermost module forward.
        by_annotation: by user metadata, category, open range or compiled region.
        by_pool: by pool and stream.
        before_recording: what is known of the allocations from before the recording, by site.
    """

    event: int
    size_bytes: int
    by_site: tuple[Holding, ...]
    by_stack: tuple[Holding, ...]
    by_module: tuple[Holding, ...]
    by_annotation: tuple[Holding, ...]
    by_pool: tuple[Holding, ...]
    before_recording: tuple[Holding, ...]


def compose(
    events: Events,
    replay: AllocatorReplay,
    segments: Sequence[Segment],
    ranges: Sequence[Range],
    stacks: Stacks,
    event: int | None,
    *,
    before: str = BEFORE_RECORDING,
) -> Composition:
    """Group what is alive after an event, or at the end.

    Args:
        events: the device's events.
        replay: the same, replayed.
        segments: its segments at the end, for the pools of old files.
        ranges: its named ranges.
        stacks: all stacks.
        event: index of the event, -1 for the start, None for the state at the end.
        before: label of what existed before the first event.
    """
    last = len(events) - 1
    whole = replay.requested.end_bytes if event is None else replay.requested.at(event)
    alive = _alive(replay, last if event is None else event)
    if event is None:
        event, alive = last, alive[~replay.gone[alive]]
    early = [one for one in replay.early if one.freed_at > event]
    existed = Holding(before, sum(one.size_bytes for one in early), len(early))
    size = np.array(events.size_bytes, np.int64)[alive]
    stack = np.array(events.stack, np.int64)[alive]
    rest = whole - existed.size_bytes - int(size.sum())
    always = [existed, *([Holding(UNEXPLAINED, rest, 0)] if rest else [])]

    def by_stack(label: Callable[[int], str]) -> tuple[Holding, ...]:
        numbers, which = np.unique(stack, return_inverse=True)
        sums, counts = np.zeros(len(numbers), np.int64), np.bincount(which, minlength=len(numbers))
        np.add.at(sums, which, size)
        return _grouped(zip(map(label, numbers.tolist()), sums.tolist(), counts.tolist(), strict=True), always)

    def by_event(labels: Iterable[str]) -> tuple[Holding, ...]:
        return _grouped(((label, one, 1) for label, one in zip(labels, size.tolist(), strict=True)), always)

    places = _Places(segments)
    return Composition(
        event=event,
        size_bytes=whole,
        by_site=by_stack(stacks.site),
        by_stack=by_stack(stacks.path),
        by_module=by_stack(lambda number: stacks.module(number) or "no module on the stack"),
        by_annotation=by_event(_named(events, ranges, alive)),
        by_pool=_grouped(
            (
                *((places.name(events, i), events.size_bytes[i], 1) for i in alive.tolist()),
                *((places.at(one.address, one.stream), one.size_bytes, 1) for one in early),
            ),
            always[1:],
        ),
        before_recording=_grouped(((stacks.site(one.stack), one.size_bytes, 1) for one in early), ()),
    )


def _alive(replay: AllocatorReplay, event: int) -> Int64:
    if event == BEFORE:
        return np.zeros(0, np.int64)
    now = slice(event + 1)
    return np.flatnonzero(replay.is_alloc[now] & (replay.freed_at[now] > event))


def _grouped(rows: Iterable[tuple[str, int, int]], always: Iterable[Holding]) -> tuple[Holding, ...]:
    sums: dict[str, tuple[int, int]] = {}
    for label, size, count in rows:
        known = sums.get(label, (0, 0))
        sums[label] = (known[0] + size, known[1] + count)
    found = [Holding(label, size, count) for label, (size, count) in sums.items()]
    return tuple(sorted((*found, *always), key=lambda held: (-held.size_bytes, held.label)))


def _named(events: Events, ranges: Sequence[Range], alive: Int64) -> Iterable[str]:
    """What the program itself called the time or the thing, for each allocation."""
    times = [events.time_us[i] for i in alive.tolist()]
    for i, around in zip(alive.tolist(), open_ranges(ranges, times), strict=True):
        context = events.context[i] if events.context[i] not in _NO_CONTEXT else ""
        yield events.label[i] or around or context or "no annotation"


class _Places:
    """Which pool and stream an address belongs to, by the segments that are there at the end."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = sorted(segments, key=lambda segment: segment.address)
        self._starts = [segment.address for segment in self._segments]

    def name(self, events: Events, i: int) -> str:
        """Pool and stream of an event."""
        pool = events.pool[i]
        if pool is not None:
            return f"{pool_name(pool)}, stream {events.stream[i]}"
        return self.at(events.address[i], events.stream[i])

    def at(self, address: int | None, stream: int) -> str:
        """Pool and stream at an address; the event's stream where the segment is gone."""
        i = bisect_right(self._starts, address) - 1 if address is not None else -1
        if i >= 0 and address is not None:
            segment = self._segments[i]
            if address < segment.address + segment.total_bytes:
                return f"{pool_name(segment.pool)}, stream {segment.stream}"
        return f"{pool_name(None)}, stream {stream}"
