"""When a change counts: limits of both rules, the rank test against all orders, symmetry."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.compare.judge import RANK_LEVEL, Verdict, judge, mann_whitney, middle


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([10, 11, 12], [7, 8, 9], "better"),
        ([7, 8, 9], [10, 11, 12], "worse"),
        ([10, 11, 12], [8, 9, 10], "within-spread"),
        ([10, 11], [1, 2], "no-spread"),
        ([10, 11, 12], [1, 2], "no-spread"),
        ([10, 11, 12], [9, 11, 30], "equal"),
        (range(10, 18), [*range(2, 9), 11.5], "better"),
        (range(10, 17), [*range(3, 9), 11.5], "within-spread"),
    ],
    ids=["apart", "apart the other way", "touching", "two steps", "two on one side", "same median",
         "eight steps, ranks differ", "seven steps, no rank test"],
)  # fmt: skip
def test_lower_is_better(a: list[float], b: list[float], verdict: Verdict) -> None:
    assert judge(middle(a), middle(b), a, b, "lower") == verdict


def test_polarity_and_what_is_not_there() -> None:
    assert judge(11, 8, [10, 11, 12], [7, 8, 9], "higher") == "worse"
    assert judge(11, 8, [10, 11, 12], [7, 8, 9], "") == "changed"
    assert judge(None, 8, [], [7, 8, 9], "lower") == "not-comparable"
    assert judge(5, 5, [], [], "lower") == "equal"
    assert judge(5, 6, [], [], "lower") == "no-spread"
    assert judge(5, 6, [10, 11, 12], [7, 8, 9], "lower") == "within-spread", "the window says the opposite of the steps"


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("m", [2, 4])
def test_rank_test_counts_all_orders(n: int, m: int) -> None:
    """Exact p-values are shares of the orders of n and m values that are at least as far from the middle."""
    everything = range(n + m)
    distances = [abs(sum(sum(x > y for y in set(everything) - set(a)) for x in a) - n * m / 2)
                 for a in combinations(everything, n)]  # fmt: skip
    for a, distance in zip(combinations(everything, n), distances, strict=True):
        expected = sum(other >= distance for other in distances) / len(distances)
        assert mann_whitney(a, sorted(set(everything) - set(a))) == pytest.approx(expected)


def test_rank_test_of_known_samples() -> None:
    """Tabled: eight against eight, all apart, 2 in 12,870; ties and large samples by the normal approximation."""
    assert mann_whitney(range(8), range(8, 16)) == pytest.approx(2 / 12_870)
    assert mann_whitney([1] * 20, [1] * 20) == 1.0
    assert mann_whitney(range(100), range(100, 200)) < 1e-30
    assert mann_whitney([*range(100)], [x + 0.5 for x in range(100)]) > 0.9
    assert mann_whitney([1, 2, 2, 3] * 5, [1, 2, 2, 3] * 5) == pytest.approx(1.0)


steps = st.lists(st.integers(0, 10**6), min_size=1, max_size=25)


@given(steps, steps)
def test_swapping_swaps_better_and_worse(a: list[int], b: list[int]) -> None:
    there = judge(middle(a), middle(b), a, b, "lower")
    back = judge(middle(b), middle(a), b, a, "lower")
    assert {"better": "worse", "worse": "better"}.get(there, there) == back
    assert judge(middle(a), middle(a), a, a, "lower") == "equal"


@given(steps, steps)
def test_p_values_are_shares(a: list[int], b: list[int]) -> None:
    p = mann_whitney(a, b)
    assert 0 <= p <= 1 + 1e-12
    assert p == pytest.approx(mann_whitney(b, a))
    assert 0 < RANK_LEVEL < 0.05
