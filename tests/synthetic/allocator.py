"""A simulator of CUDA's caching allocator that writes memory snapshots and knows the truth about them.

Rules (default settings): sizes are rounded to 512 bytes; up to 1 MiB comes from segments of 2 MiB; below 10 MiB from
segments of 20 MiB; the rest has segments of its own, rounded to 2 MiB. Best fit per (pool, stream); a block is split
when at least 512 bytes (small) or more than 1 MiB (large) are left; free neighbours merge. A block that another stream
uses is pending after its free until that stream is done. Expandable segments grow at their end by pages.

The truth is kept beside the events, by counters and by the birth and death of each allocation, not by replaying.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
SMALL = MIB
Frame = dict[str, Any]


def round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def stack(*lines: int, file: str = "model.py") -> list[Frame]:
    """Python frames of the program, innermost first, under torch's own."""
    own = [{"name": "forward", "filename": f"/home/ann/project/{file}", "line": line} for line in lines]
    return [{"name": "linear", "filename": "/venv/site-packages/torch/nn/functional.py", "line": 7}, *own]


@dataclass(eq=False)
class Piece:
    """A block of a segment."""

    segment: Chunk
    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[Frame] = field(default_factory=list)
    born: int = -1
    died: int | None = None


@dataclass(eq=False)
class Chunk:
    """A segment."""

    address: int
    size: int
    stream: int
    pool: tuple[int, int]
    small: bool
    expandable: bool
    pieces: list[Piece] = field(default_factory=list)

    @property
    def key(self) -> tuple[tuple[int, int], int, bool]:
        return self.pool, self.stream, self.small


@dataclass(frozen=True)
class Level:
    """What the allocator itself counts."""

    requested: int = 0
    allocated: int = 0
    active: int = 0
    reserved: int = 0


@dataclass(frozen=True)
class Failure:
    """The truth about an allocation that failed."""

    asked: int
    device_free: int
    unused: int
    largest: int


class Allocator:
    """One device.

    Attributes:
        events: what the ring holds.
        before: the level before each event of the ring, and `after` after it.
        exact: every block was as large as its rounded request, so that allocated and active can be rebuilt exactly.
    """

    def __init__(
        self,
        *,
        device: int = 0,
        capacity: int = 1 << 36,
        max_entries: int | None = None,
        expandable: bool = False,
        pool_ids: bool = False,
    ) -> None:
        self.device, self.capacity, self.expandable, self.pool_ids = device, capacity, expandable, pool_ids
        self.chunks: list[Chunk] = []
        self.events: deque[dict[str, Any]] = deque(maxlen=max_entries)
        self.before: deque[Level] = deque(maxlen=max_entries)
        self.after: deque[Level] = deque(maxlen=max_entries)
        self.annotations: list[dict[str, Any]] = []
        self.failures: list[Failure] = []
        self.everything: list[Piece] = []
        self.level = Level()
        self.recording = True
        self.recorded = 0  # events ever recorded: the number of the next one
        self.time_us = 1_700_000_000_000_000
        self.exact = True
        self._next_address = 0x7F_0000_0000

    # --- what the program does

    def allocate(
        self,
        size: int,
        frames: list[Frame] | None = None,
        *,
        stream: int = 0,
        pool: tuple[int, int] = (0, 0),
        label: str = "",
    ) -> Piece | None:
        """An allocation, None when it does not fit anywhere."""
        rounded = round_up(max(size, 1), 512)
        small = rounded <= SMALL
        piece = self._best_fit(rounded, stream, pool, small) or self._grow(rounded, stream, pool, small)
        if piece is None:
            self._fail(size, frames or [], stream)
            return None
        self._split(piece, rounded)
        self.exact &= piece.size == rounded
        piece.requested, piece.state, piece.frames = size, "active_allocated", frames if self.recording else []
        made = Piece(piece.segment, piece.address, piece.size, size, frames=frames or [], born=self._number())
        self.everything.append(made)
        self._live()[piece.address] = made
        self._event("alloc", piece.address, size, stream, frames, pool, label, d=(size, piece.size, piece.size, 0))
        return piece

    def free(self, piece: Piece, *, in_use: bool = False) -> None:
        """The program lets go; with `in_use` another stream still needs the block."""
        self._event(
            "free_requested", piece.address, piece.requested, piece.segment.stream, piece.frames, piece.segment.pool,
            d=(0, -piece.size, 0, 0),
        )  # fmt: skip
        piece.state = "active_pending_free"
        if not in_use:
            self.complete(piece)

    def complete(self, piece: Piece) -> None:
        """The other stream is done: the block is free."""
        self._live().pop(piece.address).died = self._number()
        self._event(
            "free_completed", piece.address, piece.requested, piece.segment.stream, piece.frames, piece.segment.pool,
            d=(-piece.requested, 0, -piece.size, 0),
        )  # fmt: skip
        piece.state, piece.frames = "inactive", []  # the requested size stays behind, as it does in torch
        self._merge(piece.segment)

    def empty_cache(self) -> None:
        """Give back what is wholly free: segments, or the last pages of expandable ones."""
        for chunk in list(self.chunks):
            last = chunk.pieces[-1]
            if chunk.expandable and last.state == "inactive":
                page = self._page(chunk.small)
                keep = round_up(last.address - chunk.address, page)
                gone = chunk.size - keep
                if gone <= 0:
                    continue
                self._event(
                    "segment_unmap", chunk.address + keep, gone, chunk.stream, [], chunk.pool, d=(0, 0, 0, -gone)
                )
                chunk.size, last.size = keep, last.size - gone
                if not last.size:
                    chunk.pieces.pop()
                if not chunk.pieces:
                    self.chunks.remove(chunk)
            elif not chunk.expandable and len(chunk.pieces) == 1 and last.state == "inactive":
                self._event(
                    "segment_free", chunk.address, chunk.size, chunk.stream, [], chunk.pool, d=(0, 0, 0, -chunk.size)
                )
                self.chunks.remove(chunk)

    def annotate(self, name: str, *, start: bool) -> None:
        stage = "START" if start else "END"
        self.annotations.append({"stage": stage, "name": name, "device": self.device, "time_us": self.time_us})
        self.time_us += 1

    def start_recording(self) -> None:
        """From now on; what was recorded is dropped."""
        for kept in (self.events, self.before, self.after):
            kept.clear()
        self.annotations.clear()
        self.failures.clear()
        self.recording = True

    # --- what it leaves behind

    def segments(self) -> list[dict[str, Any]]:
        """The state now, as `segments` of a snapshot has it."""
        found = []
        for chunk in sorted(self.chunks, key=lambda c: c.address):
            active = [p for p in chunk.pieces if p.state != "inactive"]
            found.append(
                {
                    "device": self.device,
                    "address": chunk.address,
                    "total_size": chunk.size,
                    "allocated_size": sum(p.size for p in active if p.state == "active_allocated"),
                    "active_size": sum(p.size for p in active),
                    "requested_size": sum(p.requested for p in active),
                    "stream": chunk.stream,
                    "segment_type": "small" if chunk.small else "large",
                    "segment_pool_id": chunk.pool,
                    "is_expandable": chunk.expandable,
                    "frames": [],
                    "blocks": [
                        {"address": p.address, "size": p.size, "requested_size": p.requested, "state": p.state,
                         "frames": p.frames}
                        for p in chunk.pieces
                    ],
                }
            )  # fmt: skip
        return found

    def first_number(self) -> int:
        """Number of the oldest event that the ring still holds."""
        return self.recorded - len(self.events)

    def alive_at(self, position: int) -> dict[int, int]:
        """Requested bytes by line of the innermost own frame, of what was made within the ring and alive then."""
        first = self.first_number()
        now, sums = first + position, dict[int, int]()
        for piece in self.everything:
            if first <= piece.born <= now and (piece.died is None or piece.died > now):
                line = piece.frames[1]["line"] if len(piece.frames) > 1 else 0
                sums[line] = sums.get(line, 0) + piece.requested
        return sums

    # --- the allocator itself

    def _live(self) -> dict[int, Piece]:
        if not hasattr(self, "_live_pieces"):
            self._live_pieces: dict[int, Piece] = {}
        return self._live_pieces

    def _number(self) -> int:
        """Number of the event that comes next; -1 where none is recorded."""
        return self.recorded if self.recording else -1

    def _event(
        self,
        action: str,
        address: int,
        size: int,
        stream: int,
        frames: list[Frame] | None,
        pool: tuple[int, int] = (0, 0),
        label: str = "",
        *,
        d: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> None:
        before, level = self.level, self.level
        self.level = Level(level.requested + d[0], level.allocated + d[1], level.active + d[2], level.reserved + d[3])
        self.time_us += self.recorded % 3 != 0  # several events share a microsecond
        if not self.recording:
            return
        event = {
            "action": action, "addr": address, "size": size, "stream": stream, "time_us": self.time_us,
            "frames": frames or [], "compile_context": "N/A", "user_metadata": label,
        }  # fmt: skip
        if action == "oom":
            event["device_free"] = event.pop("addr")
        if self.pool_ids:
            event["pool_id"] = pool
        self.events.append(event)
        self.before.append(before)
        self.after.append(self.level)
        self.recorded += 1

    def _best_fit(self, size: int, stream: int, pool: tuple[int, int], small: bool) -> Piece | None:
        fits = [
            p
            for chunk in self.chunks
            if chunk.key == (pool, stream, small)
            for p in chunk.pieces
            if p.state == "inactive" and p.size >= size
        ]
        return min(fits, key=lambda p: (p.size, p.address), default=None)

    def _page(self, small: bool) -> int:
        return 2 * MIB if small else 20 * MIB

    def _grow(self, size: int, stream: int, pool: tuple[int, int], small: bool) -> Piece | None:
        if self.expandable:
            return self._map(size, stream, pool, small)
        total = 2 * MIB if small else 20 * MIB if size < 10 * MIB else round_up(size, 2 * MIB)
        if not self._room(total):
            return None
        chunk = Chunk(self._next_address, total, stream, pool, small, expandable=False)
        self._next_address += total + 64 * MIB
        self.chunks.append(chunk)
        chunk.pieces.append(Piece(chunk, chunk.address, total))
        self._event("segment_alloc", chunk.address, total, stream, [], pool, d=(0, 0, 0, total))
        return chunk.pieces[0]

    def _map(self, size: int, stream: int, pool: tuple[int, int], small: bool) -> Piece | None:
        mine = (c for c in self.chunks if c.expandable and c.key == (pool, stream, small))
        chunk = next(mine, None)
        free_at_end = chunk.pieces[-1].size if chunk and chunk.pieces[-1].state == "inactive" else 0
        more = round_up(size - free_at_end, self._page(small))
        if not self._room(more):
            return None
        if chunk is None or chunk not in self.chunks:  # making room may have unmapped all of it
            chunk = Chunk(self._next_address, 0, stream, pool, small, expandable=True)
            self._next_address += 1 << 38
            self.chunks.append(chunk)
            more = round_up(size, self._page(small))
        elif chunk.pieces[-1].state != "inactive" or chunk.pieces[-1].size < free_at_end:
            more = round_up(size, self._page(small))
        for _ in range(more // self._page(small)):
            page = self._page(small)
            self._event("segment_map", chunk.address + chunk.size, page, stream, [], pool, d=(0, 0, 0, page))
            chunk.pieces.append(Piece(chunk, chunk.address + chunk.size, page))
            chunk.size += page
        self._merge(chunk)
        return chunk.pieces[-1]

    def _room(self, size: int) -> bool:
        if self.level.reserved + size > self.capacity:
            self.empty_cache()
        return self.level.reserved + size <= self.capacity

    def _fail(self, size: int, frames: list[Frame], stream: int) -> None:
        free = self.capacity - self.level.reserved
        holes = [p.size for chunk in self.chunks for p in chunk.pieces if p.state == "inactive"]
        if self.recording:
            self.failures.append(Failure(size, free, sum(holes), max(holes, default=0)))
        self._event("oom", free, size, stream, frames)

    def _split(self, piece: Piece, size: int) -> None:
        rest = piece.size - size
        if rest >= 512 if piece.segment.small else rest > MIB:
            at = piece.segment.pieces.index(piece)
            piece.segment.pieces.insert(at + 1, Piece(piece.segment, piece.address + size, rest))
            piece.size = size

    def _merge(self, chunk: Chunk) -> None:
        merged: list[Piece] = []
        for piece in chunk.pieces:
            if merged and piece.state == merged[-1].state == "inactive":
                merged[-1].size += piece.size
            else:
                merged.append(piece)
        chunk.pieces = merged


def snapshot(*allocators: Allocator, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """What `torch.cuda.memory._snapshot()` would give."""
    traces: list[list[dict[str, Any]]] = [[] for _ in range(1 + max((a.device for a in allocators), default=-1))]
    for allocator in allocators:
        traces[allocator.device] = list(allocator.events)
    return {
        "segments": [segment for a in allocators for segment in a.segments()],
        "device_traces": traces,
        "allocator_settings": {"max_split_size": -1, "expandable_segments": False, **(settings or {})},
        "external_annotations": [edge for a in allocators for edge in a.annotations],
    }
