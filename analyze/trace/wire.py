"""A part as bytes between two processes of this program: a header, then each column as it stands in memory."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import IO

import msgspec

from analyze.trace.codes import Codes, Texts
from analyze.trace.decode import Damage
from analyze.trace.odd import Odd
from analyze.trace.programs import Announcement
from analyze.trace.rest import Rest
from analyze.trace.sorting import COUNTERS, Counts
from analyze.trace.stretch import Stretch

_LENGTH_BYTES = 8


class _Header(msgspec.Struct):
    """Everything of a part but its columns; texts and threads in order of their codes."""

    texts: list[str]
    threads: list[tuple[str | int | None, str | int | None]]
    counters: list[dict[str, int]]
    events: int
    metadata: int
    processes: list[tuple[str | int | None, str]]
    announced: list[tuple[str, dict[str, int]]]
    damage: tuple[int, int, bool, str]
    odd: list[tuple[dict[str, int], dict[str, str]]]
    rest: tuple[bytes, list[int], int] | None
    keys_after: dict[str, object]
    ended: bool
    columns: list[tuple[str, str, str, int]]


def send(part: Stretch, file: IO[bytes]) -> None:
    """Write a part."""
    tables = part.tables
    columns = [
        (name, kind, column, values)
        for name, table in tables.tables.items()
        for kind, arrays in (("q", table.ints), ("I", table.codes))
        for column, values in arrays.items()
    ]
    header = _Header(
        texts=list(tables.texts)[1:],
        threads=list(tables.threads),
        counters=[dict(getattr(part.counts, name)) for name in COUNTERS],
        events=part.events,
        metadata=part.metadata,
        processes=[(pid, name) for pid, name in part.processes.items() if isinstance(pid, str | int)],
        announced=[(one.pid, one.rows_before) for one in part.announced],
        damage=(part.damage.repaired, part.damage.lost, part.damage.cut, part.damage.example),
        odd=[(dict(odd.counts), odd.examples) for odd in (part.damage.odd, tables.odd)],
        rest=None if part.rest is None else (bytes(part.rest.text), part.rest.lists, part.rest.stray),
        keys_after=part.keys_after,
        ended=part.ended,
        columns=[(name, kind, column, len(values)) for name, kind, column, values in columns],
    )
    head = msgspec.msgpack.encode(header)
    file.write(len(head).to_bytes(_LENGTH_BYTES, "little") + head)
    for _, _, _, values in columns:
        file.write(values)
    file.flush()


def receive(file: IO[bytes]) -> Stretch | None:
    """Read a part; None when the other process ended before it was sent."""
    size = file.read(_LENGTH_BYTES)
    head = file.read(int.from_bytes(size, "little"))
    if not head:
        return None
    header = msgspec.msgpack.decode(head, type=_Header)
    of_damage, of_tables = (Odd(Counter(counts), examples) for counts, examples in header.odd)
    part = Stretch(
        counts=Counts(*map(Counter, header.counters)),
        events=header.events,
        metadata=header.metadata,
        processes=dict(header.processes),
        announced=[Announcement(*one) for one in header.announced],
        damage=Damage(*header.damage, of_damage),
        rest=None if header.rest is None else Rest.of(*header.rest),
        keys_after=header.keys_after,
        ended=header.ended,
    )
    part.tables.odd = of_tables
    part.tables.texts = Texts(header.texts)
    part.tables.threads = Codes({thread: code for code, thread in enumerate(header.threads)})
    for name, kind, column, count in header.columns:
        values = array(kind)
        data = file.read(count * values.itemsize)
        if len(data) < count * values.itemsize:
            return None
        values.frombytes(data)
        table = part.tables.tables[name]
        (table.ints if kind == "q" else table.codes)[column] = values
    return part
