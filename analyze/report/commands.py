"""Commands that go on from a report: they work when they are typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import polars as pl

from analyze.findings import Diagnosis
from analyze.inert import printable
from analyze.metrics import Measures
from analyze.timeline import launched_within
from analyze.trace import Trace, timed_rows
from analyze.trace.stream import is_stream

_RANGE_SHOWN = 40  # longer names break the line that is meant to be copied
_RANGES_TRIED = 8


def next_steps(trace: Trace, measures: Measures, diagnosis: Diagnosis) -> Iterator[str]:
    """Commands that go on from here; none that reads a file which cannot be typed, as from a pipe."""
    file = quoted_path(trace.path)
    if file:
        yield f"analyze {file} -o report.md"
    if diagnosis.findings:
        yield f"analyze explain {diagnosis.findings[0].id}"
    selection = _selection(trace) if file and not measures.selection.label else ""
    if selection:
        yield f"analyze {file} {selection}"


def quoted_path(path: str) -> str:
    """The path as a shell takes it, and the command line as a file; empty where no line can hold it."""
    if is_stream(path) or not _typable(path):
        return ""
    name_of_command = "/" not in path and "." not in path
    return shlex.quote(f"./{path}" if path.startswith("-") or name_of_command else path)


def _typable(text: str) -> bool:
    """A report shows it as it is: nothing unseen, nothing that a renderer replaces."""
    return bool(text) and printable(text) == text and " ".join(text.split()) == text and "`" not in text


def _selection(trace: Trace) -> str:
    """An option that leaves out what is unusual: the first and last of the steps, or all but one range."""
    if trace.steps.height:
        numbers = sorted({int(name.rpartition("#")[2]) for name in trace.steps["name"].cast(pl.String)})
        if len(numbers) < 2:
            return ""
        return f"--steps {numbers[1]}:{numbers[-1] if len(numbers) > 2 else numbers[-1] + 1}"
    name = _range(trace)
    return f"--range {shlex.quote(name)}" if name and not name.startswith("-") else ""


def _range(trace: Trace) -> str:
    """The name of the range with most time that launched something, if anything was launched at all; else empty."""
    ranges = timed_rows(trace.ranges).with_columns(pl.col("name").cast(pl.String)).drop_nulls("name")
    longest = (
        ranges.group_by("name", maintain_order=True)
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", descending=True, maintain_order=True)
    )
    names = [name for name in longest["name"] if len(name) <= _RANGE_SHOWN and _typable(name)]
    for name in names[:_RANGES_TRIED]:
        rows = ranges.filter(pl.col("name") == name)
        start = rows["start_ns"].to_numpy()
        inside = launched_within(trace.activities, start, start + rows["dur_ns"].to_numpy())
        if inside.height or not trace.activities.height:
            return str(name)
    return ""
