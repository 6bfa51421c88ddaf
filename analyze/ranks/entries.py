"""Matched collectives as arrays: rows in order of entry and rank, and what holds for each entry."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from analyze.arrays import Bool, Int64, Ints
from analyze.ranks.kinds import ALL_TO_ALL, LAST_SYMMETRIC, RECV, SEND
from analyze.ranks.matching import Matched

UNUSED = 9  # level of collectives that say nothing about clocks
_AT_ONCE = 1 << 20  # values that medians are taken of in one go


class Entries(Struct, frozen=True):
    """Matched collectives. Arrays of rows are in order of entry and rank, arrays of entries in order of entry.

    Attributes:
        of_row: entry of each row.
        begin: first row of each entry.
        count: ranks of each entry.
        rank: rank of each row.
        start_ns: start of each row, on its own clock or in common time.
        end_ns: end likewise.
        event: number of each row in its rank's file.
        row_kind: position in `KINDS` of what each row's rank says.
        row_said_by: position in `SAID_BY` of what said it.
        row_bytes: size of each row's message, -1 where not known.
        computes_at_end: computation owns the instant before the row's end on its rank.
        kind: position in `KINDS` of each entry's kind, that of its lowest rank.
        mismatch: the ranks disagree about the kind.
        pair: a send and its recv.
        level: how much an entry says about clocks: 0, 1, 2, or `UNUSED`.
        group: position of each entry's group.
        index: number of each entry in its group.
    """

    of_row: Ints
    begin: Int64
    count: Int64
    rank: Ints
    start_ns: Int64
    end_ns: Int64
    event: Ints
    row_kind: Ints
    row_said_by: Ints
    row_bytes: Int64
    computes_at_end: Bool
    kind: Ints
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

    def at_common_time(self, ahead_ns: Int64) -> Entries:
        """The same with the clock of each row's rank, so far ahead, set right."""
        return replace(self, start_ns=self.start_ns - ahead_ns, end_ns=self.end_ns - ahead_ns)


def entries_of(matched: Matched) -> Entries:
    """The arrays of matched kernels."""
    of_row, columns = matched.entry, matched.columns
    begin = np.flatnonzero(np.r_[True, of_row[1:] != of_row[:-1]]) if len(of_row) else np.empty(0, np.int64)
    count = np.diff(np.r_[begin, len(of_row)]) if len(of_row) else begin
    kind = columns["kind"]
    least = np.minimum.reduceat(kind, begin) if len(begin) else kind[:0]
    most = np.maximum.reduceat(kind, begin) if len(begin) else kind[:0]
    pair = (count == 2) & (least == SEND) & (most == RECV)
    mismatch = (least != most) & ~pair
    symmetric = ~mismatch & (most <= LAST_SYMMETRIC) & (count > 1)
    level = np.where(symmetric, np.where(least == ALL_TO_ALL, 1, 0), np.where(pair, 2, UNUSED))
    return Entries(
        of_row=of_row,
        begin=begin,
        count=count,
        rank=columns["rank"],
        start_ns=columns["start_ns"],
        end_ns=columns["end_ns"],
        event=columns["event"],
        row_kind=kind,
        row_said_by=columns["kind_from"],
        row_bytes=columns["size_bytes"],
        computes_at_end=columns["computes_at_end"].astype(bool),
        kind=kind[begin],
        mismatch=mismatch,
        pair=pair,
        level=level,
        group=matched.group,
        index=matched.index,
    )


def lower_medians(values: Ints, segment: Ints, segments: int) -> Int64:
    """The lower median of each segment's values, 0 for a segment without any; `segment` is in order."""
    count = np.bincount(segment, minlength=segments)
    first = np.cumsum(count) - count
    found = np.zeros(segments, np.int64)
    for size in np.unique(count[count > 0]).tolist():
        same, middle = np.flatnonzero(count == size), (size - 1) // 2
        step = max(_AT_ONCE // size, 1)
        for low in range(0, len(same), step):
            these = same[low : low + step]
            table = values[first[these][:, None] + np.arange(size)]
            found[these] = np.partition(table, middle, axis=1)[:, middle]
    return found
