"""Statistics of a sample: nearest-rank quantiles, because every figure printed is one that was recorded."""

from __future__ import annotations

import polars as pl
from msgspec import Struct


class Spread(Struct, frozen=True):
    """A sample of nanoseconds in five figures.

    Attributes:
        n: sample size.
        p50_ns: median.
        p90_ns: 90th percentile.
        p99_ns: 99th percentile.
        max_ns: maximum.
    """

    n: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int


def spread_of(values: pl.Series) -> Spread | None:
    """The spread of the non-null values, None without any. Quantiles are nearest rank: the ceil(q*n)-th smallest."""
    known = values.drop_nulls().sort()
    n = len(known)
    if n == 0:
        return None
    p50, p90, p99 = (int(known[-(-q * n // 100) - 1]) for q in (50, 90, 99))
    return Spread(n, p50, p90, p99, int(known[-1]))
