from __future__ import annotations

import random

import pytest

from capture.judge import differ, rank_test


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ([1, 2, 3], [4, 5, 6], True),
        ([1, 2, 4], [4, 5, 6], False),  # they touch
        ([1, 2], [4, 5], False),  # two each are too few
        ([1, 2, 3, 4, 5], [5, 9, 9, 9, 9], False),  # overlapping, and too few for ranks
        ([1, 2, 3, 4, 5, 6, 7, 12], [11, 13, 14, 15, 16, 17, 18, 19], True),
        ([1, 2, 3, 4, 5, 6, 12], [11, 13, 14, 15, 16, 17, 18, 19], False),  # seven are too few for ranks
        ([5] * 10, [5] * 10, False),
    ],
)
def test_series_that_differ(first: list[int], second: list[int], apart: bool) -> None:
    assert differ(first, second) is apart
    assert differ(second, first) is apart


def test_the_p_of_a_worked_example() -> None:
    """Ranks of the first are 1, 2, 3, 5: U is 1, its mean 8, its variance 12: z is 6.5 / sqrt(12), p 0.0606."""
    assert rank_test([1, 2, 3, 5], [4, 6, 7, 8]) == pytest.approx(0.0606, abs=1e-4)


def test_equal_series_are_seldom_held_apart() -> None:
    dice = random.Random(1)
    found = sum(
        differ([dice.randrange(1000) for _ in range(20)], [dice.randrange(1000) for _ in range(20)]) for _ in range(500)
    )
    assert found <= 15  # 1 % of 500 is 5
