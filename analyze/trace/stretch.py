"""One stretch of a document becomes columns: decode, group by table, append; damage costs only the piece it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, field

from analyze.errors import DamagedTraceError, NotATraceError
from analyze.trace.classes import RowKind
from analyze.trace.clock import NeedsTextError
from analyze.trace.collection import collection_paused
from analyze.trace.columns import Tables
from analyze.trace.decode import Damage, Decoded, Decoder, Event
from analyze.trace.foreign import PROFILER_HINT
from analyze.trace.pieces import Layout
from analyze.trace.programs import Announcement
from analyze.trace.rest import Rest
from analyze.trace.salvage import salvage
from analyze.trace.sorting import Counts, Groups, sort_events

GIVE_UP_LOST = 2_000  # lost events, and more than this share of those seen so far: the rest is not worth its time
GIVE_UP_SHARE = 0.25
GIVE_UP_USELESS = 1_000_000  # rows without category or phase, and half of those seen so far


class Stretch(Struct):
    """What was read of a stretch.

    Attributes:
        tables: the columns.
        processes: names of processes from the metadata rows.
        counts: rows that are in no table, or that were hard to place.
        events: rows of any kind that could be read.
        metadata: metadata rows among them.
        announced: where in the file each of these rows stands.
        damage: what had to be repaired or was lost.
        rest: what stands behind the end of the list, None where that was not met.
        keys_after: the keys after the events, when the end was sound.
    """

    tables: Tables = field(default_factory=Tables)
    processes: dict[object, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    events: int = 0
    metadata: int = 0
    announced: list[Announcement] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    rest: Rest | None = None
    keys_after: dict[str, Any] = field(default_factory=dict)
    ended: bool = False

    def absorb(self, later: Stretch) -> None:
        """Append a later stretch of the same document."""
        rows = {name: len(table) for name, table in self.tables.tables.items()}
        self.announced += (announcement.behind(rows) for announcement in later.announced)
        self.tables.absorb(later.tables)
        self.counts.update(later.counts)
        self.events, self.metadata = self.events + later.events, self.metadata + later.metadata
        self.processes = {**later.processes, **self.processes}
        self.damage = self.damage + later.damage
        self.rest, self.keys_after, self.ended = later.rest, later.keys_after, later.ended


def read_part(
    pieces: Iterator[bytes], layout: Layout, *, to_the_end: bool, on_progress: Callable[[int], None] | None = None
) -> Stretch:
    """Read a stretch of a document.

    Args:
        pieces: its pieces.
        layout: how the document is laid out.
        to_the_end: the last piece also holds the document's tail.
        on_progress: called with the bytes of each piece that was read.
    """
    reader = _Reader(layout)
    with collection_paused():
        piece = next(pieces)
        for following in pieces:
            reader.take(piece)
            if on_progress is not None:
                on_progress(len(piece))
            piece = following
        if to_the_end:
            reader.take_last(piece)
        else:
            reader.take(piece)
            reader.settle()
    return reader.part


def lists_before(layout: Layout) -> Rest:
    """Rows of lists that were passed over on the way to the one that is read."""
    before = Rest(layout.separator or b",")
    before.take(layout.head.rstrip().removesuffix(b"["))
    before.end()
    return before


class _Reader:
    """Takes the pieces of one stretch in order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.decoder = Decoder()
        self.part = Stretch()
        self.pending = b""

    def take(self, piece: bytes) -> None:
        """Decode and append one piece; a piece cut inside a string or list is joined with the next one once."""
        if self.part.rest is not None:
            self.part.rest.take(b"," + piece)
            return
        joined = self._joined(piece)
        found = self.decoder.piece(joined)
        if found is not None:
            self._append(found, joined)
        elif joined is piece:
            self.pending = piece
        else:
            self._salvage(joined)

    def take_last(self, piece: bytes) -> None:
        """Decode what is left: the last events and the keys after them."""
        part = self.part
        if part.rest is not None:
            part.rest.take(b"," + piece)
            part.rest.end()
            return
        joined = self._joined(piece)
        sound = self.decoder.last(joined, bare_list=self.layout.bare_list)
        if sound is None:
            rest = self._salvage(joined)
            part.damage.cut = rest is None
            if rest is not None:
                rest.end()
            return
        found, part.keys_after = sound
        part.ended = True
        self._append(found, joined)

    def settle(self) -> None:
        """End the stretch: what still waited for a next piece is read alone."""
        if self.pending:
            self._salvage(self._joined(b""))

    def _joined(self, piece: bytes) -> bytes:
        if not self.pending:
            return piece
        # The file's own separator: where a damaged event ends is found by it.
        joined, self.pending = self.pending + (self.layout.separator or b",") + piece, b""
        return joined

    def _salvage(self, piece: bytes) -> Rest | None:
        """Read what can be read of a damaged piece; what stands behind the list, when it ends there."""
        part = self.part
        found, tail = salvage(piece, self.layout.separator or b",", exact_text=self.decoder.exact_text)
        self._append(found, piece)
        if tail is not None:
            part.rest, part.ended = Rest(self.layout.separator or b","), True
            part.rest.take(tail)
        return part.rest

    def _append(self, found: Decoded, piece: bytes) -> None:
        part = self.part
        try:
            sorted_events = sort_events(found.events)
            part.tables.append(sorted_events.groups)
        except NeedsTextError:
            self.decoder.keep_text()
            found = self._again(piece)
            sorted_events = sort_events(found.events)
            part.tables.append(sorted_events.groups)
        if found.damage is not None:
            part.damage = part.damage + found.damage
        part.events += len(found.events)
        part.metadata += len(sorted_events.groups.get(RowKind.META, ()))
        part.counts.update(sorted_events.counts)
        self._note_processes(found.events, sorted_events.groups)
        self._give_up()

    def _give_up(self) -> None:
        """Stop where so much of the file is lost that its figures would be refused, or is of no use at all."""
        part = self.part
        seen, lost = part.events + part.damage.lost, part.damage.lost
        if lost > max(GIVE_UP_LOST, GIVE_UP_SHARE * seen):
            raise too_damaged(self.layout.name, part.damage, f"the first {seen:,}")
        if part.counts.lost.total() + part.counts.unknown[""] > max(GIVE_UP_USELESS, seen / 2):
            raise NotATraceError(
                f"{self.layout.name}: most of its first {seen:,} rows have no category or no phase.", PROFILER_HINT
            )

    def _again(self, piece: bytes) -> Decoded:
        """The events of a piece once more, with the digits of their times."""
        found = self.decoder.piece(piece)
        if found is not None:
            return found
        sound = self.decoder.last(piece, bare_list=self.layout.bare_list)
        return sound[0] if sound else salvage(piece, self.layout.separator or b",", exact_text=True)[0]

    def _note_processes(self, events: list[Event], groups: Groups) -> None:
        named = [event for event in groups.get(RowKind.META, ()) if event.name == "process_name"]
        for event in named:
            self.part.processes.setdefault(event.pid, str(event.args.label))
        if named:
            self.part.announced += map(
                Announcement, (str(event.pid) for event in named), self.part.tables.places(events, groups, named)
            )


def too_damaged(name: str, damage: Damage, of: str) -> DamagedTraceError:
    """The error for a file of which too much is lost; `of` is what the lost events are counted among."""
    return DamagedTraceError(
        f"{name}: {damage.lost:,} of {of} events cannot be read, such as {damage.example}.",
        "Several ranks writing to one path do this; give each rank a file of its own and record again.",
    )
