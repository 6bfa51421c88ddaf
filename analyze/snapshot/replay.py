"""The recorded events replayed: when each allocation lived, and four curves with their exact start values.

start = state at the end minus the sum of all changes: what existed before the recording needs no event of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from analyze.arrays import Bool, Int8, Int64
from analyze.snapshot.tables import Block, Events, Segment

NEVER = np.iinfo(np.int64).max
BEFORE = -1  # index of the instant before the first event
_ROUND_BYTES = 512
_ALLOC, _REQUESTED, _COMPLETED, _FREE = 1, 2, 3, 4
_GROW, _SHRINK, _OOM = 5, 6, 7
_CODES = {
    "alloc": _ALLOC,
    "free_requested": _REQUESTED,
    "free_completed": _COMPLETED,
    "free": _FREE,
    "segment_alloc": _GROW,
    "segment_map": _GROW,
    "segment_free": _SHRINK,
    "segment_unmap": _SHRINK,
    "oom": _OOM,
}


class Curve(Struct, frozen=True):
    """One amount over the recorded events, in bytes.

    Attributes:
        start_bytes: before the first event.
        values: after each event.
        end_bytes: in the state at the end; after the last event where the file has none.
    """

    start_bytes: int
    values: Int64
    end_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The largest value, the start included."""
        return max(self.start_bytes, int(self.values.max())) if len(self.values) else self.start_bytes

    @property
    def peak_event(self) -> int:
        """Index of the event that first reached the peak, -1 for the start."""
        if not len(self.values) or self.start_bytes >= int(self.values.max()):
            return BEFORE
        return int(self.values.argmax())

    def at(self, event: int) -> int:
        """The value after an event, or before all of them."""
        return self.start_bytes if event == BEFORE else int(self.values[event])


class Early(Struct, frozen=True):
    """An allocation from before the first recorded event.

    Attributes:
        address: where, None where not recorded.
        size_bytes: requested size.
        rounded_bytes: what it takes.
        freed_at: index of the event that completed its free, `NEVER` when it is there at the end.
        stream: stream of the free, or of its segment.
        stack: where it was allocated, 0 where that is not known.
    """

    address: int | None
    size_bytes: int
    rounded_bytes: int
    freed_at: int
    stream: int
    stack: int


class AllocatorReplay(Struct, frozen=True):
    """The events of one device, replayed.

    Attributes:
        requested: sizes asked for; falls when a free completes.
        allocated: rounded sizes; falls when a free is asked for.
        active: rounded sizes; falls when a free completes.
        reserved: memory that the allocator has from the driver.
        freed_at: per event, for allocations the index of the event that completed the free, `NEVER` without one.
        is_alloc: per event, whether it allocates.
        rounded_bytes: per event, the rounded size.
        early: allocations from before the first event.
        missing_frees: allocations whose address was allocated again without a free in between.
        gone: per event, whether it allocates what was never freed and is not in the state at the end.
        mismatch_bytes: how far the state at the end minus all changes is above what is known of the start: positive
            where recorded changes are missing, negative where frees are. Then the events alone make the curves.
        explained_start_bytes: the start value again, as the sum of `early`.
        end_known: the file has the state at the end.
    """

    requested: Curve
    allocated: Curve
    active: Curve
    reserved: Curve
    freed_at: Int64
    is_alloc: Bool
    rounded_bytes: Int64
    early: tuple[Early, ...]
    missing_frees: int
    gone: Bool
    mismatch_bytes: int
    end_known: bool

    @property
    def explained_start_bytes(self) -> int:
        """What the start value should be, from the allocations themselves."""
        return sum(early.size_bytes for early in self.early)


class _Matching(Struct):
    """Which free belongs to which allocation."""

    freed_at: Int64
    owner: Int64
    open: dict[int | None, int]
    early_frees: dict[int, int]
    missing_frees: int


def replay(events: Events, segments: Sequence[Segment], *, end_known: bool = True) -> AllocatorReplay:
    """Replay the events of one device.

    Args:
        events: its events.
        segments: its segments at the end.
        end_known: whether the file has a state at the end at all.
    """
    code = np.array([_CODES.get(action, 0) for action in events.action], dtype=np.int8)
    size = np.array(events.size_bytes, dtype=np.int64)
    matching = _match(code, events)
    live = {block.address: block for segment in segments for block in segment.blocks if block.active}
    rounded = _rounded(size, matching, events, live)
    alloc, completed = code == _ALLOC, (code == _COMPLETED) | (code == _FREE)
    asked = (code == _REQUESTED) | (code == _FREE)
    if not asked.any() and (matching.owner[completed] >= 0).any():
        asked = completed  # the writer records no requests: what is freed was asked to be
    early = tuple(_early(events, matching, segments, rounded))
    ends = _ends(segments, live) if end_known else None
    known = sum(one.size_bytes for one in early), sum(one.rounded_bytes for one in early)
    changes = (
        size * alloc - size * completed,
        rounded * alloc - rounded * asked,
        rounded * alloc - rounded * completed,
        size * (code == _GROW) - size * (code == _SHRINK),
    )
    mismatch = ends[0] - int(changes[0].sum()) - known[0] if ends else 0
    starts = (known[0], known[1], known[1], None) if mismatch < 0 else (None,) * 4
    requested, allocated, active, reserved = (
        _curve(change, ends[i] if ends else None, starts[i]) for i, change in enumerate(changes)
    )
    gone = np.zeros(len(code), dtype=bool)
    gone[[i for address, i in matching.open.items() if ends and address not in live]] = True
    return AllocatorReplay(
        requested=requested,
        allocated=allocated,
        active=active,
        reserved=reserved,
        freed_at=matching.freed_at,
        is_alloc=alloc,
        rounded_bytes=rounded,
        early=early,
        missing_frees=matching.missing_frees,
        gone=gone,
        mismatch_bytes=mismatch,
        end_known=end_known,
    )


def _ends(segments: Sequence[Segment], live: dict[int, Block]) -> tuple[int, int, int, int]:
    """Requested, allocated, active and reserved bytes of the state at the end."""
    blocks = live.values()
    return (
        sum(block.requested_bytes for block in blocks),
        sum(block.size_bytes for block in blocks if not block.pending),
        sum(block.size_bytes for block in blocks),
        sum(segment.total_bytes for segment in segments),
    )


def _match(code: Int8, events: Events) -> _Matching:
    """Pair allocations and frees by address, in the order of the list: many events share one microsecond."""
    count = len(code)
    freed_at, owner = np.full(count, NEVER, np.int64), np.full(count, -1, np.int64)
    still: dict[int | None, int] = {}
    early: dict[int, int] = {}
    asked: dict[int | None, int] = {}
    missing = 0
    for i, (what, address) in enumerate(zip(code.tolist(), events.address, strict=True)):
        if what == _ALLOC:
            missing += address in still
            still[address] = i
        elif what == _REQUESTED:
            mine = still.get(address)
            if mine is None:
                asked[address] = i
            else:
                owner[i] = mine
        elif what in (_COMPLETED, _FREE):
            mine = still.pop(address, None)
            if mine is None:
                early[i] = asked.pop(address, i)
            else:
                owner[i], freed_at[mine] = mine, i
    for i in asked.values():  # asked for, not completed: alive at the end as a pending block
        early[-1 - i] = i
    return _Matching(freed_at, owner, still, early, missing)


def _rounded(size: Int64, matching: _Matching, events: Events, live: dict[int, Block]) -> Int64:
    """Rounded sizes: exact for what is alive at the end, else the size in units of 512 bytes."""
    rounded = -(-size // _ROUND_BYTES) * _ROUND_BYTES
    for address, i in matching.open.items():
        block = live.get(address) if address is not None else None
        if block is not None and block.requested_bytes == size[i]:
            rounded[i] = block.size_bytes
    owned = matching.owner >= 0
    rounded[owned] = rounded[matching.owner[owned]]
    for key, i in matching.early_frees.items():
        address = events.address[i]
        block = live.get(address) if key < 0 and address is not None else None
        if block is not None:
            rounded[i] = block.size_bytes
    return rounded


def _curve(change: Int64, end: int | None, start: int | None) -> Curve:
    """The curve that ends where the state does; from `start` where that is known better."""
    total = np.cumsum(change)
    sum_of_changes = int(total[-1]) if len(total) else 0
    lowest = max(0, -int(total.min())) if len(total) else 0  # the lowest level that never falls below nothing
    if start is None:
        start = lowest if end is None else end - sum_of_changes
    start = max(start, lowest)
    return Curve(start, total + start, start + sum_of_changes if end is None else end)


def _early(events: Events, matching: _Matching, segments: Sequence[Segment], rounded: Int64) -> list[Early]:
    """What existed before the first event: frees without an allocation, and live blocks without one."""
    found = [
        Early(events.address[i], events.size_bytes[i], int(rounded[i]), i, events.stream[i], 0)
        for i in matching.early_frees
        if i >= 0
    ]
    found += (
        Early(block.address, block.requested_bytes, block.size_bytes, NEVER, segment.stream, block.stack)
        for segment in segments
        for block in segment.blocks
        if block.active and block.address not in matching.open
    )
    return found
