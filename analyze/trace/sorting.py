"""The events of a piece go to their tables; what has none is counted by its kind, and what is odd is named."""

from __future__ import annotations

from collections import Counter, defaultdict

from msgspec import Struct, field
from msgspec.structs import fields

from analyze.trace.classes import (
    FLOWS,
    MEMORY_NAME,
    MEMORY_PHASES,
    TRACK_CATEGORY,
    TRACKS,
    RowKind,
    device_category,
    is_phase,
    kind_of,
    row_of,
    table_of,
    unused_kind,
)
from analyze.trace.clock import NULL
from analyze.trace.decode import Event

WAITS = "device waits"
# A device's own waits for events, which some writers put among its kernels: no work is done in them.
DEVICE_WAITS = frozenset(
    ("event_wait", "Event Wait", "Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync", "Stream Synchronize")
)
_SHOWN = 40
Groups = dict[RowKind, list[Event]]


class Counts(Struct):
    """Rows that are in no table, or that were hard to place.

    Attributes:
        unused: rows that no figure needs, by what they are.
        unknown: complete rows of no known category, "" without one.
        repaired: rows whose table was found in spite of their category or phase, by what was odd.
        lost: rows of a table's category that are no complete rows, by what is odd.
    """

    unused: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def update(self, later: Counts) -> None:
        """Add the counts of a later stretch."""
        for name in COUNTERS:
            getattr(self, name).update(getattr(later, name))


COUNTERS = tuple(field.name for field in fields(Counts))


class Sorted(Struct):
    """The events of a piece.

    Attributes:
        groups: by table, each in the order of the file.
        counts: the others.
    """

    groups: Groups = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)


def sort_events(events: list[Event]) -> Sorted:
    """Find the table of each event."""
    members: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        members[event.cat].append(event)
    found = Sorted()
    added = members.pop(TRACK_CATEGORY, None)
    if added:
        found.counts.unused[TRACKS] += len(added)
    categories: defaultdict[RowKind, list[str]] = defaultdict(list)
    for cat in members:
        categories[table_of(cat)].append(cat)
    odd: list[Event] = []
    groups = found.groups
    for row, cats in categories.items():
        mine = members[cats[0]] if len(cats) == 1 else [e for e in events if e.cat in cats]
        if row is RowKind.UNKNOWN:
            odd += mine
        elif row is RowKind.IGNORED:
            found.counts.unused[FLOWS] += len(mine)
        else:
            groups[row] = [e for e in mine if e.ph == "X"]
            if len(groups[row]) < len(mine):
                odd += [e for e in mine if e.ph != "X"]
    _sort_odd(odd, found)
    if found.counts.repaired:
        order = {id(event): i for i, event in enumerate(events)}
        for rows in groups.values():
            rows.sort(key=lambda event: order[id(event)])
    _take_waits(found)
    for row in [row for row, rows in groups.items() if not rows]:
        del groups[row]
    return found


def _sort_odd(odd: list[Event], found: Sorted) -> None:
    """Place events that their category alone does not."""
    groups, counts = found.groups, found.counts
    memory: list[Event] = groups.setdefault(RowKind.MEMORY, [])
    for event in odd:
        if event.name == MEMORY_NAME and event.ph in MEMORY_PHASES:
            memory.append(event)
            continue
        unused = unused_kind(event.ph, event.cat)
        if unused:
            counts.unused[unused] += 1
            continue
        row = row_of(event.ph, event.cat, event.name, event.pid)
        if row is RowKind.UNKNOWN or row is RowKind.IGNORED:
            row = _place(event, row, found)
        if row is RowKind.UNKNOWN:
            counts.unknown[event.cat] += 1
        elif row is RowKind.IGNORED:
            counts.unused[kind_of(event.ph)] += 1
        elif row is not RowKind.LOST:
            groups.setdefault(row, []).append(event)


def _place(event: Event, row: RowKind, found: Sorted) -> RowKind:
    """The table of an event with an odd category or phase, where its other fields leave no doubt."""
    if not event.cat and (event.ph == "X" or not is_phase(event.ph)) and _on_device(event):
        event.cat = device_category(event.name)
        found.counts.repaired[f"{event.cat} without a category"] += 1
        return RowKind.ACTIVITY
    if event.ph == "X":
        return row
    complete = row_of("X", event.cat, event.name, event.pid)
    what = _described(event)
    if complete is RowKind.MEMORY or (event.dur is not None and complete not in (RowKind.UNKNOWN, RowKind.IGNORED)):
        found.counts.repaired[what] += 1
        return complete
    found.counts.lost[what] += 1
    return RowKind.LOST


def _described(event: Event) -> str:
    """What is odd about an event, in a few words."""
    what = event.cat[:_SHOWN] or "row"
    return f"{what} of phase {event.ph[:_SHOWN]!r}" if event.ph else f"{what} without a phase"


def _on_device(event: Event) -> bool:
    """Whether only rows of a device's work look like an event: it has a device, a stream, a launch and a duration."""
    args = event.args
    ids = (args.device, args.stream, args.correlation)
    return event.dur is not None and all(isinstance(n, int) and n != NULL for n in ids)


def _take_waits(found: Sorted) -> None:
    """A device's waits are no work."""
    work = found.groups.get(RowKind.ACTIVITY, [])
    waits = [e for e in work if e.name in DEVICE_WAITS]
    if waits:
        found.counts.unused[WAITS] += len(waits)
        found.groups[RowKind.ACTIVITY] = [e for e in work if e.name not in DEVICE_WAITS]
