"""Device records that are not what they seem: zero times, graph launches with kernels missing, streams put together."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analyze.metrics.question import Question
from analyze.notices import Notice
from analyze.trace import Trace
from analyze.units import percent, plural

ZERO_WORTH_TELLING = 0.01  # of the rows of ops, API calls and activities
_GRAPH_SHORT = 0.95  # a replay with fewer activities than this share of the fullest one of its graph lacks some


def zero_share(trace: Trace) -> float:
    """Share of rows with time 0 and length 0: clamped below the file's base time, or never collected."""
    zero = (pl.col("start_ns") == 0) & (pl.col("dur_ns") == 0)
    tables = (trace.ops, trace.runtime, trace.activities)
    rows = sum(table.height for table in tables)
    return sum(table.filter(zero).height for table in tables) / rows if rows else 0.0


def record_notices(trace: Trace, share: float) -> Iterator[Notice]:
    """What the device records cannot support; `share` is the trace's `zero_share`."""
    if share > ZERO_WORTH_TELLING:
        text = f"{percent(share)} of ops, API calls and activities have time 0 and length 0; they count in no figure."
        yield Notice("zero-timestamps", text, 1)
    yield from _short_replays(trace)
    yield from _soft_streams(trace)


def _short_replays(trace: Trace) -> Iterator[Notice]:
    """Replays of one graph with different numbers of activities."""
    launched = trace.activities.filter(pl.col("launch").is_not_null() & (pl.col("graph").fill_null(0) != 0))
    replays = launched.group_by("graph", "launch").agg(activities=pl.len())
    most = pl.col("activities").max().over("graph")
    short = replays.filter(pl.col("activities") < _GRAPH_SHORT * most).height
    if short:
        text = (
            f"{short:,} of {plural(replays.height, 'graph launch', 'graph launches')} recorded fewer activities than "
            "others of the same graph: device records incomplete, idle time in them is an upper bound."
        )
        yield Notice("graph-kernels-missing", text, short)


def _soft_streams(trace: Trace) -> Iterator[Notice]:
    """ROCm files in which activities of one stream overlap: several streams may share one row."""
    if not trace.runtime["name"].cast(pl.String).str.starts_with("hip").any():
        return
    key = ["process", "device", "stream"]
    timed = trace.activities.filter("timed").sort("start_ns", "end_ns")
    before = pl.col("end_ns").cum_max().shift().over(key)
    overlapping = timed.filter(pl.col("start_ns") < before).height
    if overlapping:
        text = (
            f"{plural(overlapping, 'activity starts', 'activities start')} before an earlier one of the same stream "
            "ends: ROCm may put several streams on one, so figures per stream are soft. Those per device are not."
        )
        yield Notice("soft-streams", text, overlapping)


QUESTION = Question("zero_share", lambda a: zero_share(a.trace))
