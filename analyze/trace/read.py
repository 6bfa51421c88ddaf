"""A file becomes a recording: one frame per kind of row, metadata, and what had to be said about the file.

The document is never held as Python objects: pieces of about 256 KiB are decoded, appended to typed columns while
they are in the cache, and dropped. Source of the design: measurements of 27 ways to load a trace, see README.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from analyze.errors import DamagedTraceError
from analyze.notes import Notice
from analyze.trace.classes import Row, row_of, table_of
from analyze.trace.clock import NeedsTextError
from analyze.trace.columns import Groups, Tables
from analyze.trace.decode import Decoder, Event
from analyze.trace.metadata import Metadata, keys_after, keys_before, select
from analyze.trace.pieces import HEAD_LIMIT_BYTES, Layout, split
from analyze.trace.source import Source
from analyze.trace.writers import Writer, name_writer

_LOST_SHARE = 0.05  # more lost events than this, and the file is interleaved or worse: no figure can be trusted
_UNKNOWN_LISTED = 3


@dataclass(frozen=True)
class Recording:
    """A file as frames.

    Attributes:
        name: base name of the file.
        sha256: hash of its bytes.
        size_bytes: size on disk.
        metadata: what the document says about itself.
        frames: raw frames by name, see `analyze.schema`.
        writer: who wrote it.
        cut: the document ends before its events do.
        notices: what was odd in the file.
    """

    name: str
    sha256: str
    size_bytes: int
    metadata: Metadata
    frames: dict[str, pl.DataFrame]
    writer: Writer
    cut: bool
    notices: tuple[Notice, ...]


@dataclass
class _State:
    """What grows while a document is read."""

    tables: Tables = field(default_factory=Tables)
    unknown: Counter[str] = field(default_factory=Counter)
    processes: dict[object, str] = field(default_factory=dict)
    tail: bytearray | None = None
    pending: bytes = b""
    keys_after: dict[str, Any] = field(default_factory=dict)


def read(path: str | Path) -> Recording:
    """Read a Chrome trace of the PyTorch profiler, plain or gzipped, "-" for standard input.

    Raises:
        UnreadableError: the file cannot be opened or unpacked.
        NotATraceError: the content is something else.
        DamagedTraceError: too little of it can be read to trust any figure.
    """
    source, layout, state = Source(path), Layout(), _State()
    decoder = Decoder()
    with _gc_off():
        pieces = split(source.blocks(), source.name, layout)
        piece = next(pieces)
        for following in pieces:
            decoder.separator = layout.separator
            _take(state, decoder, piece)
            piece = following
        decoder.separator = layout.separator or b","
        _take_last(state, decoder, piece, bare_list=layout.bare_list)
    return _finish(source, layout, decoder, state)


@contextmanager
def _gc_off() -> Iterator[None]:
    """Without collection: millions of short-lived structs cost half the time otherwise, and none is cyclic."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _take(state: _State, decoder: Decoder, piece: bytes) -> None:
    """Decode and append one piece; a piece cut inside a string or list is joined with the next one once."""
    if state.tail is not None:
        if len(state.tail) < HEAD_LIMIT_BYTES:
            state.tail += b"," + piece
        return
    joined = state.pending + b"," + piece if state.pending else piece
    events = decoder.piece(joined)
    if events is not None:
        state.pending = b""
        _append(state, decoder, events, joined)
    elif not state.pending:
        state.pending = piece
    else:
        state.pending = b""
        _salvage(state, decoder, joined)


def _take_last(state: _State, decoder: Decoder, piece: bytes, *, bare_list: bool) -> None:
    """Decode what is left: the last events and the keys after them."""
    if state.tail is not None:
        state.tail += b"," + piece
        return
    joined = state.pending + b"," + piece if state.pending else piece
    sound = decoder.last(joined, bare_list=bare_list)
    if sound is None:
        _salvage(state, decoder, joined)
        decoder.damage.cut = state.tail is None
        return
    events, state.keys_after = sound
    _append(state, decoder, events, joined)


def _salvage(state: _State, decoder: Decoder, piece: bytes) -> None:
    events, tail = decoder.salvage(piece)
    if tail is not None:
        state.tail = bytearray(tail)
    _append(state, decoder, events, piece)


def _append(state: _State, decoder: Decoder, events: list[Event], piece: bytes) -> None:
    try:
        state.tables.append(_group(state, events))
    except NeedsTextError:
        decoder.keep_text()
        again = decoder.piece(piece)
        if again is None:
            last = decoder.last(piece, bare_list=False) or decoder.last(piece, bare_list=True)
            again = last[0] if last else decoder.salvage(piece)[0]
        state.tables.append(_group(state, again, count=False))


def _group(state: _State, events: list[Event], *, count: bool = True) -> Groups:
    """The events by table, each table in the order of the file; rows of no table are counted and dropped."""
    members: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        members[event.cat].append(event)
    categories: defaultdict[Row, list[str]] = defaultdict(list)
    for cat in members:
        categories[table_of(cat)].append(cat)
    odd: list[Event] = []
    groups: Groups = {}
    for row, cats in categories.items():
        found = members[cats[0]] if len(cats) == 1 else [e for e in events if e.cat in cats]
        if row is Row.UNKNOWN:
            odd += found
        elif row is not Row.IGNORED:
            groups[row] = [e for e in found if e.ph == "X"]
            if len(groups[row]) < len(found):
                odd += [e for e in found if e.ph != "X"]
    for event in odd:
        groups.setdefault(row_of(event.ph, event.cat, event.name, event.pid), []).append(event)
    if count:
        _count_odd(state, groups)
    return groups


def _count_odd(state: _State, groups: Groups) -> None:
    for event in groups.get(Row.META, ()):
        if event.name == "process_name":
            state.processes.setdefault(event.pid, str(event.args.label))
    state.unknown.update(e.cat or (f"ph {e.ph}" if e.ph != "X" else "") for e in groups.get(Row.UNKNOWN, ()))


def _finish(source: Source, layout: Layout, decoder: Decoder, state: _State) -> Recording:
    frames = state.tables.frames()
    unknown = state.unknown
    damage = decoder.damage
    read_rows = sum(frame.height for name, frame in frames.items() if name != "threads")
    if damage.lost > _LOST_SHARE * (read_rows + damage.lost) and damage.lost > 1:
        raise DamagedTraceError(
            f"{source.name}: {damage.lost:,} of {read_rows + damage.lost:,} events cannot be read.",
            "Several ranks writing to one path do this; give each rank a file of its own and record again.",
        )
    writer = name_writer(source.name, frames, unknown, state.processes)
    before, after = keys_before(layout.head), keys_after(bytes(state.tail)) if state.tail else {}
    readable = layout.bare_list or before is not None
    return Recording(
        name=source.name,
        sha256=source.sha256,
        size_bytes=source.size_bytes,
        metadata=select({**(before or {}), **(after or {}), **state.keys_after}),
        frames=frames,
        writer=writer,
        cut=damage.cut or source.cut is not None,
        notices=tuple(_notices(source, decoder, unknown, readable_head=readable)),
    )


def _notices(source: Source, decoder: Decoder, unknown: Counter[str], *, readable_head: bool) -> Iterator[Notice]:
    damage = decoder.damage
    if source.cut or damage.cut:
        why = source.cut or "the document ends inside its list of events"
        yield Notice("file-cut", f"The file is cut: {why}. All figures cover the first part only.", 1)
    if damage.lost:
        yield Notice(
            "events-lost",
            f"{damage.lost:,} events could not be read and are missing from all figures.",
            damage.lost,
        )
    if damage.repaired:
        text = (
            f"{damage.repaired:,} events had text that is not valid JSON and were mended; their names are approximate."
        )
        yield Notice("events-mended", text, damage.repaired)
    if not readable_head:
        yield Notice(
            "metadata-lost",
            "The metadata before the events cannot be read: device names and flags are missing.",
            1,
        )
    named = {cat: count for cat, count in unknown.items() if cat}
    if named:
        worst = sorted(named.items(), key=lambda item: (-item[1], item[0]))[:_UNKNOWN_LISTED]
        listed = ", ".join(f"{cat!r} ({count:,})" for cat, count in worst)
        total = sum(named.values())
        yield Notice("unknown-category", f"{total:,} rows of unknown categories count as no work: {listed}.", total)
