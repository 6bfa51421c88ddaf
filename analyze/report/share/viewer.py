"""Rows that viewers of traces draw (Perfetto, chrome://tracing): processes, lanes, slices, instants, counters.

Source: the Trace Drawn Format. Times are the file's own clock in microseconds with three decimals, written from integer
nanoseconds: no digit is lost. Every row has the category that the reader of traces passes over. Thread numbers are
unique over all processes, because some viewers name threads by them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from analyze.inert import printable
from analyze.report.text import shorten
from analyze.trace.classes import TRACK_CATEGORY

FIRST_ROW = b'{"ph": "M", "cat": "%s", "name": "process_name", ' % TRACK_CATEGORY.encode()
ADDED = "added by analyze export"
_ON_TOP = -1_000  # of the processes of a trace: PyTorch writes process numbers from 0 up
_NAME_LIMIT = 300  # characters: C++ templates reach thousands


class Drawn(NamedTuple):
    """Something at a time; `dur_ns` is None for all but slices.

    Attributes:
        ph: "X" for a slice, "i" for an instant, "C" for a new value of a counter.
        name: what the viewer writes on it.
        start_ns: when, on the file's own clock.
        dur_ns: how long.
        args: what the viewer shows of it; only numbers for a counter.
    """

    ph: str
    name: str
    start_ns: int
    dur_ns: int | None
    args: Mapping[str, Any]


class Lane(Struct, frozen=True):
    """One line of a viewer.

    Attributes:
        name: its name.
        events: makes what stands on it; slices do not overlap.
    """

    name: str
    events: Callable[[], Iterable[Drawn]]


class Heading(Struct, frozen=True):
    """Lanes under one heading, a process for viewers.

    Attributes:
        name: its name.
        lanes: its lanes, in order.
        counters: makes the values of its counters; those of one name are one counter.
    """

    name: str
    lanes: tuple[Lane, ...] = ()
    counters: Callable[[], Iterable[Drawn]] = tuple


def text_of(name: str) -> str:
    """A name from a trace for a row: printable, cut in the middle where it is long."""
    return shorten(printable(name), _NAME_LIMIT)


def microseconds(ns: int) -> str:
    """Nanoseconds as decimal microseconds, as a trace and the reports write them: 1234567.890."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"


def number_of(ns: int) -> msgspec.Raw:
    """The same as a number of a JSON document."""
    return msgspec.Raw(microseconds(ns).encode())


def rows_of(groups: tuple[Heading, ...], numbers: Iterator[int]) -> Iterator[bytes]:
    """Every row of the groups as JSON. The first one begins with `FIRST_ROW`, the last one is `last_row`.

    Args:
        groups: one at least.
        numbers: process and thread numbers that the file does not have.
    """
    first = None
    for order, group in enumerate(groups):
        pid = next(numbers)
        first = pid if first is None else first
        yield _meta("process_name", pid, pid, {"name": group.name})
        yield _meta("process_sort_index", pid, pid, {"sort_index": _ON_TOP + order})
        yield _meta("process_labels", pid, pid, {"labels": ADDED})
        for place, lane in enumerate(group.lanes):
            tid = next(numbers)
            yield _meta("thread_name", pid, tid, {"name": lane.name})
            yield _meta("thread_sort_index", pid, tid, {"sort_index": place})
            yield from (_row(event, pid, tid) for event in lane.events())
        yield from (_row(event, pid, pid) for event in group.counters())
    assert first is not None
    yield last_row(first)


def last_row(pid: int) -> bytes:
    """The row that ends the added ones."""
    return _meta("process_labels", pid, pid, {"labels": ADDED, "last": 1})


def _meta(name: str, pid: int, tid: int, args: Mapping[str, Any]) -> bytes:
    return b'{"ph": "M", "cat": "%b", "name": "%b", "pid": %d, "tid": %d, "args": %b}' % (
        TRACK_CATEGORY.encode(), name.encode(), pid, tid, msgspec.json.encode(args),
    )  # fmt: skip


def _row(event: Drawn, pid: int, tid: int) -> bytes:
    ph, name, start_ns, dur_ns, args = event
    dur = f', "dur": {microseconds(dur_ns)}' if dur_ns is not None else ', "s": "t"' if ph == "i" else ""
    return b'{"ph": "%b", "cat": "%b", "name": %b, "pid": %d, "tid": %d, "ts": %b%b, "args": %b}' % (
        ph.encode(), TRACK_CATEGORY.encode(), msgspec.json.encode(name), pid, tid, microseconds(start_ns).encode(),
        dur.encode(), msgspec.json.encode(args),
    )  # fmt: skip
