"""Whether measured times stayed the same while they were measured: a verdict beside each latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capture.latency import STEADY_MEDIAN_SHIFT, STEADY_SPREAD, percentile_ns

LEAST_SAMPLES = 8
"""Of fewer, a half has no median worth comparing."""


@dataclass(frozen=True)
class Stability:
    """How far the samples of one latency lie apart.

    Attributes:
        stable: The quartiles lie within 5 % of the median, and the medians of both halves within 2 %: the rule by
            which the warm-up ends. None with fewer than 8 samples.
        spread: Interquartile range over median.
        drift: Median of the second half over that of the first, less 1; None with fewer than 8 samples.
    """

    stable: bool | None
    spread: float
    drift: float | None

    @property
    def words(self) -> str:
        """The verdict with its two figures, in one line."""
        apart = f"quartiles {self.spread:.1%} of the median apart"
        if self.drift is None:
            return f"not judged (fewer than {LEAST_SAMPLES} samples); {apart}"
        verdict = "stable" if self.stable else "not stable"
        return f"{verdict}: {apart}, second half {self.drift:+.1%}"


def judge_stability(samples_ns: Sequence[int]) -> Stability:
    """The verdict on samples in the order in which they were measured; at least one, none of them 0."""
    median = percentile_ns(samples_ns, 0.5)
    spread = (percentile_ns(samples_ns, 0.75) - percentile_ns(samples_ns, 0.25)) / median if median else 0.0
    if len(samples_ns) < LEAST_SAMPLES:
        return Stability(None, spread, None)
    half = len(samples_ns) // 2
    first, second = percentile_ns(samples_ns[:half], 0.5), percentile_ns(samples_ns[half:], 0.5)
    drift = second / first - 1 if first else 0.0
    return Stability(spread < STEADY_SPREAD and abs(drift) < STEADY_MEDIAN_SHIFT, spread, drift)
