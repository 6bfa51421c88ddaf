"""Steps: the ranges that the profiler writes around each iteration, or none."""

from __future__ import annotations

import polars as pl

from analyze import schema
from analyze.trace.rows import matching, timed_rows

_STEP = r"^ProfilerStep#[0-9]{1,18}$"


def steps_are_ranges(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The frames with every `ProfilerStep#N` row among the ranges: before PyTorch 1.11 they are written as ops.

    A step is no op: what the host does inside it and outside ops is Python.
    """
    ops = frames["ops"]
    is_step = matching(ops["name"], _STEP).fill_null(value=False)
    if not is_step.any():
        return frames
    ranges = frames["ranges"]
    moved = ops.filter(is_step).select(ranges.columns)
    return {**frames, "ops": ops.filter(~is_step), "ranges": pl.concat([ranges, moved])}


def find_steps(ranges: pl.DataFrame) -> pl.DataFrame:
    """The `ProfilerStep#N` ranges as steps, in order of start; schema `STEPS`.

    A step's wall time is the distance to the next start on its thread. The last step has no successor and uses its own
    duration. A row that is there twice, under two categories, is one step.
    """
    return (
        timed_rows(ranges)
        .filter(pl.col("name").cast(pl.String).str.contains(_STEP))
        .unique(["thread", "name", "start_ns"], keep="first", maintain_order=True)
        .sort("start_ns", maintain_order=True)
        .with_columns(
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            wall_ns=(pl.col("start_ns").shift(-1).over("thread") - pl.col("start_ns")).fill_null(pl.col("dur_ns")),
        )
        .select(schema.names(schema.STEPS))
    )
