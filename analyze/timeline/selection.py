"""Which activities are accounted for: all, those of some steps, or those of a named range."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.errors import SelectionError, closest
from analyze.timeline.intervals import union
from analyze.trace import Trace

_LISTED = 8


class Scope(Struct, frozen=True):
    """What the user asked for.

    Attributes:
        steps: first and last step number, the last one excluded; None is open; None as a whole means all steps.
        range: name of a user range, or None.
    """

    steps: tuple[int | None, int | None] | None = None
    range: str | None = None


class Selection(Struct, frozen=True):
    """The part of a trace that is accounted for.

    Attributes:
        label: what was selected, for the report; empty for everything.
        steps: the selected steps, schema `STEPS`.
        activities: the activities launched inside the selection, or all.
        chosen: which activities of the trace those are.
        host_start_ns: where the selection begins on the host; None for everything.
        host_end_ns: where it ends there.
    """

    label: str
    steps: pl.DataFrame
    activities: pl.DataFrame
    chosen: pl.Series
    host_start_ns: int | None = None
    host_end_ns: int | None = None

    @property
    def host_interval(self) -> tuple[int, int] | None:
        """Where the selection lies on the host, None for everything."""
        if self.host_start_ns is None or self.host_end_ns is None:
            return None
        return self.host_start_ns, self.host_end_ns


def select(trace: Trace, wish: Scope) -> Selection:
    """The selection for a wish.

    Raises:
        SelectionError: no such step or range.
    """
    if wish.steps is not None and wish.range is not None:
        raise SelectionError("Steps and a range cannot be selected together.", "Pass --steps or --range.")
    if wish.range is not None:
        return _named(trace, wish.range)
    if wish.steps is not None:
        return _numbered(trace, *wish.steps)
    everything = pl.repeat(value=True, n=trace.activities.height, eager=True)
    return Selection("", trace.steps, trace.activities, everything)


def launched_within(activities: pl.DataFrame, start_ns: np.ndarray, end_ns: np.ndarray) -> pl.DataFrame:
    """The activities whose launch call begins inside any of the intervals `[start, end)`."""
    return activities.filter(_launched(activities, start_ns, end_ns))


def _launched(activities: pl.DataFrame, start_ns: np.ndarray, end_ns: np.ndarray) -> pl.Series:
    inside = union(start_ns, end_ns)
    begin = activities["launch_start_ns"].fill_null(-1).to_numpy()
    hit = inside.covered_within(begin, begin + 1) > 0
    return pl.Series(hit) & activities["launch"].is_not_null()


def _numbered(trace: Trace, first: int | None, last: int | None) -> Selection:
    number = pl.col("name").cast(pl.String).str.extract(r"#(\d+)$").cast(pl.Int64)
    steps = trace.steps.with_columns(number=number)
    if not steps.height:
        raise SelectionError(
            "The trace has no ProfilerStep ranges to select.", "Select with --range NAME, or omit --steps."
        )
    numbers = steps["number"].to_list()
    low = min(numbers) if first is None else first
    high = max(numbers) + 1 if last is None else last
    chosen = steps.filter((pl.col("number") >= low) & (pl.col("number") < high)).drop("number")
    if not chosen.height:
        there = f"The trace has steps {min(numbers)} to {max(numbers)}."
        raise SelectionError(f"No step in {low}:{high}; the last one is excluded.", there)
    return _within(trace, f"steps {low}:{high}", chosen, chosen["start_ns"], chosen["start_ns"] + chosen["wall_ns"])


def _named(trace: Trace, name: str) -> Selection:
    found = trace.ranges.filter((pl.col("name").cast(pl.String) == name) & pl.col("dur_ns").is_not_null())
    if not found.height:
        names = trace.ranges["name"].cast(pl.String).unique(maintain_order=True).drop_nulls().to_list()
        close = closest(name, names, n=3) or [n for n in names if not re.search(r"#\d+$", n)]
        listed = ", ".join(repr(n) for n in close[:_LISTED]) or "none"
        raise SelectionError(f"The trace has no range {name!r}.", f"Ranges there: {listed}.")
    return _within(trace, f"range {name}", trace.steps.clear(), found["start_ns"], found["start_ns"] + found["dur_ns"])


def _within(trace: Trace, label: str, steps: pl.DataFrame, start_ns: pl.Series, end_ns: pl.Series) -> Selection:
    start, end = start_ns.to_numpy(), end_ns.to_numpy()
    chosen = _launched(trace.activities, start, end)
    return Selection(label, steps, trace.activities.filter(chosen), chosen, int(start.min()), int(end.max()))
