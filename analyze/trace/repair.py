"""Device rows that cannot be true: each is set right as far as the other rows allow, counted and said."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from analyze.notices import Notice
from analyze.units import duration, plural

OVERRUN_NS = 1_000_000  # kernels of one stream overlap by microseconds at most (programmatic dependent launch)
OVERRUN_STARTS = 4  # so many later activities of the same stream begin inside an impossible duration
OVERRUN_TIMES_MEDIAN = 100  # and it is so many times longer than the stream's median
FAR_NS = 3_600 * 10**9  # an hour without any activity: the clock jumped, or the row belongs to another recording
MAIN_SHARE = 0.9  # of the activities must lie together before others are called far

_STREAM = ["process", "device", "stream"]


def repair_activities(linked: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Notice, ...]]:
    """Set impossible rows right.

    Args:
        linked: activities of schema `LINKED`, in order of start.

    Returns:
        The same rows in the same order, and what was done to them.
    """
    near, far = _mark_far(linked)
    clipped, overruns = _clip_overruns(near)
    return clipped, (*far, *overruns)


def _mark_far(linked: pl.DataFrame) -> tuple[pl.DataFrame, Iterator[Notice]]:
    """Take activities that lie an hour or more away from all others out of the timed ones."""
    timed = np.flatnonzero(linked["timed"].to_numpy())
    starts = linked["start_ns"].to_numpy()[timed] if len(timed) else np.empty(0, np.int64)
    breaks = np.flatnonzero(np.diff(starts) > FAR_NS) + 1
    if not len(breaks):
        return linked, iter(())
    clusters = np.split(timed, breaks)
    main = max(clusters, key=len)
    if len(main) < MAIN_SHARE * len(timed):
        return linked, iter(())
    keep = np.zeros(linked.height, dtype=bool)
    keep[main] = True
    lost = len(timed) - len(main)
    text = (
        f"{plural(lost, 'activity lies', 'activities lie')} an hour or more away from all others in time; "
        "they count in no figure."
    )
    return linked.with_columns(timed=pl.Series(keep)), iter((Notice("far-outliers", text, lost),))


def _clip_overruns(linked: pl.DataFrame) -> tuple[pl.DataFrame, Iterator[Notice]]:
    """End kernels that run over many later ones of their own stream where the next one starts."""
    rows = (
        linked.with_row_index("row")
        .filter(pl.col("timed") & (pl.col("category").cast(pl.String) != "communication") & (pl.col("dur_ns") > 0))
        .with_columns(first_of_stream=pl.col("row").first().over(_STREAM))
    )
    median = pl.col("dur_ns").median().over(_STREAM)
    suspects = rows.filter((pl.col("dur_ns") > OVERRUN_NS) & (pl.col("dur_ns") > OVERRUN_TIMES_MEDIAN * median))
    found = list(_overruns(rows, suspects))
    if not found:
        return linked, iter(())
    ends = pl.DataFrame(found, schema={"row": pl.UInt32, "clip_ns": pl.Int64}, orient="row")
    clip = pl.col("clip_ns")
    clipped = (
        linked.with_row_index("row")
        .join(ends, on="row", how="left", maintain_order="left")
        .with_columns(
            end_ns=pl.coalesce(clip, "end_ns"),
            dur_ns=pl.when(clip.is_not_null()).then(clip - pl.col("start_ns")).otherwise("dur_ns"),
        )
        .select(linked.columns)
    )
    gone = int(linked["dur_ns"].sum()) - int(clipped["dur_ns"].sum())
    text = (
        f"{plural(len(found), 'activity has an impossible duration', 'activities have impossible durations')}: later "
        f"ones of the same stream ran inside. They end where the next one starts; {duration(gone)} of recorded time "
        "counts in no figure."
    )
    return clipped, iter((Notice("impossible-durations", text, len(found)),))


def _overruns(rows: pl.DataFrame, suspects: pl.DataFrame) -> Iterator[tuple[int, int]]:
    """Row and new end of each activity inside which many later ones of its stream begin; `rows` in order of start."""
    for (stream,), ours in suspects.group_by("first_of_stream", maintain_order=True):
        starts = rows.filter(pl.col("first_of_stream") == stream)["start_ns"].to_numpy()
        for row, start_ns, end_ns in ours.select("row", "start_ns", "end_ns").iter_rows():
            later = starts[np.searchsorted(starts, start_ns, "right") : np.searchsorted(starts, end_ns, "left")]
            if len(later) >= OVERRUN_STARTS and end_ns - later[0] > OVERRUN_NS:
                yield row, int(later[0])
