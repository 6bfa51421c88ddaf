"""What a rank's own records say of its idle time and its work: by op and frame, in bounded size."""

from __future__ import annotations

import polars as pl

from analyze import schema
from analyze.ranks.tables import IDLE_OWNERS, PAUSES, WORK
from analyze.timeline import IDLE_PARTS, DeviceTimeline
from analyze.timeline.frames import own_frames
from analyze.trace import Trace

MOST_PAUSES = 2_000
MOST_OPS = 200
_LONGEST_NAME = 200


def pauses(trace: Trace, gaps: pl.DataFrame | None) -> pl.DataFrame:
    """The longest gaps of a device in which the host's op or frame is known (schema `PAUSES`).

    Args:
        trace: the trace.
        gaps: its partitioned gaps, None where nothing is known of the host.
    """
    if gaps is None:
        return schema.empty(PAUSES)
    length = pl.col("end_ns") - pl.col("start_ns")
    rows = gaps.filter(pl.col("thread").is_not_null()).sort(length, descending=True, maintain_order=True)
    rows = rows.head(MOST_PAUSES)
    until = pl.min_horizontal(pl.max_horizontal("launch_start_ns", "start_ns"), "end_ns")
    middle = rows.select((pl.col("start_ns") + until) // 2).to_series()
    frame = pl.Series(own_frames(trace, rows["thread"], middle), dtype=pl.String)
    op = trace.timed_ops.names(rows["thread"], middle).cast(pl.String)
    owner = rows.select(IDLE_PARTS).to_numpy().argmax(axis=1) if rows.height else []
    made = rows.select(
        pl.col("start_ns") + trace.metadata.base_ns,
        pl.col("end_ns") + trace.metadata.base_ns,
        pl.Series("owner", owner, dtype=pl.UInt8) + IDLE_OWNERS.start,
        pl.Series("op", op).str.head(_LONGEST_NAME),
        pl.Series("frame", frame.set(frame == "", None)).str.head(_LONGEST_NAME),
    )
    known = made.filter(pl.col("op").is_not_null() | pl.col("frame").is_not_null())
    return known.sort("start_ns").cast(schema.dtypes(PAUSES))  # type: ignore[arg-type]


def work(line: DeviceTimeline) -> pl.DataFrame:
    """Computation of a device by category and launching op (schema `WORK`); ops beyond the largest are one row."""
    kernels = line.owning.filter(pl.col("class") == 0).select(
        pl.col("category", "op").cast(pl.String), ns=pl.col("end_ns") - pl.col("start_ns")
    )
    by_op = kernels.group_by("category", "op").agg(pl.col("ns").sum()).sort("ns", "category", "op", descending=True)
    short = by_op.with_columns(op=pl.when(pl.int_range(pl.len()) < MOST_OPS).then(pl.col("op").str.head(_LONGEST_NAME)))
    found = short.group_by("category", "op").agg(pl.col("ns").sum()).sort("category", "op")
    return found.select(schema.names(WORK)).cast(schema.dtypes(WORK))  # type: ignore[arg-type]
