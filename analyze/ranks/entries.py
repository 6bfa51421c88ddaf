"""Matched collectives as arrays: rows in order of entry and rank, and what holds for each entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from analyze.ranks.matching import Int64, Matched

Bool = npt.NDArray[np.bool_]
KINDS = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier", "send", "recv", "broadcast", "gather",
    "scatter", "reduce", "sendrecv",
)  # fmt: skip
SYMMETRIC = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
_SEND, _RECV, _ALL_TO_ALL = KINDS.index("send"), KINDS.index("recv"), KINDS.index("all_to_all")
_LAST_SYMMETRIC = KINDS.index("barrier")
UNUSED = 9  # level of collectives that say nothing about clocks


@dataclass(frozen=True)
class Entries:
    """Matched collectives. Arrays of rows are in order of entry and rank, arrays of entries in order of entry.

    Attributes:
        rows: the frame that the arrays of rows are of.
        of_row: entry of each row.
        begin: first row of each entry.
        count: ranks of each entry.
        rank: rank of each row.
        raw_start_ns: start of each row on its own clock.
        raw_end_ns: end likewise.
        kind: position in `KINDS` of each entry's kind, that of its lowest rank.
        mismatch: the ranks disagree about the kind.
        pair: a send and its recv.
        level: how much an entry says about clocks: 0, 1, 2, or `UNUSED`.
        group: position of each entry's group.
        index: number of each entry in its group.
    """

    rows: pl.DataFrame
    of_row: Int64
    begin: Int64
    count: Int64
    rank: Int64
    raw_start_ns: Int64
    raw_end_ns: Int64
    kind: Int64
    mismatch: Bool
    pair: Bool
    level: Int64
    group: Int64
    index: Int64

    @property
    def can_split(self) -> Bool:
        """Nobody can end before the last has begun."""
        found: Bool = self.level != UNUSED
        return found

    def lowest(self, values: Int64) -> Int64:
        """Least value of each entry's rows."""
        return np.minimum.reduceat(values, self.begin) if len(self.begin) else values[:0]

    def highest(self, values: Int64) -> Int64:
        """Largest value of each entry's rows."""
        return np.maximum.reduceat(values, self.begin) if len(self.begin) else values[:0]


def entries_of(matched: Matched) -> Entries:
    """The arrays of matched kernels."""
    rows = matched.rows
    of_row = rows["entry"].to_numpy()
    begin = np.flatnonzero(np.r_[True, of_row[1:] != of_row[:-1]]) if len(of_row) else np.empty(0, np.int64)
    count = np.diff(np.r_[begin, len(of_row)]) if len(of_row) else begin
    codes = {name: code for code, name in enumerate(KINDS)}
    kind = rows["kind"].cast(pl.String).replace_strict(codes, default=len(KINDS) - 1, return_dtype=pl.Int64).to_numpy()
    least = np.minimum.reduceat(kind, begin) if len(begin) else kind[:0]
    most = np.maximum.reduceat(kind, begin) if len(begin) else kind[:0]
    pair = (count == 2) & (least == _SEND) & (most == _RECV)
    mismatch = (least != most) & ~((least >= _SEND) & (most <= _RECV) & pair)
    symmetric = ~mismatch & (most <= _LAST_SYMMETRIC) & (count > 1)
    level = np.where(symmetric, np.where(least == _ALL_TO_ALL, 1, 0), np.where(pair, 2, UNUSED))
    return Entries(
        rows=rows,
        of_row=of_row,
        begin=begin,
        count=count,
        rank=rows["rank"].to_numpy(),
        raw_start_ns=rows["start_ns"].to_numpy(),
        raw_end_ns=rows["end_ns"].to_numpy(),
        kind=kind[begin],
        mismatch=mismatch,
        pair=pair,
        level=level,
        group=matched.entries["group"].to_numpy(),
        index=matched.entries["index"].to_numpy(),
    )


def lower_medians(values: Int64, segment: Int64, segments: int) -> Int64:
    """The lower median of each segment's values, 0 for a segment without any; `segment` is in order."""
    count = np.bincount(segment, minlength=segments)
    first = np.cumsum(count) - count
    found = np.zeros(segments, np.int64)
    for size in np.unique(count[count > 0]).tolist():
        these = np.flatnonzero(count == size)
        middle = (size - 1) // 2
        table = values[first[these][:, None] + np.arange(size)]
        found[these] = np.partition(table, middle, axis=1)[:, middle]
    return found
