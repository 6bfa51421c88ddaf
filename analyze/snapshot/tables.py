"""Plain objects become tables: segments, blocks, events as columns, annotations. Nothing is trusted.

The walk goes down a fixed schema and never into what it does not know: at most five levels, no recursion, each list
of events once. So neither a list that contains itself nor one that shares its parts a million times is ever followed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from analyze.errors import SnapshotError
from analyze.inert import code_span, html, printable
from analyze.snapshot.read import Loaded, read
from analyze.snapshot.stacks import Stacks, cleaned
from analyze.snapshot.values import (
    INT,
    MOST_BYTES,
    Pool,
    check_distinct,
    check_numbers,
    check_times,
    column,
    listed,
    number,
    pool,
    pools,
    size_of,
    texts,
)
from analyze.trace.collection import collection_paused
from analyze.units import memory, plural

_KEYS = ("segments", "device_traces", "allocator_settings", "external_annotations", "host_segments", "host_traces")
DEFAULT_POOL = (0, 0)
ACTIVE = "active_allocated"
PENDING = ("active_pending_free", "active_awaiting_free")


class Block(Struct, frozen=True):
    """A piece of a segment.

    Attributes:
        address: first byte; counted from 0 where not recorded.
        size_bytes: rounded size.
        requested_bytes: size asked for; 0 for free blocks, whose recorded value is stale.
        state: "active_allocated", "active_pending_free" or "inactive".
        stack: where it was allocated, 0 where not recorded.
    """

    address: int
    size_bytes: int
    requested_bytes: int
    state: str
    stack: int

    @property
    def pending(self) -> bool:
        """Freed by the program, still in use by a stream."""
        return self.state in PENDING

    @property
    def active(self) -> bool:
        """Not free for the next allocation."""
        return self.state == ACTIVE or self.pending


class Segment(Struct, frozen=True):
    """A piece of memory that the allocator has from the driver.

    Attributes:
        device: device index.
        address: first byte; 0 where not recorded.
        total_bytes: size.
        stream: stream that it belongs to.
        pool: pool id; (0, 0) is the default pool.
        kind: "small", "large", or empty where not recorded.
        expandable: grows by mapping pages.
        blocks: its pieces in order of address.
    """

    device: int
    address: int
    total_bytes: int
    stream: int
    pool: Pool
    kind: str
    expandable: bool
    blocks: tuple[Block, ...]


class Events(Struct, frozen=True):
    """The recorded events of one device as columns, oldest first.

    Attributes:
        action: what happened.
        address: where, None where not recorded; free device bytes for `oom`.
        size_bytes: requested size.
        stream: stream.
        time_us: microseconds of the Unix epoch, None where not recorded.
        stack: stack number.
        label: user metadata or category, empty where none.
        context: compile context, empty where none.
        pool: pool id, None where not recorded.
    """

    action: list[str]
    address: list[int | None]
    size_bytes: list[int]
    stream: list[int]
    time_us: list[int | None]
    stack: array[int]
    label: list[str]
    context: list[str]
    pool: list[Pool | None]

    def __len__(self) -> int:
        """How many."""
        return len(self.action)


class Annotation(Struct, frozen=True):
    """One edge of a range that the program named."""

    start: bool
    name: str
    device: int
    time_us: int


class Snapshot(Struct, frozen=True):
    """One memory snapshot.

    Attributes:
        loaded: the file; its document has been dropped.
        segments: the state at the end.
        traces: events per device index.
        annotations: named ranges.
        settings: the allocator's settings: numbers, truth values and texts.
        stacks: all stacks.
        sizes_rounded: the file has no requested sizes; rounded ones stand in for them.
        pinned_segments: pinned host memory at the end.
        pinned_trace: events of pinned host memory, None where not recorded.
        has_segments: the file has the state at the end.
    """

    loaded: Loaded
    segments: tuple[Segment, ...]
    traces: tuple[Events, ...]
    annotations: tuple[Annotation, ...]
    settings: dict[str, Any]
    stacks: Stacks
    sizes_rounded: bool
    pinned_segments: tuple[Segment, ...]
    pinned_trace: Events | None
    has_segments: bool

    def __repr__(self) -> str:
        """What it holds, on one line."""
        events = sum(len(trace) for trace in self.traces)
        size = memory(sum(segment.total_bytes for segment in self.segments))
        held = f"{plural(len(self.segments), 'segment')} of {size}, {plural(events, 'event')}"
        return f"Snapshot({self.loaded.name}, {held})"

    def _repr_markdown_(self) -> str:
        return f"{code_span(printable(repr(self)))}\n\n`build_snapshot_report(snapshot)` says what filled the memory."

    def _repr_html_(self) -> str:
        shown = html(printable(repr(self)))
        return f"<code>{shown}</code><br><code>build_snapshot_report(snapshot)</code> says what filled the memory."

    @classmethod
    def load(cls, path: str | Path) -> Snapshot:
        """Read a CUDA memory snapshot, as a pickle or in JSON, gzipped or not, without executing it.

        Args:
            path: the file, or "-" for standard input.

        Raises:
            UnreadableError: the file cannot be opened or unpacked.
            SnapshotError: it is no memory snapshot, or not a sound one.
        """
        with collection_paused():
            loaded = read(path)
            try:
                return _Builder().build(loaded)
            except SnapshotError as error:
                said = error.message.replace("The snapshot", loaded.name, 1)
                raise SnapshotError(said, "It is damaged, or something else.") from error


class _Builder:
    def __init__(self) -> None:
        self.stacks = Stacks()
        self.sizes_rounded = False

    def build(self, loaded: Loaded) -> Snapshot:
        document = loaded.document
        if isinstance(document, list):  # memory_snapshot() gives the segments alone
            document = {"segments": document}
        if not isinstance(document, dict) or not any(key in document for key in _KEYS):
            raise SnapshotError("The snapshot has neither segments nor device_traces: it is no memory snapshot.")
        traces = listed(document, "device_traces")
        check_distinct([trace for trace in traces if trace], "device_traces")
        snapshot = Snapshot(
            loaded=replace(loaded, document=None),
            segments=self._segments(document, "segments"),
            traces=tuple(self._events(trace) for trace in traces),
            annotations=tuple(_annotations(document)),
            settings=_settings(document),
            stacks=self.stacks,
            sizes_rounded=self.sizes_rounded,
            pinned_segments=self._segments(document, "host_segments"),
            pinned_trace=self._pinned(document),
            has_segments="segments" in document,
        )
        self.stacks.forget_objects()
        return snapshot

    def _pinned(self, document: dict[str, Any]) -> Events | None:
        traces = listed(document, "host_traces")
        lists = [trace for trace in traces if isinstance(trace, list)]
        check_distinct([trace for trace in lists if trace], "host_traces")
        flat = [event for trace in lists for event in trace] if lists else traces
        return self._events(flat) if flat else None

    def _segments(self, document: dict[str, Any], key: str) -> tuple[Segment, ...]:
        rows = listed(document, key)
        check_distinct(rows, key)
        segments = tuple(self._segment(row) for row in rows)
        if sum(segment.total_bytes for segment in segments) > MOST_BYTES:
            raise SnapshotError("The snapshot has segments larger than any machine's memory.")
        return segments

    def _segment(self, row: Any) -> Segment:
        if not isinstance(row, dict):
            raise SnapshotError("The snapshot has a segment that is no dictionary.")
        address = number(row.get("address"), "address") or 0
        blocks = listed(row, "blocks")
        check_distinct(blocks, "blocks")
        made, at = [], address
        for block in blocks:
            made.append(self._block(block, at))
            at = made[-1].address + made[-1].size_bytes
        return Segment(
            device=number(row.get("device", 0), "device") or 0,
            address=address,
            total_bytes=size_of(row, "total_size", sum(block.size_bytes for block in made)),
            stream=number(row.get("stream", 0), "stream") or 0,
            pool=pool(row.get("segment_pool_id")) or DEFAULT_POOL,
            kind=cleaned(row.get("segment_type", "")),
            expandable=bool(row.get("is_expandable", False)),
            blocks=tuple(made),
        )

    def _block(self, row: Any, at: int) -> Block:
        if not isinstance(row, dict):
            raise SnapshotError("The snapshot has a block that is no dictionary.")
        state, size = cleaned(row.get("state", "")), size_of(row, "size")
        active = state == ACTIVE or state in PENDING
        if active and "requested_size" not in row:
            self.sizes_rounded = True
        address = number(row.get("address"), "address")
        return Block(
            address=at if address is None else address,
            size_bytes=size,
            requested_bytes=size_of(row, "requested_size", size) if active else 0,
            state=state,
            stack=self.stacks.number(row.get("frames") or _history(row)),
        )

    def _events(self, rows: Any) -> Events:
        if not isinstance(rows, list | tuple):
            raise SnapshotError("The snapshot has a device trace that is no list.")
        if set(map(type, rows)) - {dict}:
            raise SnapshotError("The snapshot has an event that is no dictionary.")
        check_distinct(rows, "events")
        size = column(rows, "size", 0)
        check_numbers(size, "size")
        if size and (min(size) < 0 or sum(size) > MOST_BYTES):
            raise SnapshotError("The snapshot has events with sizes beyond any machine's memory.")
        address = column(rows, "addr", None)
        if None in address:
            address = [row.get("device_free") if a is None else a for row, a in zip(rows, address, strict=True)]
        stack_number = self.stacks.number
        events = Events(
            action=texts(column(rows, "action", "")),
            address=address,
            size_bytes=size,
            stream=column(rows, "stream", 0),
            time_us=column(rows, "time_us", None),
            stack=array("I", [stack_number(frames) for frames in column(rows, "frames", None)]),
            label=texts(column(rows, "user_metadata", "")),
            context=texts(column(rows, "compile_context", "")),
            pool=pools(column(rows, "pool_id", None)),
        )
        check_numbers(events.stream, "stream")
        check_numbers(events.time_us, "time_us", missing=True)
        check_times(events.time_us)
        check_numbers(events.address, "addr", missing=True)
        category = column(rows, "category", "")
        if any(category):
            found = texts(category)
            events.label[:] = [a or b for a, b in zip(events.label, found, strict=True)]
        return events


def _history(row: dict[str, Any]) -> Any:
    """Frames where early versions of torch put them: in the block's history."""
    history = row.get("history")
    if isinstance(history, list) and history and isinstance(history[0], dict):
        return history[0].get("frames")
    return None


def _annotations(document: dict[str, Any]) -> Iterator[Annotation]:
    rows = listed(document, "external_annotations")
    check_distinct(rows, "external_annotations")
    for row in rows:
        if not isinstance(row, dict):
            raise SnapshotError("The snapshot has an annotation that is no dictionary.")
        time = number(row.get("time_us"), "time_us")
        stage = row.get("stage")
        if time is not None and stage in ("START", "END"):
            check_times([time])
            device = number(row.get("device", 0), "device")
            yield Annotation(stage == "START", cleaned(row.get("name", "")), device or 0, time)


_SETTINGS_KEPT = 64


def _settings(document: dict[str, Any]) -> dict[str, Any]:
    """The allocator's settings that are single values."""
    settings = document.get("allocator_settings")
    if not isinstance(settings, dict):
        return {}
    kept: dict[str, Any] = {}
    for key, value in list(settings.items())[:_SETTINGS_KEPT]:
        if isinstance(value, str):
            kept[cleaned(key)] = cleaned(value)
        elif isinstance(value, bool | float) or (isinstance(value, int) and value in INT):
            kept[cleaned(key)] = value
    return kept
