"""One stretch of a document becomes columns: decode, group by table, append; damage costs only the piece it is in."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from analyze.trace.classes import Row, row_of, table_of
from analyze.trace.clock import NeedsTextError
from analyze.trace.collection import collection_paused
from analyze.trace.columns import Groups, Tables
from analyze.trace.decode import Damage, Decoder, Event
from analyze.trace.pieces import HEAD_LIMIT_BYTES, Layout
from analyze.trace.programs import Announcement

COUNTER_RANGES = "cuda_profiler_range"
WAITS = "device waits"
# A device's own waits for events, which some writers put among its kernels: no work is done in them.
DEVICE_WAITS = frozenset(
    ("event_wait", "Event Wait", "Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync", "Stream Synchronize")
)


@dataclass
class Part:
    """What was read of a stretch.

    Attributes:
        tables: the columns.
        unknown: rows of no known table by category, "" for complete events without one.
        processes: names of processes from the metadata rows.
        views: rows that no figure counts, by what they are: `VIEWS`.
        events: rows of any kind.
        metadata: metadata rows among them.
        announced: where in the file each of these rows stands.
        damage: what had to be mended or was lost.
        tail: the document's text from the `]` that ends its events, when the end was met in a damaged piece.
        keys_after: the keys after the events, when the end was sound.
        ended: the end of the list of events was met.
    """

    tables: Tables = field(default_factory=Tables)
    unknown: Counter[str] = field(default_factory=Counter)
    processes: dict[object, str] = field(default_factory=dict)
    views: Counter[str] = field(default_factory=Counter)
    events: int = 0
    metadata: int = 0
    announced: list[Announcement] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    tail: bytearray | None = None
    keys_after: dict[str, Any] = field(default_factory=dict)
    ended: bool = False

    def absorb(self, later: Part) -> None:
        """Append a later stretch of the same document."""
        rows = {name: len(table) for name, table in self.tables.tables.items()}
        self.announced += (announcement.behind(rows) for announcement in later.announced)
        self.tables.absorb(later.tables)
        self.unknown.update(later.unknown)
        self.views.update(later.views)
        self.events, self.metadata = self.events + later.events, self.metadata + later.metadata
        self.processes = {**later.processes, **self.processes}
        self.damage = self.damage + later.damage
        self.tail, self.keys_after, self.ended = later.tail, later.keys_after, later.ended


def read_part(
    pieces: Iterator[bytes], layout: Layout, *, to_the_end: bool, tell: Callable[[int], None] | None = None
) -> Part:
    """Read a stretch of a document.

    Args:
        pieces: its pieces.
        layout: how the document is laid out.
        to_the_end: the last piece also holds the document's tail.
        tell: called with the bytes of each piece that was read.
    """
    reader = _Reader(layout)
    with collection_paused():
        piece = next(pieces)
        for following in pieces:
            reader.take(piece)
            if tell is not None:
                tell(len(piece))
            piece = following
        if to_the_end:
            reader.take_last(piece)
        else:
            reader.take(piece)
            reader.settle()
    return reader.part


class _Reader:
    """Takes the pieces of one stretch in order."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.decoder = Decoder()
        self.part = Part(damage=self.decoder.damage)
        self.pending = b""

    def take(self, piece: bytes) -> None:
        """Decode and append one piece; a piece cut inside a string or list is joined with the next one once."""
        part = self.part
        if part.tail is not None:
            if len(part.tail) < HEAD_LIMIT_BYTES:
                part.tail += b"," + piece
            return
        joined = self._joined(piece)
        events = self.decoder.piece(joined)
        if events is not None:
            self._append(events, joined)
        elif joined is piece:
            self.pending = piece
        else:
            self._salvage(joined)

    def take_last(self, piece: bytes) -> None:
        """Decode what is left: the last events and the keys after them."""
        part = self.part
        if part.tail is not None:
            part.tail += b"," + piece
            return
        joined = self._joined(piece)
        sound = self.decoder.last(joined, bare_list=self.layout.bare_list)
        if sound is None:
            self._salvage(joined)
            part.damage.cut = part.tail is None
            return
        events, part.keys_after = sound
        part.ended = True
        self._append(events, joined)

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

    def _salvage(self, piece: bytes) -> None:
        events, tail = self.decoder.salvage(piece, self.layout.separator or b",")
        if tail is not None:
            self.part.tail, self.part.ended = bytearray(tail), True
        self._append(events, piece)

    def _append(self, events: list[Event], piece: bytes) -> None:
        try:
            self.part.tables.append(self._group(events))
        except NeedsTextError:
            self.decoder.keep_text()
            again = self.decoder.piece(piece)
            if again is None:
                sound = self.decoder.last(piece, bare_list=self.layout.bare_list)
                assert sound is not None, "salvaged times are texts already"
                again = sound[0]
            self.part.tables.append(self._group(again, count=False))

    def _group(self, events: list[Event], *, count: bool = True) -> Groups:
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
        work = groups.get(Row.ACTIVITY, [])
        waits = [e for e in work if e.name in DEVICE_WAITS]
        if len(waits) == len(work):
            groups.pop(Row.ACTIVITY, None)
        elif waits:
            groups[Row.ACTIVITY] = [e for e in work if e.name not in DEVICE_WAITS]
        if count:
            self.part.events += len(events)
            self.part.views.update({WAITS: len(waits), COUNTER_RANGES: len(members.get(COUNTER_RANGES, ()))})
            self._count_odd(groups)
            self._note_processes(events, groups)
        return groups

    def _note_processes(self, events: list[Event], groups: Groups) -> None:
        named = [event for event in groups.get(Row.META, ()) if event.name == "process_name"]
        for event in named:
            self.part.processes.setdefault(event.pid, str(event.args.label))
        if named:
            places = self.part.tables.places(events, groups, named)
            self.part.announced += map(Announcement, (str(event.pid) for event in named), places)

    def _count_odd(self, groups: Groups) -> None:
        self.part.metadata += len(groups.get(Row.META, ()))
        strange = groups.get(Row.UNKNOWN, ())
        self.part.unknown.update(e.cat or (f"ph {e.ph}" if e.ph != "X" else "") for e in strange)
