"""One time for all ranks: offsets of their clocks from when matched collectives end (ranks.md, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyze.ranks.entries import UNUSED, Entries
from analyze.ranks.matching import Int64, lower_median

SAME_HOST_NS = 20_000  # a median of ends below this is no offset: the ranks run on one clock
LEAST_UNCERTAINTY_NS = 1_000
_FEW = 8  # matched collectives: fewer have no quarters that drift could be read from


@dataclass(frozen=True)
class Clocks:
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

    def at(self, rank: Int64) -> Int64:
        """Positions of ranks."""
        return np.searchsorted(self.ranks, rank)


def align(entries: Entries, ranks: Int64) -> Clocks:
    """The clocks of some ranks; their uncertainty is the least there is until the collectives are split."""
    place = _Placing(entries, ranks)
    for start in range(len(ranks)):
        if place.component[start] < 0:
            place.grow(start)
    return Clocks(ranks, place.offset, place.component, place.found_from, LEAST_UNCERTAINTY_NS, place.drift)


class _Placing:
    """Ranks placed one after the other from the lowest: best level, then who was placed first, then lowest rank."""

    def __init__(self, entries: Entries, ranks: Int64) -> None:
        usable = entries.level[entries.of_row] != UNUSED
        self.entry, self.end = entries.of_row[usable], entries.raw_end_ns[usable]
        self.rank = np.searchsorted(ranks, entries.rank[usable])
        self.level = entries.level
        self.begin = np.searchsorted(self.entry, np.arange(len(entries.level)))
        self.count = np.bincount(self.entry, minlength=len(entries.level))
        by_rank = np.argsort(self.rank, kind="stable")
        self.rows_of = np.split(by_rank, np.searchsorted(self.rank[by_rank], np.arange(1, len(ranks))))
        self.offset, self.drift, self.found_from = (np.zeros(len(ranks), np.int64) for _ in range(3))
        self.component = np.full(len(ranks), -1, np.int64)

    def grow(self, start: int) -> None:
        """Place the lowest rank that has no place, and all that it is connected with."""
        number = int(self.component.max(initial=-1)) + 1
        self.component[start] = number
        waiting: list[tuple[int, int, int, int, int, int, int]] = self._edges(start, 0)
        placed = 1
        while waiting:
            waiting = [edge for edge in waiting if self.component[edge[2]] < 0]
            if not waiting:
                return
            best = min(waiting)
            _, _, new, old, median, count, drift = best
            self.component[new] = number
            self.offset[new] = self.offset[old] + median
            self.found_from[new], self.drift[new] = count, drift
            waiting += self._edges(new, placed)
            placed += 1

    def _edges(self, old: int, order: int) -> list[tuple[int, int, int, int, int, int, int]]:
        """Edges from a placed rank to those without a place: level, order, new rank, then what they say."""
        mine = self.rows_of[old]
        count = self.count[self.entry[mine]]
        rows = np.repeat(self.begin[self.entry[mine]] - np.cumsum(count) + count, count) + np.arange(count.sum())
        own_end = np.repeat(self.end[mine], count)
        free = self.component[self.rank[rows]] < 0
        rows, own_end = rows[free], own_end[free]
        if not len(rows):
            return []
        level, rank, difference = self.level[self.entry[rows]], self.rank[rows], self.end[rows] - own_end
        best = np.full(int(rank.max()) + 1, UNUSED, np.int64)
        np.minimum.at(best, rank, level)
        kept = level == best[rank]
        by_rank = np.argsort(rank[kept], kind="stable")
        rank, difference, own_end = rank[kept][by_rank], difference[kept][by_rank], own_end[kept][by_rank]
        new, begin, many = np.unique(rank, return_index=True, return_counts=True)
        found = []
        for rank_at, first, size in zip(new.tolist(), begin.tolist(), many.tolist(), strict=True):
            ends = difference[first : first + size]
            median = lower_median(ends)
            drift = _drift(ends[np.argsort(own_end[first : first + size], kind="stable")])
            shift = 0 if abs(median) <= SAME_HOST_NS else median
            found.append((int(best[rank_at]), order, rank_at, old, shift, size, drift))
        return found


def _drift(ends: Int64) -> int:
    """How much the median of the last quarter is above that of the first."""
    if len(ends) < _FEW:
        return 0
    quarter = len(ends) // 4
    return lower_median(ends[-quarter:]) - lower_median(ends[:quarter])
