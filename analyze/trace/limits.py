"""What numbers can be: ranges of columns, and bounds on a whole file, so that no sum behind this border can wrap.

A single value is held by its column's range. Rows far from all others have no time, so differences of times stay below
2^52 ns, and over the 2^10 devices that there can be their sum stays below 2^62. Sums over rows (of durations, of sizes)
are held below 2^62: where a column would add up to more, its largest values fall out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

import numpy as np

from analyze.arrays import Bool, Int64
from analyze.trace.clock import LONGEST_NS, NULL
from analyze.trace.numbers import LARGEST_BYTES, MOST_DEVICES
from analyze.trace.odd import Odd

Columns = Mapping[str, "array[int]"]

_SUM_LIMIT = 2**61
_HOST = 0  # device type of the host, whose total is not recorded
_SPREAD_NS = LONGEST_NS  # between the first and the last row of a recording: 26 days
_TIMES = ("start_ns", "time_ns")
_MICROSECONDS = ("ts", "dur")  # as the file has them
_SUMMED = {"dur_ns": "dur", "size_bytes": "bytes"}

# By table and column: the field as the file calls it, the least and the largest value.
_RANGES: dict[tuple[str, str], tuple[str, int, int]] = {
    ("activities", "device"): ("device", 0, MOST_DEVICES - 1),
    ("activities", "size_bytes"): ("bytes", 0, LARGEST_BYTES),
    ("activities", "registers"): ("registers per thread", 0, 2**16),
    ("activities", "shared_memory_bytes"): ("shared memory", 0, LARGEST_BYTES),
    ("activities", "in_elements"): ("In msg nelems", 0, LARGEST_BYTES),
    ("activities", "out_elements"): ("Out msg nelems", 0, LARGEST_BYTES),
    ("activities", "group_size"): ("Group size", 0, 2**31 - 1),
    ("activities", "group_sequence"): ("Seq", 0, 2**62),
    ("activities", "source_rank"): ("Src Rank", 0, 2**31 - 1),
    ("activities", "target_rank"): ("Dst Rank", 0, 2**31 - 1),
    ("collective_ops", "in_elements"): ("In msg nelems", 0, LARGEST_BYTES),
    ("collective_ops", "out_elements"): ("Out msg nelems", 0, LARGEST_BYTES),
    ("collective_ops", "group_size"): ("Group size", 0, 2**31 - 1),
    ("collective_ops", "group_sequence"): ("Seq", 0, 2**62),
    ("collective_ops", "source_rank"): ("Src Rank", 0, 2**31 - 1),
    ("collective_ops", "target_rank"): ("Dst Rank", 0, 2**31 - 1),
    ("memory", "size_bytes"): ("Bytes", -LARGEST_BYTES, LARGEST_BYTES),
    ("memory", "allocated_bytes"): ("Total Allocated", 0, LARGEST_BYTES),
    ("memory", "reserved_bytes"): ("Total Reserved", 0, LARGEST_BYTES),
    ("memory", "device_type"): ("Device Type", 0, 255),
    ("memory", "device"): ("Device Id", -1, MOST_DEVICES - 1),
}


def bound(tables: Mapping[str, Columns], odd: Odd) -> None:
    """Take out of the columns what cannot be, in place, and count it.

    Args:
        tables: number columns by table, with `NULL` where there is no value.
        odd: gets what falls out.
    """
    for (table, column), (name, least, most) in _RANGES.items():
        values = _view(tables[table][column])
        if len(values) and (values.min() < least or values.max() > most):
            _drop(values, (values < least) | (values > most), name, odd)
    _bound_allocations(tables["memory"], odd)
    _bound_spread(tables, odd)
    for columns in tables.values():
        for column, name in _SUMMED.items():
            if column in columns:
                _bound_sum(_view(columns[column]), name, odd)


def _view(column: array[int]) -> Int64:
    return np.frombuffer(column, dtype=np.int64)


def _drop(values: Int64, bad: Bool, name: str, odd: Odd) -> None:
    at = np.flatnonzero(bad)
    at = at[values[at] != NULL]
    if len(at):
        value = int(values[at[0]])
        odd.note(name, value / 1000 if name in _MICROSECONDS else value, len(at))
        values[at] = NULL


def _bound_allocations(memory: Columns, odd: Odd) -> None:
    """Take out sizes of allocations on a device that are larger than all that is allocated there after them."""
    size, total, kind = (_view(memory[name]) for name in ("size_bytes", "allocated_bytes", "device_type"))
    _drop(size, (total != NULL) & (size > total) & (kind > _HOST), "Bytes", odd)


def _bound_spread(tables: Mapping[str, Columns], odd: Odd) -> None:
    """Take the start of rows that lie far from most others, but for the 0 of rows that were never timed."""
    columns = list(_starts(tables))
    known = [values if values.min() != NULL else values[values != NULL] for values in columns if len(values)]
    known = [values for values in known if len(values)]
    if not known or max(int(v.max()) for v in known) - min(int(v.min()) for v in known) <= _SPREAD_NS:
        return
    starts = np.concatenate(known)
    timed = starts[starts != 0]
    middle = int(np.partition(timed, len(timed) // 2)[len(timed) // 2])
    for values in columns:
        far = (values > middle + _SPREAD_NS // 2) | (values < middle - _SPREAD_NS // 2)
        _drop(values, far & (values != 0), "ts", odd)


def _starts(tables: Mapping[str, Columns]) -> Iterator[Int64]:
    for columns in tables.values():
        yield from (_view(columns[name]) for name in _TIMES if name in columns)


def _bound_sum(values: Int64, name: str, odd: Odd) -> None:
    if not len(values) or (values.min() >= 0 and int(values.max()) * len(values) <= _SUM_LIMIT):
        return
    known = np.where(values == NULL, 0, values)
    if float(np.abs(known).sum(dtype=np.float64)) > _SUM_LIMIT:
        _drop(values, np.abs(known) > _SUM_LIMIT // len(known), name, odd)
