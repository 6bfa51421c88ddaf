"""Events become columns while they are still hot: one set of typed arrays per table, texts as codes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import polars as pl

from analyze import schema
from analyze.arrays import Int64
from analyze.trace.classes import RowKind, activity_kind
from analyze.trace.clock import NULL, durations_ns, to_ns
from analyze.trace.codes import NO_TEXT, Codes, Texts
from analyze.trace.decode import NO_ARGS, Args, Event
from analyze.trace.limits import bound
from analyze.trace.numbers import whole
from analyze.trace.odd import Odd
from analyze.trace.raw import Check, RawCodes, are_sizes, are_words, is_grid
from analyze.trace.sorting import Groups

_NO_RAW = msgspec.Raw(b"")
_NO_TIMES = np.empty(0, dtype=np.int64)


class TableBuffer:
    """The columns of one table as growing arrays."""

    def __init__(self, columns: schema.Schema) -> None:
        self.columns = columns
        self.ints: dict[str, array[int]] = {c.name: array("q") for c in columns if c.dtype == pl.Int64}
        self.codes: dict[str, array[int]] = {c.name: array("I") for c in columns if c.dtype != pl.Int64}

    def __len__(self) -> int:
        return len(next(iter((*self.codes.values(), *self.ints.values()))))

    def frame(self, texts: Texts) -> pl.DataFrame:
        """The table as a frame of its declared schema; each column is given away as it is made."""
        series = [self._series(column, texts).alias(column.name) for column in self.columns]
        return pl.DataFrame(series)

    def _series(self, column: schema.Field, texts: Texts) -> pl.Series:
        if column.name in self.ints:
            return _numbers(np.frombuffer(self.ints.pop(column.name), dtype=np.int64))
        codes = self.codes.pop(column.name)
        if column.dtype == pl.UInt32:
            return pl.Series(np.frombuffer(codes, dtype=np.uint32))
        return texts.series(codes)


def _numbers(values: Int64) -> pl.Series:
    """A column of numbers, null where they are `NULL`; a column of nothing else takes no memory."""
    missing = values == NULL
    if not missing.any():
        return pl.Series(values)
    if missing.all():
        return pl.repeat(None, len(values), dtype=pl.Int64, eager=True)
    return pl.Series(values).set(pl.Series(missing), None)


class Tables:
    """All tables of one document under construction.

    Attributes:
        odd: values that were left out, by field.
    """

    def __init__(self) -> None:
        self.texts = Texts()
        self.odd = Odd()
        checks: tuple[Check, ...] = (are_sizes, are_words, is_grid)
        self.raw_codes = {check: RawCodes(self.texts, check) for check in checks}
        self.threads = Codes()
        self.tables = {name: TableBuffer(columns) for name, columns in _SCHEMAS.items()}

    def append(self, groups: Groups) -> None:
        """Add the events of one piece, grouped by table.

        Raises:
            NeedsTextError: before anything was added, when float64 cannot hold the times.
        """
        starts = {row: to_ns([e.ts for e in groups[row]]) for row in groups if row in _FILLS}
        for row, start in starts.items():
            name, fill = _FILLS[row]
            events = groups[row]
            dur = _NO_TIMES if row is RowKind.MEMORY else durations_ns([e.dur for e in events])
            if len(start) and start.min() == NULL:
                self._note_times("ts", events, start)
            if len(dur) and dur.min() < 0:
                self._note_times("dur", events, dur)
                self._end_at_start(dur)
            fill(self, self.tables[name], events, _packed(start), _packed(dur))

    def _note_times(self, name: str, events: list[Event], read: Int64) -> None:
        """Count times that are there and cannot be read."""
        unread = np.flatnonzero(read == NULL).tolist()
        given = [getattr(event, name) for event in events] if unread else []
        if len(unread) > given.count(None):
            self.odd.note_unread(name, (given[i] for i in unread), (NULL for _ in unread))

    def _end_at_start(self, dur: Int64) -> None:
        """Rows that end before they start last for no time."""
        negative = np.flatnonzero((dur < 0) & (dur != NULL))
        if len(negative):
            self.odd.note("dur below 0", int(dur[negative[0]]) / 1000, len(negative))
            dur[negative] = 0

    def places(self, events: list[Event], groups: Groups, marked: list[Event]) -> list[dict[str, int]]:
        """For each of some events of the last piece: how many rows of each table lie before it in the file.

        Args:
            events: all events of the piece, which was appended just now.
            groups: the same by table.
            marked: some of them.
        """
        order = {id(event): i for i, event in enumerate(events)}
        before = {
            name: (len(self.tables[name]) - len(mine), [order[id(event)] for event in mine])
            for row, (name, _) in _FILLS.items()
            for mine in [groups.get(row, [])]
        }
        return [
            {name: rows + bisect_left(places, order[id(event)]) for name, (rows, places) in before.items()}
            for event in marked
        ]

    def absorb(self, later: Tables) -> None:
        """Append the rows of another stretch, its codes translated into these."""
        self.odd = self.odd + later.odd
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
        """The finished frames by table name, and the threads; numbers that cannot be true are left out (`limits`)."""
        bound({name: table.ints for name, table in self.tables.items()}, self.odd)
        frames = {name: table.frame(self.texts) for name, table in self.tables.items()}
        frames["threads"] = _thread_frame(self.threads)
        return frames

    def ints(self, name: str, values: list[Any]) -> array[int]:
        """Whole numbers of a field; the common case without a Python step per value."""
        try:
            return array("q", values)
        except (TypeError, OverflowError):
            found = array("q", [whole(value) for value in values])
            self.odd.note_unread(name, values, found)
            return found

    def raw(self, name: str, values: list[msgspec.Raw], check: Check) -> list[int]:
        """Codes of raw JSON texts, by value: how a file lays out its lists makes no difference."""
        codes = self.raw_codes[check]
        found = [codes[bytes(value)] for value in values]
        if codes.refused:
            self.odd.count(name, (value for value in values if bytes(value) in codes.refused))
        return found


def _packed(times: Int64) -> array[int]:
    packed = array("q")
    packed.frombytes(times.tobytes())
    return packed


def _fill_named(tables: Tables, table: TableBuffer, events: list[Event], start: array[int], dur: array[int]) -> None:
    texts = tables.texts
    table.ints["start_ns"].extend(start)
    table.ints["dur_ns"].extend(dur)
    table.codes["name"].extend([texts[e.name] for e in events])


def _fill_threaded(tables: Tables, table: TableBuffer, events: list[Event], start: array[int], dur: array[int]) -> None:
    threads = tables.threads
    _fill_named(tables, table, events, start, dur)
    table.codes["thread"].extend([threads[e.pid, e.tid] for e in events])


def _fill_ops(tables: Tables, table: TableBuffer, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_threaded(tables, table, events, start, dur)
    args = [e.args for e in events]
    table.ints["external_id"].extend(tables.ints("External id", [a.external_id for a in args]))
    table.ints["sequence"].extend(tables.ints("Sequence number", [a.sequence for a in args]))
    forward = tables.ints("Fwd thread id", [a.forward_thread for a in args])
    table.ints["forward_thread"].extend([t or NULL for t in forward])
    table.codes["input_dims"].extend(tables.raw("Input Dims", [a.input_dims for a in args], are_sizes))
    table.codes["input_types"].extend(tables.raw("Input type", [a.input_types for a in args], are_words))
    # FLOPs need more than shapes of convolutions (stride, padding, groups) and of attention (is it causal?) only.
    concrete = [e.args.concrete_inputs if "conv" in e.name or "_dot_product_" in e.name else _NO_RAW for e in events]
    table.codes["concrete_inputs"].extend(tables.raw("Concrete Inputs", concrete, are_words))
    collective = [a for a in args if a.collective is not None]
    if collective:
        said = tables.tables["collective_ops"]
        said.ints["external_id"].extend(tables.ints("External id", [a.external_id for a in collective]))
        _fill_collectives(tables, said, collective)


def _fill_runtime(tables: Tables, table: TableBuffer, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_threaded(tables, table, events, start, dur)
    _fill_links(tables, table, events)


def _fill_links(tables: Tables, table: TableBuffer, events: list[Event]) -> None:
    args = [e.args for e in events]
    table.ints["correlation"].extend([c or NULL for c in tables.ints("correlation", [a.correlation for a in args])])
    new = tables.ints("External id", [a.external_id for a in args])
    old = tables.ints("external id", [a.external_id_1_8 for a in args])
    table.ints["external_id"].extend([o if n == NULL else n for n, o in zip(new, old, strict=True)])


def _fill_activities(
    tables: Tables, table: TableBuffer, events: list[Event], start: array[int], dur: array[int]
) -> None:
    _fill_named(tables, table, events, start, dur)
    _fill_links(tables, table, events)
    args = [e.args for e in events]
    groups, pids = zip(*[split_pid(e.pid) for e in events], strict=True)
    kinds = {cat: tables.texts[activity_kind(cat)] for cat in {e.cat for e in events}}
    table.codes["kind"].extend([kinds[e.cat] for e in events])
    table.codes["process"].extend([tables.texts[group] for group in groups])
    device = tables.ints("device", [a.device for a in args])
    stream = tables.ints("stream", [a.stream for a in args])
    table.ints["device"].extend([whole(p) if d == NULL else d for d, p in zip(device, pids, strict=True)])
    table.ints["stream"].extend([stream_of(e.tid) if s == NULL else s for s, e in zip(stream, events, strict=True)])
    for column, name in _ACTIVITY_ARGS.items():
        table.ints[column].extend(tables.ints(name, [getattr(a, column) for a in args]))
    table.codes["grid"].extend(tables.raw("grid", [a.grid for a in args], is_grid))
    table.codes["block"].extend(tables.raw("block", [a.block for a in args], is_grid))
    _fill_collectives(tables, table, args)


def _fill_collectives(tables: Tables, table: TableBuffer, args: list[Args]) -> None:
    """What a process group wrote on its kernels; few pieces of few files hold any."""
    if any(a.collective is not None for a in args):
        named = [a if a.collective is not None else NO_ARGS for a in args]
        for name in _COLLECTIVE_TEXTS:
            values = [getattr(a, name) for a in named]
            table.codes[name].extend([NO_TEXT if v is None else tables.texts[str(v)] for v in values])
        ranks = [bytes(a.group_ranks)[:_LONGEST_LIST].decode("utf-8", "replace") for a in named]
        table.codes["group_ranks"].extend([tables.texts[text] if text else NO_TEXT for text in ranks])
        for name, field in _COLLECTIVE_NUMBERS.items():
            table.ints[name].extend(tables.ints(field, [getattr(a, name) for a in named]))
        return
    for name in (*_COLLECTIVE_TEXTS, "group_ranks"):
        table.codes[name].extend(array("I", [NO_TEXT]) * len(args))
    for name in _COLLECTIVE_NUMBERS:
        table.ints[name].extend(array("q", [NULL]) * len(args))


def _fill_frames(tables: Tables, table: TableBuffer, events: list[Event], start: array[int], dur: array[int]) -> None:
    _fill_threaded(tables, table, events, start, dur)
    table.ints["python_id"].extend(tables.ints("Python id", [e.args.python_id for e in events]))
    table.ints["parent_id"].extend(tables.ints("Python parent id", [e.args.parent_id for e in events]))


def _fill_memory(tables: Tables, table: TableBuffer, events: list[Event], start: array[int], _dur: array[int]) -> None:
    threads = tables.threads
    table.ints["time_ns"].extend(start)
    table.codes["thread"].extend([threads[e.pid, e.tid] for e in events])
    args = [e.args for e in events]
    for column, (attribute, name) in _MEMORY_ARGS.items():
        table.ints[column].extend(tables.ints(name, [getattr(a, attribute) for a in args]))


_LONGEST_LIST = 1 << 12  # writers cut the list behind 30 ranks
_COLLECTIVE_TEXTS = ("collective", "element_type", "group", "group_description")
_COLLECTIVE_NUMBERS = {
    "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems",
    "group_size": "Group size",
    "group_sequence": "Seq",
    "source_rank": "Src Rank",
    "target_rank": "Dst Rank",
}
_ACTIVITY_ARGS = {
    "size_bytes": "bytes",
    "registers": "registers per thread",
    "shared_memory_bytes": "shared memory",
    "graph": "graph id",
}
_MEMORY_ARGS = {
    "size_bytes": ("memory_bytes", "Bytes"),
    "address": ("address", "Addr"),
    "allocated_bytes": ("allocated_bytes", "Total Allocated"),
    "reserved_bytes": ("reserved_bytes", "Total Reserved"),
    "device_type": ("device_type", "Device Type"),
    "device": ("device_index", "Device Id"),
}
_SCHEMAS: dict[str, schema.Schema] = {
    "ops": schema.OPS,
    "runtime": schema.RUNTIME,
    "activities": schema.ACTIVITIES,
    "collective_ops": schema.COLLECTIVE_OPS,
    "ranges": schema.RANGES,
    "frames": schema.FRAMES,
    "overhead": schema.OVERHEAD,
    "spans": schema.SPANS,
    "memory": schema.MEMORY,
}
_Fill = Callable[[Tables, TableBuffer, list[Event], "array[int]", "array[int]"], None]
_FILLS: dict[RowKind, tuple[str, _Fill]] = {
    RowKind.OP: ("ops", _fill_ops),
    RowKind.API: ("runtime", _fill_runtime),
    RowKind.ACTIVITY: ("activities", _fill_activities),
    RowKind.RANGE: ("ranges", _fill_threaded),
    RowKind.FRAME: ("frames", _fill_frames),
    RowKind.OVERHEAD: ("overhead", _fill_named),
    RowKind.SPAN: ("spans", _fill_named),
    RowKind.MEMORY: ("memory", _fill_memory),
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
