"""Steps: the ranges that the profiler writes around each iteration, or none."""

from __future__ import annotations

import polars as pl

from analyze import schema

_STEP = r"^ProfilerStep#\d+$"


def find_steps(ranges: pl.DataFrame) -> pl.DataFrame:
    """The `ProfilerStep#N` ranges as steps, in order of start; schema `STEPS`.

    A step's wall time is the distance to the next start on its thread. The last step has no successor and uses its own
    duration.
    """
    return (
        ranges.filter(pl.col("name").cast(pl.String).str.contains(_STEP) & pl.col("dur_ns").is_not_null())
        .sort("start_ns", maintain_order=True)
        .with_columns(
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            wall_ns=(pl.col("start_ns").shift(-1).over("thread") - pl.col("start_ns")).fill_null(pl.col("dur_ns")),
        )
        .select(schema.names(schema.STEPS))
    )
