"""Rows that have a place in time."""

from __future__ import annotations

import polars as pl


def timed_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with a start and a duration."""
    return frame.filter(pl.col("dur_ns").is_not_null() & pl.col("start_ns").is_not_null())
