"""Slices of a lane: what a stream ran and what a thread called, with the short ones merged where there are too many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64

NO_ROW = -1
_FIRST_LIMIT_NS = 1_000


class Merged(Struct, frozen=True):
    """Which slices are shown by themselves, and what stands for the others.

    Attributes:
        limit_ns: slices shorter than this one may be merged; 0 where none are.
        kept: rows that are shown by themselves.
        start_ns: starts of the runs of merged slices.
        end_ns: ends of them.
        count: how many slices each run stands for.
        members: rows of the runs, run by run, each in order of start.
    """

    limit_ns: int
    kept: Int64
    start_ns: Int64
    end_ns: Int64
    count: Int64
    members: Int64

    @property
    def first(self) -> Int64:
        """The first row of each run."""
        found: Int64 = self.members[np.cumsum(self.count) - self.count]
        return found

    @property
    def run(self) -> Int64:
        """The run of each member."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def __len__(self) -> int:
        return len(self.kept) + len(self.count)


def nothing_merged(rows: int) -> Merged:
    """All rows as they are."""
    none = np.empty(0, np.int64)
    return Merged(0, np.arange(rows), none, none, none, none)


def merge_to(budget: int, rows: int, merge: Callable[[int], Merged]) -> Merged:
    """The slices merged by the smallest limit that keeps their budget.

    Args:
        budget: most slices, runs of merged ones counted too.
        rows: how many slices there are.
        merge: merges those below a limit, in nanoseconds.
    """
    if rows <= budget:
        return nothing_merged(rows)
    limit = _FIRST_LIMIT_NS
    while len(found := merge(limit)) > budget and limit < 2**60:
        limit *= 2
    return found


def merge_runs(start_ns: Int64, end_ns: Int64, group: Int64, short: Int64, hidden: Int64, limit_ns: int) -> Merged:
    """Slices merged where they follow each other closely.

    Args:
        start_ns: starts, in order within each group.
        end_ns: ends.
        group: slices of different groups are never merged: streams, or callers on a thread.
        short: rows that may be merged.
        hidden: rows that lie inside those and are shown no more.
        limit_ns: the distance from which on a new run begins.
    """
    order = short[np.lexsort((start_ns[short], group[short]))]
    begin, end, of = start_ns[order], end_ns[order], group[order]
    if not len(order):
        return nothing_merged(len(start_ns))
    new = np.concatenate(([True], (of[1:] != of[:-1]) | (begin[1:] - end[:-1] >= limit_ns)))
    at = np.flatnonzero(new)
    inside = np.add.reduceat(np.ones(len(order), np.int64), at)
    away = np.zeros(len(start_ns), bool)
    away[short] = away[hidden] = True
    reach = np.maximum.reduceat(end, at)
    return Merged(limit_ns, np.flatnonzero(~away), begin[at], reach, inside, order)
