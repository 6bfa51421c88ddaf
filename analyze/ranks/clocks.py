"""One time for all ranks: offsets of their clocks from when matched collectives end (docs/ranks.md)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64, Ints
from analyze.ranks.entries import UNUSED, Entries
from analyze.ranks.matching import lower_median

SAME_HOST_NS = 20_000  # a median of ends below this is no offset: the ranks run on one clock
LEAST_UNCERTAINTY_NS = 1_000
_FEW = 8  # matched collectives: fewer have no quarters that drift could be read from


class Clocks(Struct, frozen=True):
    """Clocks of all ranks.

    Attributes:
        ranks: the ranks in order.
        offset_ns: by position in `ranks`, how far the clock is ahead of common time.
        component: by position, number of the set of ranks that matched collectives connect.
        found_from: by position, how many ends the offset was read from; 0 for the first of a component.
        uncertainty_ns: within which ends agree.
        drift_ns: by position, how much the offset changes from the first to the last quarter; 0 where not known.
    """

    ranks: Int64
    offset_ns: Int64
    component: Int64
    found_from: Int64
    uncertainty_ns: int
    drift_ns: Int64

    def at(self, rank: Ints) -> Int64:
        """Positions of ranks."""
        return np.searchsorted(self.ranks, rank)


def align(entries: Entries, ranks: Int64) -> Clocks:
    """The clocks of some ranks; their uncertainty is the least there is until the collectives are split."""
    place = _Placing(entries, ranks)
    for start in range(len(ranks)):
        if place.component[start] < 0:
            place.grow(start)
    return Clocks(ranks, place.offset, place.component, place.found_from, LEAST_UNCERTAINTY_NS, place.drift)


class _Edge(Struct, frozen=True, order=True):
    """What matched collectives say of an unplaced rank's clock, in the order in which edges are taken."""

    level: int
    order: int
    new: int
    old: int
    shift_ns: int
    ends: int
    drift_ns: int


class _Placing:
    """Ranks placed one after the other from the lowest: best level, then who was placed first, then lowest rank."""

    def __init__(self, entries: Entries, ranks: Int64) -> None:
        usable = entries.level[entries.of_row] != UNUSED
        self.entry, self.end = entries.of_row[usable], entries.end_ns[usable]
        self.rank = np.searchsorted(ranks, entries.rank[usable])
        self.level = entries.level
        self.begin = np.searchsorted(self.entry, np.arange(len(entries.level)))
        self.count = np.bincount(self.entry, minlength=len(entries.level))
        by_rank = np.argsort(self.rank, kind="stable")
        self.rows_of = np.split(by_rank, np.searchsorted(self.rank[by_rank], np.arange(1, len(ranks))))
        self.offset, self.drift, self.found_from = (np.zeros(len(ranks), np.int64) for _ in range(3))
        self.component = np.full(len(ranks), -1, np.int64)
        self.best = np.full(len(ranks), UNUSED, np.int64)  # level of the best edge to each rank so far
        self.open = self.count.copy()  # by entry, ranks that a further edge could be of use to

    def grow(self, start: int) -> None:
        """Place the lowest rank that has no place, and all that it is connected with."""
        number = int(self.component.max(initial=-1)) + 1
        self._place(start, number)
        waiting = self._edges(start, 0)
        heapify(waiting)
        placed = 1
        while waiting:
            edge = heappop(waiting)
            if self.component[edge.new] >= 0:
                continue
            self._place(edge.new, number)
            self.offset[edge.new] = self.offset[edge.old] + edge.shift_ns
            self.found_from[edge.new], self.drift[edge.new] = edge.ends, edge.drift_ns
            for further in self._edges(edge.new, placed):
                heappush(waiting, further)
            placed += 1

    def _place(self, rank: int, number: int) -> None:
        self.component[rank] = number
        self._note(rank, -1)

    def _note(self, rank: int, level: int) -> None:
        """An edge of a level leads to a rank: later ones are of use only if they are of a better level."""
        if level <= 0 < self.best[rank]:
            self.open[self.entry[self.rows_of[rank]]] -= 1
        self.best[rank] = min(level, int(self.best[rank]))

    def _edges(self, old: int, order: int) -> list[_Edge]:
        """Edges from a placed rank to those that have none of as good a level yet."""
        mine = self.rows_of[old]
        mine = mine[self.open[self.entry[mine]] > 0]
        count = self.count[self.entry[mine]]
        rows = np.repeat(self.begin[self.entry[mine]] - np.cumsum(count) + count, count) + np.arange(count.sum())
        own_end = np.repeat(self.end[mine], count)
        useful = self.best[self.rank[rows]] > 0
        rows, own_end = rows[useful], own_end[useful]
        if not len(rows):
            return []
        level, rank, difference = self.level[self.entry[rows]], self.rank[rows], self.end[rows] - own_end
        best = np.full(int(rank.max()) + 1, UNUSED, np.int64)
        np.minimum.at(best, rank, level)
        kept = level == best[rank]
        by_rank = np.argsort(rank[kept], kind="stable")
        rank, difference, own_end = rank[kept][by_rank], difference[kept][by_rank], own_end[kept][by_rank]
        found = []
        for new, first, size in zip(*(part.tolist() for part in np.unique(rank, return_index=True, return_counts=True)),
                                    strict=True):  # fmt: skip
            ends = difference[first : first + size]
            median = lower_median(ends)
            drift = _drift(ends[np.argsort(own_end[first : first + size], kind="stable")])
            shift = 0 if abs(median) <= SAME_HOST_NS else median
            found.append(_Edge(int(best[new]), order, new, old, shift, size, drift))
            self._note(new, int(best[new]))
        return found


def _drift(ends: Int64) -> int:
    """How much the median of the last quarter is above that of the first."""
    if len(ends) < _FEW:
        return 0
    quarter = len(ends) // 4
    return lower_median(ends[-quarter:]) - lower_median(ends[:quarter])
