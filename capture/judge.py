"""Whether two series of times differ by more than they spread: the rule that `analyze compare` has for steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST_FOR_RANGES = 3
LEAST_FOR_RANKS = 8
SIGNIFICANCE = 0.01


def differ(first_ns: Sequence[int], second_ns: Sequence[int]) -> bool:
    """Whether one series lies beyond the other (3 each or more), or a rank test holds them apart (8 or more).

    The test is Mann and Whitney's, two-sided, p below 0.01, by the normal approximation with its correction for
    ties and continuity.
    """
    least = min(len(first_ns), len(second_ns))
    if least < LEAST_FOR_RANGES:
        return False
    if max(first_ns) < min(second_ns) or max(second_ns) < min(first_ns):
        return True
    return least >= LEAST_FOR_RANKS and rank_test(first_ns, second_ns) < SIGNIFICANCE


def rank_test(first: Sequence[int], second: Sequence[int]) -> float:
    """Two-sided p of Mann and Whitney's test; 1.0 where all values are equal."""
    ordered = sorted([*first, *second])
    total, ranks, ties = len(ordered), {}, 0
    index = 0
    while index < total:
        end = index
        while end < total and ordered[end] == ordered[index]:
            end += 1
        ranks[ordered[index]] = (index + 1 + end) / 2
        ties += (end - index) ** 3 - (end - index)
        index = end
    count, other = len(first), len(second)
    larger = sum(ranks[value] for value in first) - count * (count + 1) / 2
    variance = count * other / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    distance = max(abs(larger - count * other / 2) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance))
