"""Out-of-memory events explained: what was asked, what was free, and why it did not fit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from analyze.snapshot.replay import NEVER, AllocatorReplay
from analyze.snapshot.stacks import Stacks
from analyze.snapshot.tables import DEFAULT_POOL, Events, Segment
from analyze.units import memory

_SMALL_BYTES = 1 << 20
_SMALL_SEGMENT_BYTES = 2 << 20
_LARGE_SEGMENT_BYTES = 20 << 20
_OWN_SEGMENT_BYTES = 10 << 20


class OutOfMemory(Struct, frozen=True):
    """One allocation that failed.

    Attributes:
        event: index of its event.
        asked_bytes: requested size.
        needed_bytes: what the allocator had to get from the driver for it.
        device_free_bytes: free on the device, None where not recorded.
        allocated_bytes: allocated at that instant.
        reserved_bytes: reserved at that instant.
        unused_bytes: reserved and in no use.
        largest_free_block_bytes: the largest unused piece, over all pools and streams.
        cause: "fragmentation", "other-pool", "limit" or "full".
        text: the explanation, one or two sentences.
        site: who asked.
    """

    event: int
    asked_bytes: int
    needed_bytes: int
    device_free_bytes: int | None
    allocated_bytes: int
    reserved_bytes: int
    unused_bytes: int
    largest_free_block_bytes: int
    cause: str
    text: str
    site: str


def explain_ooms(
    events: Events, replay: AllocatorReplay, segments: Sequence[Segment], stacks: Stacks
) -> tuple[OutOfMemory, ...]:
    """All out-of-memory events of a device, in order."""
    return tuple(
        _explain(events, replay, segments, stacks, i) for i, action in enumerate(events.action) if action == "oom"
    )


def _explain(
    events: Events, replay: AllocatorReplay, segments: Sequence[Segment], stacks: Stacks, i: int
) -> OutOfMemory:
    asked, free = events.size_bytes[i], events.address[i]
    reserved, active = replay.reserved.at(i), replay.active.at(i)
    unused = max(reserved - active, 0)
    pieces = free_pieces(events, replay, segments, i)
    largest = max((end - start for start, end in pieces), default=0)
    kept = _in_private_pools(pieces, segments) if events.pool[i] in (None, DEFAULT_POOL) else 0
    needed = segment_bytes(asked, expandable=any(segment.expandable for segment in segments))
    where = f"{memory(reserved)} were reserved, of which {memory(unused)} in no use"
    if free is not None and free >= needed:
        cause = "limit"
        why = f"the device had {memory(free)} free: a limit on the process, or the driver, refused it."
    elif largest >= asked:
        cause = "other-pool"
        why = f"{where}, in a piece of {memory(largest)}: it belongs to another pool or stream."
    elif unused >= asked > unused - kept:
        cause = "other-pool"
        why = f"{where}, {memory(kept)} of it in private pools, from which only their CUDA graph or MemPool is served."
    elif unused >= asked:
        cause = "fragmentation"
        why = f"{where}, enough for it but in pieces of at most {memory(largest)}: fragmentation."
    else:
        cause = "full"
        why = f"{where}: the memory was full."
    had = "" if free is None or cause == "limit" else f" and the device had {memory(free)} free"
    return OutOfMemory(
        event=i,
        asked_bytes=asked,
        needed_bytes=needed,
        device_free_bytes=free,
        allocated_bytes=replay.allocated.at(i),
        reserved_bytes=reserved,
        unused_bytes=unused,
        largest_free_block_bytes=largest,
        cause=cause,
        text=f"{memory(asked)} were asked for{had}; {why}",
        site=stacks.site(events.stack[i]),
    )


def segment_bytes(asked_bytes: int, *, expandable: bool) -> int:
    """What the allocator asks the driver for, with default settings: whole segments, or pages of expandable ones."""
    if asked_bytes <= _SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if expandable:
        return -(-asked_bytes // _LARGE_SEGMENT_BYTES) * _LARGE_SEGMENT_BYTES
    if asked_bytes < _OWN_SEGMENT_BYTES:
        return _LARGE_SEGMENT_BYTES
    return -(-asked_bytes // _SMALL_SEGMENT_BYTES) * _SMALL_SEGMENT_BYTES


def free_pieces(
    events: Events, replay: AllocatorReplay, segments: Sequence[Segment], event: int
) -> list[tuple[int, int]]:
    """Unused pieces of reserved memory after an event, as (start, end), from the state at the end walked backwards."""
    held = {segment.address: segment.address + segment.total_bytes for segment in segments}
    pieces = _undo(held, events, event)
    freed_at, rounded = replay.freed_at, replay.rounded_bytes
    used = [(one.address, one.rounded_bytes) for one in replay.early if one.freed_at > event]
    used += (
        (events.address[i], int(rounded[i]))
        for i in range(event + 1)
        if replay.is_alloc[i] and (freed_at[i] == NEVER or freed_at[i] > event)
    )
    return _subtract(pieces, sorted((a, a + size) for a, size in used if a is not None))


def _in_private_pools(pieces: Sequence[tuple[int, int]], segments: Sequence[Segment]) -> int:
    """Bytes of the pieces that lie in segments of private pools."""
    private = sorted((s.address, s.address + s.total_bytes) for s in segments if s.pool != DEFAULT_POOL)
    rest = _subtract(sorted(pieces), private)
    return sum(end - start for start, end in pieces) - sum(end - start for start, end in rest)


def _undo(held: dict[int, int], events: Events, event: int) -> list[tuple[int, int]]:
    """The reserved ranges after an event: later ones taken back, range by range."""
    ranges = sorted(held.items())
    for i in range(len(events) - 1, event, -1):
        action, start = events.action[i], events.address[i]
        if start is None or not action.startswith("segment_"):
            continue
        end = start + events.size_bytes[i]
        if action in ("segment_alloc", "segment_map"):
            ranges = _subtract(ranges, [(start, end)])
        else:
            ranges = sorted([*ranges, (start, end)])
            ranges = _joined(ranges) if action == "segment_unmap" else ranges
    return ranges


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted ranges with those that touch as one: pages of one expandable segment."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _subtract(ranges: list[tuple[int, int]], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted ranges without sorted, disjoint holes."""
    left, at = [], 0
    for start, end in ranges:
        while at < len(holes) and holes[at][1] <= start:
            at += 1
        here, k = start, at
        while k < len(holes) and holes[k][0] < end:
            if holes[k][0] > here:
                left.append((here, holes[k][0]))
            here = max(here, holes[k][1])
            k += 1
        if here < end:
            left.append((here, end))
    return left
