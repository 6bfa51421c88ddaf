"""Which interval of a thread lies in which: by pointer jumping, exact also where intervals cross."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64

NO_ROW = -1  # the number of no row


class Nesting(Struct, frozen=True, dict=True):
    """Intervals of many threads in nesting order: by thread, start, longest first.

    Attributes:
        order: positions of the intervals in the arrays they were made from.
        thread: thread of each interval, in nesting order, like all below.
        start_ns: starts.
        end_ns: ends.
    """

    order: Int64
    thread: Int64
    start_ns: Int64
    end_ns: Int64

    @classmethod
    def of(cls, thread: Int64, start_ns: Int64, end_ns: Int64) -> Nesting:
        """Sort intervals into nesting order; ties keep the order of the file."""
        order = np.lexsort((-end_ns, start_ns, thread)).astype(np.int64)
        return cls(order, thread[order], start_ns[order], end_ns[order])

    @cached_property
    def parent(self) -> Int64:
        """Position of the enclosing interval of each, `NO_ROW` at the top.

        The parent of i is the largest j < i on its thread with end_j > start_i: what a stack would give. All k in
        (parent_i, i) end at or before start_i, so i may take over the jump of its current candidate.
        """
        n = len(self.order)
        parent = np.arange(NO_ROW, n - 1, dtype=np.int64)
        if n == 0:
            return parent
        parent[np.flatnonzero(np.diff(self.thread, prepend=self.thread[0] - 1))] = NO_ROW
        active = np.flatnonzero(parent >= 0)
        active = active[self.end_ns[parent[active]] <= self.start_ns[active]]
        while active.size:
            parent[active] = parent[parent[active]]
            active = active[parent[active] >= 0]
            active = active[self.end_ns[parent[active]] <= self.start_ns[active]]
        return parent

    def innermost(self, thread: Int64, time_ns: Int64) -> Int64:
        """The innermost interval around each instant (start and end count as inside).

        Args:
            thread: thread per instant.
            time_ns: instants.

        Returns:
            Positions in the arrays that the nesting was made from, `NO_ROW` where there is none.
        """
        found = np.full(len(time_ns), NO_ROW, dtype=np.int64)
        if not len(self.order):
            return found
        for one in np.unique(thread):
            low, high = np.searchsorted(self.thread, [one, one + 1])
            mine = np.flatnonzero(thread == one)
            at = np.searchsorted(self.start_ns[low:high], time_ns[mine], side="right") + low - 1
            at[at < low] = NO_ROW
            climbing = np.flatnonzero(at >= 0)
            climbing = climbing[self.end_ns[at[climbing]] < time_ns[mine[climbing]]]
            while climbing.size:
                at[climbing] = self.parent[at[climbing]]
                climbing = climbing[at[climbing] >= 0]
                climbing = climbing[self.end_ns[at[climbing]] < time_ns[mine[climbing]]]
            found[mine] = np.where(at >= 0, self.order[at], NO_ROW)
        return found
