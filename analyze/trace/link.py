"""Activities meet their launches (one call to many activities) and the op around the call."""

from __future__ import annotations

import polars as pl

from analyze import schema
from analyze.kernels import classify, readable
from analyze.trace.programs import Programs
from analyze.trace.rows import Timed


def link_activities(frames: dict[str, pl.DataFrame], ops: Timed, programs: Programs | None = None) -> pl.DataFrame:
    """The activities with launch, op (the innermost around the call) and category; schema `LINKED`, in order of start.

    The join is 1:N on (process group, correlation): a graph launch has many activities. Where several calls carry one
    correlation, the first in the file is the launch. A correlation that is absent or 0 links nothing. In a file of
    several programs with the same ids, an activity meets calls of its own program only.
    """
    key = ["process", "correlation"]
    runtime, activities = frames["runtime"], frames["activities"]
    if programs is not None:
        key.append("program")
        runtime = runtime.with_columns(program=pl.Series(programs.of_call))
        activities = activities.with_columns(program=pl.Series(programs.of_activity))
    calls = (
        runtime.with_row_index("launch")
        .join(frames["threads"].select("thread", "process"), on="thread", how="left", maintain_order="left")
        .filter(pl.col("correlation").is_not_null() & pl.col("start_ns").is_not_null())
        .unique(key, keep="first", maintain_order=True)
        .select(
            *key,
            "launch",
            launch_start_ns="start_ns",
            launch_end_ns=pl.col("start_ns") + pl.col("dur_ns").fill_null(0),
            launch_thread="thread",
        )
    )
    dur = pl.col("dur_ns")
    timed = dur.is_not_null() & pl.col("start_ns").is_not_null() & ~((pl.col("start_ns") == 0) & (dur == 0))
    linked = (
        activities.with_columns(timed=timed)
        .with_columns(end_ns=pl.when("timed").then(pl.col("start_ns") + dur))
        .join(calls, on=key, how="left", maintain_order="left")
        .with_columns(_of_names(frames["activities"]))
        .sort("start_ns", "end_ns", maintain_order=True)
    )
    around = ops.names(linked["launch_thread"], linked["launch_start_ns"])
    return linked.with_columns(op=around).select(schema.names(schema.LINKED))


def _of_names(activities: pl.DataFrame) -> list[pl.Series]:
    """What the names give, each read once: `name` to read, `recorded_name`, and `category` (copies by their kind)."""
    kinds = activities.select("kind", "name").unique(maintain_order=True)
    names = kinds["name"].cast(pl.String).fill_null("").to_list()
    kind = pl.col("kind").cast(pl.String)
    found = kinds.with_columns(
        category=pl.when(kind == "kernel").then(classify(names)["category"]).otherwise(kind),
        readable=pl.Series([readable(name) for name in names], dtype=pl.String),
    )
    joined = activities.select("kind", "name").join(
        found, on=["kind", "name"], how="left", maintain_order="left", nulls_equal=True
    )
    recorded = joined["name"]
    mangled = any(name.startswith("_Z") for name in names)
    shown = joined["readable"].cast(recorded.dtype) if mangled else recorded
    return [shown.alias("name"), recorded.alias("recorded_name"), joined["category"].cast(pl.Categorical)]


def collect_launches(runtime: pl.DataFrame, activities: pl.DataFrame) -> pl.DataFrame:
    """One row per linked launch call; schema `LAUNCHES`, in order of the call's start."""
    linked = activities.filter(pl.col("launch").is_not_null() & pl.col("timed"))
    linked = linked.with_columns(stream_free_ns=_free_before(linked, activities))
    first = linked.group_by("launch", maintain_order=True).agg(
        pl.len().cast(pl.UInt32).alias("activities"),
        pl.col("device", "stream", "start_ns", "stream_free_ns").first(),
        pl.col("launch_thread", "launch_start_ns", "launch_end_ns").first(),
    )
    latency = pl.col("first_start_ns") - pl.col("start_ns")
    return (
        first.rename({"start_ns": "first_start_ns"})
        .rename({"launch_start_ns": "start_ns", "launch_end_ns": "end_ns", "launch_thread": "thread"})
        .with_columns(name=runtime["name"].gather(first["launch"]))
        .with_columns(latency_ns=pl.when(latency >= 0).then(latency))
        .with_columns(
            queue_time_ns=pl.when(pl.col("latency_ns").is_not_null()).then(
                (pl.col("first_start_ns") - pl.col("end_ns")).clip(0)
            ),
            idle_stream=pl.col("stream_free_ns").is_null() | (pl.col("stream_free_ns") <= pl.col("start_ns")),
        )
        .sort("start_ns", "launch")
        .select(schema.names(schema.LAUNCHES))
    )


def _free_before(linked: pl.DataFrame, activities: pl.DataFrame) -> pl.Series:
    """When every activity that starts earlier on the same stream has ended; null before the first one."""
    key = ["process", "device", "stream"]
    ends = (
        activities.filter("timed")
        .group_by(*key, "start_ns", maintain_order=True)
        .agg(pl.col("end_ns").max())
        .sort("start_ns", maintain_order=True)
        .with_columns(free=pl.col("end_ns").cum_max().shift().over(key))
        .select(*key, "start_ns", "free")
    )
    joined = linked.select(*key, "start_ns").join(
        ends, on=[*key, "start_ns"], how="left", maintain_order="left", nulls_equal=True
    )
    return joined["free"]
