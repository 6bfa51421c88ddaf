"""Events become columns while they are still hot: one set of typed arrays per table, texts as codes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import orjson
import polars as pl

from analyze import schema
from analyze.trace.classes import Row, activity_kind
from analyze.trace.clock import NULL, to_ns
from analyze.trace.decode import NO_ARGS, Args, Event

NO_TEXT = 0
_NO_RAW = msgspec.Raw(b"")
_INT64 = range(-(2**63), 2**63)
_BEYOND = 2**65


class Codes(dict[Any, int]):
    """A dictionary that numbers what it has not seen: value -> code, in order of arrival."""

    def __missing__(self, key: Any) -> int:
        """The next free number."""
        code = self[key] = len(self)
        return code


class Texts(Codes):
    """Codes for texts: code 0 is no text; raw JSON is copied out of its piece."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        super().__init__({None: NO_TEXT})
        self.update((text, code) for code, text in enumerate(texts, NO_TEXT + 1))

    def series(self, codes: array[int]) -> pl.Series:
        """The texts of the codes, dictionary-encoded."""
        words = pl.Series([None, *list(self)[1:]], dtype=pl.String).cast(pl.Categorical)
        coded: pl.Series = words.gather(pl.Series(np.frombuffer(codes, dtype=np.uint32)))
        return coded


class Table:
    """The columns of one table as growing arrays."""

    def __init__(self, columns: schema.Schema) -> None:
        self.columns = columns
        self.ints: dict[str, array[int]] = {c.name: array("q") for c in columns if c.dtype == pl.Int64}
        self.codes: dict[str, array[int]] = {c.name: array("I") for c in columns if c.dtype != pl.Int64}

    def __len__(self) -> int:
        return len(next(iter((*self.codes.values(), *self.ints.values()))))

    def frame(self, texts: Texts) -> pl.DataFrame:
        """The table as a frame of its declared schema."""
        series = [self._series(column, texts).alias(column.name) for column in self.columns]
        return pl.DataFrame(series)

    def _series(self, column: schema.Column, texts: Texts) -> pl.Series:
        if column.name in self.ints:
            values = pl.Series(np.frombuffer(self.ints[column.name], dtype=np.int64))
            return values.replace(NULL, None) if (values == NULL).any() else values
        codes = self.codes[column.name]
        if column.dtype == pl.UInt32:
            return pl.Series(np.frombuffer(codes, dtype=np.uint32))
        return texts.series(codes)


def whole(value: object) -> int:
    """One whole number of a value of any type, `NULL` where there is none."""
    if isinstance(value, bool) or value is None:
        return NULL
    if isinstance(value, Decimal) and not (value.is_finite() and -_BEYOND < value < _BEYOND):
        return NULL  # int() of 1e999999999 would never end
    try:
        number: int = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return NULL
    if number not in _INT64:
        return number - 2**64 if 2**63 <= number < 2**64 else NULL
    return number


def ints(values: list[Any]) -> array[int]:
    """Whole numbers of a column; the common case without a Python step per value."""
    try:
        return array("q", values)
    except (TypeError, OverflowError):
        return array("q", [whole(value) for value in values])


Groups = dict[Row, list[Event]]


class Tables:
    """All tables of one document under construction."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.raw_codes = RawCodes(self.texts)
        self.threads = Codes()
        self.tables = {name: Table(columns) for name, columns in _SCHEMAS.items()}

    def append(self, groups: Groups) -> None:
        """Add the events of one piece, grouped by table.

        Raises:
            NeedsTextError: before anything was added, when float64 cannot hold the times.
        """
        times = {row: _times(events) for row, events in groups.items() if row in _FILLS}
        for row, (start, dur) in times.items():
            name, fill = _FILLS[row]
            fill(self, self.tables[name], groups[row], start, dur)

    def places(self, events: list[Event], groups: Groups, marked: list[Event]) -> list[dict[str, int]]:
        """For each of some events of the next piece: how many rows of each table lie before it in the file.

        Args:
            events: all events of the piece, which is not appended yet.
            groups: the same by table.
            marked: some of them.
        """
        order = {id(event): i for i, event in enumerate(events)}
        before = {
            name: (len(self.tables[name]), [order[id(event)] for event in groups.get(row, ())])
            for row, (name, _) in _FILLS.items()
        }
        return [
            {name: rows + bisect_left(places, order[id(event)]) for name, (rows, places) in before.items()}
            for event in marked
        ]

    def absorb(self, later: Tables) -> None:
        """Append the rows of another stretch, its codes translated into these."""
        texts = np.array([self.texts[text] for text in later.texts], dtype=np.uint32)
        threads = np.array([self.threads[thread] for thread in later.threads], dtype=np.uint32)
        for name, table in self.tables.items():
            theirs = later.tables[name]
            for column, values in theirs.ints.items():
                table.ints[column].extend(values)
            for column, codes in theirs.codes.items():
                known = threads if column == "thread" else texts
                if len(codes):
                    table.codes[column].frombytes(known[np.frombuffer(codes, dtype=np.uint32)].tobytes())

    def frames(self) -> dict[str, pl.DataFrame]:
        """The finished frames by table name, and the threads."""
        frames = {name: table.frame(self.texts) for name, table in self.tables.items()}
        frames["threads"] = _thread_frame(self.threads)
        return frames

    def raw(self, values: list[msgspec.Raw]) -> list[int]:
        """Codes of raw JSON texts, by value: how a file lays out its lists makes no difference."""
        codes = self.raw_codes
        return [codes[bytes(value)] for value in values]


class RawCodes(dict[bytes, int]):
    """Raw JSON -> code of its compact text."""

    def __init__(self, texts: Texts) -> None:
        super().__init__({b"": NO_TEXT})
        self.texts = texts

    def __missing__(self, raw: bytes) -> int:
        """The code of a text that was not seen in this layout."""
        try:
            compact = orjson.dumps(orjson.loads(raw)).decode()
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            compact = raw.decode("utf-8", "replace")
        code = self[raw] = self.texts[compact]
        return code


def _times(events: list[Event]) -> tuple[array[int], array[int]]:
    start, dur = array("q"), array("q")
    start.frombytes(to_ns([e.ts for e in events]).tobytes())
    ns = to_ns([e.dur for e in events])
    dur.frombytes(np.where(ns == NULL, ns, np.maximum(ns, 0)).tobytes())
    return start, dur


def _fill_named(tables: Tables, table: Table, events: list[Event], start: array[int], dur: array[int]) -> None:
    texts = tables.texts
    table.ints["start_ns"].extend(start)
    table.ints["dur_ns"].extend(dur)
    table.codes["name"].extend([texts[e.name] for e in events])


def _fill_threaded(tables: Tables, table: Table, events: list[Event], start: array[int], dur: array[int]) -> None:
    threads = tables.threads
    _fill_named(tables, table, events, start, dur)
    table.codes["thread"].extend([threads[e.pid, e.tid] for e in events])


def _fill_ops(tables: Tables, table: Table, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_threaded(tables, table, events, start, dur)
    args = [e.args for e in events]
    table.ints["external_id"].extend(ints([a.external_id for a in args]))
    table.ints["sequence"].extend(ints([a.sequence for a in args]))
    table.ints["forward_thread"].extend([t or NULL for t in ints([a.forward_thread for a in args])])
    table.codes["input_dims"].extend(tables.raw([a.input_dims for a in args]))
    table.codes["input_types"].extend(tables.raw([a.input_types for a in args]))
    # FLOPs need more than shapes of convolutions (stride, padding, groups) and of attention (is it causal?) only.
    concrete = [e.args.concrete_inputs if "conv" in e.name or "_dot_product_" in e.name else _NO_RAW for e in events]
    table.codes["concrete_inputs"].extend(tables.raw(concrete))


def _fill_runtime(tables: Tables, table: Table, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_threaded(tables, table, events, start, dur)
    _fill_links(table, events)


def _fill_links(table: Table, events: list[Event]) -> None:
    args = [e.args for e in events]
    table.ints["correlation"].extend([c or NULL for c in ints([a.correlation for a in args])])
    new = ints([a.external_id for a in args])
    old = ints([a.external_id_1_8 for a in args])
    table.ints["external_id"].extend([o if n == NULL else n for n, o in zip(new, old, strict=True)])


def _fill_activities(tables: Tables, table: Table, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_named(tables, table, events, start, dur)
    _fill_links(table, events)
    args = [e.args for e in events]
    groups, pids = zip(*[split_pid(e.pid) for e in events], strict=True)
    kinds = {cat: tables.texts[activity_kind(cat)] for cat in {e.cat for e in events}}
    table.codes["kind"].extend([kinds[e.cat] for e in events])
    table.codes["process"].extend([tables.texts[group] for group in groups])
    device, stream = ints([a.device for a in args]), ints([a.stream for a in args])
    table.ints["device"].extend([whole(p) if d == NULL else d for d, p in zip(device, pids, strict=True)])
    table.ints["stream"].extend([stream_of(e.tid) if s == NULL else s for s, e in zip(stream, events, strict=True)])
    for name in ("size_bytes", "registers", "shared_memory_bytes", "graph"):
        table.ints[name].extend(ints([getattr(a, name) for a in args]))
    table.codes["grid"].extend(tables.raw([a.grid for a in args]))
    table.codes["block"].extend(tables.raw([a.block for a in args]))
    _fill_collectives(tables, table, args)


def _fill_collectives(tables: Tables, table: Table, args: list[Args]) -> None:
    """What a process group wrote on its kernels; few pieces of few files hold any."""
    if any(a.collective is not None for a in args):
        named = [a if a.collective is not None else NO_ARGS for a in args]
        for name in _COLLECTIVE_TEXTS:
            values = [getattr(a, name) for a in named]
            table.codes[name].extend([NO_TEXT if v is None else tables.texts[str(v)] for v in values])
        for name in _COLLECTIVE_NUMBERS:
            table.ints[name].extend(ints([getattr(a, name) for a in named]))
        return
    for name in _COLLECTIVE_TEXTS:
        table.codes[name].extend(array("I", [NO_TEXT]) * len(args))
    for name in _COLLECTIVE_NUMBERS:
        table.ints[name].extend(array("q", [NULL]) * len(args))


def _fill_frames(tables: Tables, table: Table, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_threaded(tables, table, events, start, dur)
    table.ints["python_id"].extend(ints([e.args.python_id for e in events]))
    table.ints["parent_id"].extend(ints([e.args.parent_id for e in events]))


def _fill_memory(tables: Tables, table: Table, events: list[Event], start: array[int], _dur: array[int]) -> None:
    threads = tables.threads
    table.ints["time_ns"].extend(start)
    table.codes["thread"].extend([threads[e.pid, e.tid] for e in events])
    args = [e.args for e in events]
    for name, source in _MEMORY_ARGS.items():
        table.ints[name].extend(ints([getattr(a, source) for a in args]))


_COLLECTIVE_TEXTS = ("collective", "element_type")
_COLLECTIVE_NUMBERS = ("in_elements", "out_elements")
_MEMORY_ARGS = {
    "size_bytes": "memory_bytes",
    "address": "address",
    "allocated_bytes": "allocated_bytes",
    "reserved_bytes": "reserved_bytes",
    "device_type": "device_type",
    "device": "device_index",
}
_SCHEMAS: dict[str, schema.Schema] = {
    "ops": schema.OPS,
    "runtime": schema.RUNTIME,
    "activities": schema.ACTIVITIES,
    "ranges": schema.RANGES,
    "frames": schema.FRAMES,
    "overhead": schema.OVERHEAD,
    "spans": schema.SPANS,
    "memory": schema.MEMORY,
}
_Fill = Callable[[Tables, Table, list[Event], "array[int]", "array[int]"], None]
_FILLS: dict[Row, tuple[str, _Fill]] = {
    Row.OP: ("ops", _fill_ops),
    Row.API: ("runtime", _fill_runtime),
    Row.ACTIVITY: ("activities", _fill_activities),
    Row.RANGE: ("ranges", _fill_threaded),
    Row.FRAME: ("frames", _fill_frames),
    Row.OVERHEAD: ("overhead", _fill_named),
    Row.SPAN: ("spans", _fill_named),
    Row.MEMORY: ("memory", _fill_memory),
}


def split_pid(pid: object) -> tuple[str, object]:
    """Process group and pid: merged files write "[TP00-DP01] 83", all others the pid alone."""
    if isinstance(pid, str) and pid.startswith("[") and "] " in pid:
        group, _, rest = pid.partition("] ")
        return group[1:], rest
    return "", pid


def stream_of(tid: object) -> int:
    """Stream number of an old row's tid: 7, or "stream 7"."""
    if isinstance(tid, str):
        tid = tid.removeprefix("stream ").strip()
    return whole(tid)


def _thread_frame(threads: Codes) -> pl.DataFrame:
    pids = [split_pid(pid) for pid, _ in threads]
    return pl.DataFrame(
        {
            "thread": range(len(threads)),
            "pid": ["" if pid is None else str(pid) for _, pid in pids],
            "tid": ["" if tid is None else str(tid) for _, tid in threads],
            "process": [group for group, _ in pids],
        },
        schema=schema.dtypes(schema.THREADS),
    )
