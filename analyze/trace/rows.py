"""Rows that have a place in time, and which of them is around an instant."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from analyze.trace.nesting import NO_ROW, Nesting

_LONG = 1_000  # rows: below, finding the distinct names costs more than it saves


def timed_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with a start and a duration."""
    return frame.filter(pl.col("dur_ns").is_not_null() & pl.col("start_ns").is_not_null())


def matching(names: pl.Series, pattern: str) -> pl.Series:
    """Which names match a pattern, null for null: of a long table each name is looked at once."""
    if len(names) < _LONG:
        found: pl.Series = names.cast(pl.String).str.contains(pattern)
        return found
    distinct = names.unique().drop_nulls()
    wanted = distinct.filter(distinct.cast(pl.String).str.contains(pattern))
    return names.to_physical().is_in(wanted.to_physical().implode())


class Timed:
    """The rows of a table with a start and a duration, and how they lie in each other.

    Attributes:
        rows: them, in order of the table.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.rows = timed_rows(frame)

    @cached_property
    def nest(self) -> Nesting:
        """Which row lies in which, thread by thread."""
        start, dur = self.rows["start_ns"].to_numpy(), self.rows["dur_ns"].to_numpy()
        return Nesting.of(self.rows["thread"].cast(pl.Int64).to_numpy(), start, start + dur)

    def innermost(self, thread: pl.Series, time_ns: pl.Series) -> pl.Series:
        """The row that is innermost around each instant on its thread; null where none is."""
        known = time_ns.is_not_null().to_numpy()
        rows = np.full(len(time_ns), NO_ROW, dtype=np.int64)
        threads = thread.fill_null(0).cast(pl.Int64).to_numpy()
        rows[known] = self.nest.innermost(threads[known], time_ns.fill_null(0).to_numpy()[known])
        found = pl.Series(rows)
        return found.set(found == NO_ROW, None)

    def names(self, thread: pl.Series, time_ns: pl.Series) -> pl.Series:
        """Name of the innermost row around each instant; null where none is."""
        if not self.rows.height:
            return pl.Series([None] * len(time_ns), dtype=pl.Categorical)
        return self.rows["name"].gather(self.innermost(thread, time_ns))
