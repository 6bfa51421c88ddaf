"""The verdict on a series of times, on both sides of its limits."""

from __future__ import annotations

import pytest

from capture.latency import Window, warm_up
from capture.stability import judge_stability


@pytest.mark.parametrize(
    ("samples", "stable", "words"),
    [
        # Quartiles of 12 values lie at ranks 2.75 and 8.25, within the first and the last four.
        ([975, 975, 1000, 1000, 1024, 1024] * 2, True, "stable: quartiles 4.9% of the median apart, second half +0.0%"),
        ([974, 974, 1000, 1000, 1026, 1026] * 2, False, "not stable: quartiles 5.2% of the median apart"),
        ([1000] * 4 + [1019] * 4, True, "stable: quartiles 1.9% of the median apart, second half +1.9%"),
        ([1000] * 4 + [1021] * 4, False, "not stable: quartiles 2.1% of the median apart, second half +2.1%"),
        ([1021] * 4 + [1000] * 4, False, "not stable: quartiles 2.1% of the median apart, second half -2.1%"),
        ([1000] * 7, None, "not judged (fewer than 8 samples); quartiles 0.0% of the median apart"),
    ],
)
def test_a_series_is_judged_as_a_warm_up_is(samples: list[int], stable: bool | None, words: str) -> None:
    found = judge_stability(samples)
    assert found.stable is stable
    assert found.words.startswith(words)


def test_the_curve_of_a_warm_up_is_kept() -> None:
    """25 iterations: two windows of 10, and 5 more."""
    samples = [30] * 10 + [20] * 10 + [10, 10, 10, 10, 11]
    found = warm_up(lambda iterations: Window(tuple(samples[:iterations]), sum(samples)), fixed_iterations=25)
    assert found.medians_ns == (30, 20, 10)
