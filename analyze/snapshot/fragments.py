"""Reserved memory that is in no use, in its four parts, and where the largest free block is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from analyze.snapshot.tables import DEFAULT_POOL, Segment
from analyze.snapshot.values import Pool

PRIVATE = "private pool"


class Fragments(Struct, frozen=True):
    """The state at the end of some segments, in bytes. reserved = allocated + pending + split + free segments.

    Attributes:
        reserved_bytes: from the driver.
        allocated_bytes: rounded sizes of what is allocated.
        requested_bytes: sizes asked for, of what is allocated or pending.
        free_segments_bytes: wholly free segments; empty_cache() would give them back where no private pool holds them.
        inactive_split_bytes: free blocks in segments that are partly in use: stuck until their neighbours go.
        rounding_bytes: rounded minus requested sizes of what is allocated.
        pending_free_bytes: freed by the program, still in use by a stream.
        largest_free_block_bytes: what the next allocation can have without more from the driver.
    """

    reserved_bytes: int
    allocated_bytes: int
    requested_bytes: int
    free_segments_bytes: int
    inactive_split_bytes: int
    rounding_bytes: int
    pending_free_bytes: int
    largest_free_block_bytes: int


class PoolState(Struct, frozen=True):
    """The state at the end of one pool on one stream; an allocation is served from its own only.

    Attributes:
        pool: "default pool" or the private pool's id: of a CUDA graph or a MemPool.
        stream: stream as recorded.
        segments: how many.
        state: its bytes.
    """

    pool: str
    stream: int
    segments: int
    state: Fragments

    @property
    def unused_bytes(self) -> int:
        """Reserved and in no use."""
        return self.state.free_segments_bytes + self.state.inactive_split_bytes

    @property
    def private(self) -> bool:
        """A CUDA graph or a MemPool allocates from it, nothing else."""
        return self.pool.startswith(PRIVATE)


def measure_fragments(segments: Sequence[Segment]) -> Fragments:
    """The parts of the memory of some segments."""
    blocks = [block for segment in segments for block in segment.blocks]
    used = [block for block in blocks if block.active and not block.pending]
    pending = [block for block in blocks if block.pending]
    free = split = largest = 0
    for segment in segments:
        held = sum(block.size_bytes for block in segment.blocks if block.active)
        rest = segment.total_bytes - held
        free, split = (free + rest, split) if not held else (free, split + rest)
        largest = max([largest, *_free_pieces(segment)])
    return Fragments(
        reserved_bytes=sum(segment.total_bytes for segment in segments),
        allocated_bytes=sum(block.size_bytes for block in used),
        requested_bytes=sum(block.requested_bytes for block in (*used, *pending)),
        free_segments_bytes=free,
        inactive_split_bytes=split,
        rounding_bytes=sum(block.size_bytes - block.requested_bytes for block in used),
        pending_free_bytes=sum(block.size_bytes for block in pending),
        largest_free_block_bytes=largest,
    )


def _free_pieces(segment: Segment) -> Iterator[int]:
    """Sizes of the free blocks, and of stretches that no block covers."""
    at = segment.address
    for block in segment.blocks:
        if block.address > at:
            yield block.address - at
        if not block.active:
            yield block.size_bytes
        at = max(at, block.address + block.size_bytes)
    yield max(segment.address + segment.total_bytes - at, 0)


def measure_pools(segments: Iterable[Segment]) -> tuple[PoolState, ...]:
    """The same per pool and stream, most reserved first."""
    groups: dict[tuple[Pool, int], list[Segment]] = {}
    for segment in segments:
        groups.setdefault((segment.pool, segment.stream), []).append(segment)
    found = (
        PoolState(pool_name(pool), stream, len(mine), measure_fragments(mine))
        for (pool, stream), mine in groups.items()
    )
    return tuple(sorted(found, key=lambda p: (-p.state.reserved_bytes, p.pool, p.stream)))


def pool_name(pool: Pool | None) -> str:
    """A pool as the report names it."""
    if pool is None:
        return "pool not recorded"
    return "default pool" if pool == DEFAULT_POOL else f"{PRIVATE} {pool[0]},{pool[1]}"
