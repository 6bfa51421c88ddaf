"""When a change counts: the steps of one run lie beyond those of the other, or a rank test separates them."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

Verdict = Literal["better", "worse", "changed", "within-spread", "no-spread", "equal", "not-comparable"]
VERDICTS: dict[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "changed": "changed",
    "within-spread": "within step spread",
    "no-spread": "no spread",
    "equal": "equal",
    "not-comparable": "not comparable",
}
RANGE_STEPS = (
    3  # of either run: below it two ranges say nothing (of two steps each, a third of pairs lie apart by chance)
)
RANK_STEPS = 8  # of either run: below it a rank test at this level needs ranges that lie apart, or nearly
RANK_LEVEL = 0.01  # two-sided; some fifty rows are tested at once, so that 0.05 would always find something
_EXACT_PAIRS = 400  # up to here the distribution of U is counted, beyond it the normal approximation holds


def judge(a: float | None, b: float | None, steps_a: Sequence[float], steps_b: Sequence[float], better: str) -> Verdict:
    """Whether a figure changed, and for better or worse.

    Args:
        a: the baseline's figure, None where it was not measured.
        b: this run's.
        steps_a: the same per step of the baseline, empty where it has no values per step.
        steps_b: of this run.
        better: "lower" or "higher"; empty for figures that are neither good nor bad.
    """
    if a is None or b is None:
        return "not-comparable"
    if a == b:
        return "equal"
    if min(len(steps_a), len(steps_b)) < RANGE_STEPS:
        return "no-spread"
    apart = max(steps_a) < min(steps_b) or max(steps_b) < min(steps_a)
    as_figures = (middle(steps_b) < middle(steps_a)) == (b < a)  # a window holds more than its steps
    if not as_figures or not (apart or _ranks_differ(steps_a, steps_b)):
        return "within-spread"
    if not better:
        return "changed"
    return "better" if (b < a) == (better == "lower") else "worse"


def middle(values: Sequence[float]) -> float:
    """The median; of even counts the lower of the two in the middle, so that every figure was recorded."""
    return sorted(values)[(len(values) - 1) // 2]


def _ranks_differ(a: Sequence[float], b: Sequence[float]) -> bool:
    return min(len(a), len(b)) >= RANK_STEPS and mann_whitney(a, b) < RANK_LEVEL


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p-value of the rank-sum test of Mann and Whitney (1947).

    Exact for small samples without ties, else by the normal approximation, corrected for ties and continuity.
    """
    n, m = len(a), len(b)
    others = sorted(b)
    below = sum(bisect_left(others, x) + bisect_right(others, x) for x in a) / 2
    ties = [len(list(same)) for _, same in groupby(sorted((*a, *b)))]
    if max(ties) == 1 and n * m <= _EXACT_PAIRS:
        smaller = int(min(below, n * m - below))
        return min(1.0, 2 * sum(_ways(n, m)[: smaller + 1]) / math.comb(n + m, n))
    size = n + m
    variance = n * m / 12 * (size + 1 - sum(t**3 - t for t in ties) / (size * (size - 1)))
    if variance == 0:
        return 1.0
    distance = max(abs(below - n * m / 2) - 0.5, 0.0) / math.sqrt(variance)
    return math.erfc(distance / math.sqrt(2))


def _ways(n: int, m: int) -> list[int]:
    """For each U how many of the orders of n and m values have it: coefficients of the Gaussian binomial."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):  # times (1 - q^(m + i))
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):  # divided by (1 - q^i)
            ways[u] += ways[u - i]
    return ways
