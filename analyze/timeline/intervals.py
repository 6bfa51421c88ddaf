"""Sets of instants as sorted, disjoint intervals: union, intersection, difference, coverage. Integers throughout."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64

FOREVER = np.int64(2**62)


class Intervals(Struct, frozen=True, dict=True):
    """Disjoint intervals `[start, end)` in order; none is empty, none touches the next.

    Attributes:
        start_ns: starts.
        end_ns: ends.
    """

    start_ns: Int64
    end_ns: Int64

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def total_ns(self) -> int:
        """Length of all intervals together."""
        return int((self.end_ns - self.start_ns).sum())

    @cached_property
    def _before(self) -> Int64:
        """Covered time before each interval, and after the last one."""
        return np.concatenate(([np.int64(0)], np.cumsum(self.end_ns - self.start_ns)))

    def covered_before(self, time_ns: Int64) -> Int64:
        """Covered time before each instant."""
        if not len(self):
            return np.zeros_like(time_ns)
        at = np.searchsorted(self.start_ns, time_ns, side="right")
        inside = np.maximum(self.end_ns[np.maximum(at, 1) - 1] - time_ns, 0)
        return self._before[at] - np.where(at > 0, inside, 0)

    def covered_within(self, start_ns: Int64, end_ns: Int64) -> Int64:
        """Covered time inside each query interval `[start, end)`."""
        return self.covered_before(end_ns) - self.covered_before(start_ns)


NOTHING = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start_ns: Int64, end_ns: Int64) -> Intervals:
    """The instants covered by any of the given intervals; they may overlap, touch, be empty and unsorted."""
    keep = end_ns > start_ns
    start, end = start_ns[keep], end_ns[keep]
    if not len(start):
        return NOTHING
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    begins = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((np.flatnonzero(begins)[1:] - 1, [len(start) - 1]))
    return Intervals(start[begins], reach[last])


def join(*sets: Intervals) -> Intervals:
    """The instants in any of the sets."""
    return union(np.concatenate([s.start_ns for s in sets]), np.concatenate([s.end_ns for s in sets]))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """The instants in both sets."""
    first = np.searchsorted(b.end_ns, a.start_ns, side="right")
    count = np.maximum(np.searchsorted(b.start_ns, a.end_ns, side="left") - first, 0)
    left = np.repeat(np.arange(len(a)), count)
    right = np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count)
    return union(np.maximum(a.start_ns[left], b.start_ns[right]), np.minimum(a.end_ns[left], b.end_ns[right]))


def complement(a: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """The instants of `[start, end)` that are not in the set."""
    starts = np.concatenate(([np.int64(start_ns)], a.end_ns))
    ends = np.concatenate((a.start_ns, [np.int64(end_ns)]))
    return union(np.maximum(starts, start_ns), np.minimum(ends, end_ns))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """The instants of `a` that are not in `b`."""
    return intersect(a, complement(b, -int(FOREVER), int(FOREVER)))


def depth_ns(start_ns: Int64, end_ns: Int64, at_least: int) -> int:
    """Time during which at least so many of the given intervals run at once."""
    times = np.concatenate((start_ns, end_ns))
    change = np.concatenate((np.ones(len(start_ns), np.int64), -np.ones(len(end_ns), np.int64)))
    order = np.argsort(times, kind="stable")
    running = np.cumsum(change[order])[:-1]
    return int(np.diff(times[order])[running >= at_least].sum())
