"""Interval algebra against sets of single instants."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyze.timeline.intervals import Intervals, complement, depth_ns, intersect, join, subtract, union

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=12)


def make(pairs: list[tuple[int, int]]) -> Intervals:
    start = np.array([s for s, _ in pairs], dtype=np.int64)
    return union(start, start + np.array([d for _, d in pairs], dtype=np.int64))


def instants(intervals: Intervals) -> set[int]:
    return {t for a, b in zip(intervals.start_ns, intervals.end_ns, strict=True) for t in range(a, b)}


def naive(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for s, d in pairs for t in range(s, s + d)}


@given(PAIRS)
def test_union_covers_exactly_the_instants_and_is_disjoint(pairs: list[tuple[int, int]]) -> None:
    found = make(pairs)
    assert instants(found) == naive(pairs)
    assert found.total_ns == len(naive(pairs))
    assert all(found.end_ns[:-1] < found.start_ns[1:])


@given(PAIRS, PAIRS)
def test_set_operations(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = make(a), make(b)
    assert instants(join(left, right)) == naive(a) | naive(b)
    assert instants(intersect(left, right)) == naive(a) & naive(b)
    assert instants(subtract(left, right)) == naive(a) - naive(b)
    assert instants(complement(left, 5, 50)) == set(range(5, 50)) - naive(a)


@given(PAIRS, st.lists(st.tuples(st.integers(-5, 80), st.integers(0, 30)), min_size=1, max_size=6))
def test_covered_within(pairs: list[tuple[int, int]], queries: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in queries], dtype=np.int64)
    end = start + np.array([d for _, d in queries], dtype=np.int64)
    expected = [len(naive(pairs) & set(range(s, s + d))) for s, d in queries]
    assert make(pairs).covered_within(start, end).tolist() == expected


@given(PAIRS, st.integers(1, 3))
def test_depth(pairs: list[tuple[int, int]], at_least: int) -> None:
    start = np.array([s for s, _ in pairs], dtype=np.int64)
    end = start + np.array([d for _, d in pairs], dtype=np.int64)
    expected = sum(sum(s <= t < s + d for s, d in pairs) >= at_least for t in range(80))
    assert depth_ns(start, end, at_least) == expected
