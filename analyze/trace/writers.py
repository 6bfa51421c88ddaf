"""Who wrote a document, by its rows; other programs' traces are named and refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import polars as pl

from analyze.errors import NotATraceError
from analyze.trace.classes import COUNTER_RANGES, LEGACY_PID
from analyze.trace.foreign import PROFILER_HINT, name_other_writer, refuse_other_writer
from analyze.trace.foreign_formats import RECORD_HINT
from analyze.trace.sorting import WAITS
from analyze.trace.stretch import Stretch


class Writer(Enum):
    """The exporters whose documents can be analysed."""

    KINETO = "PyTorch profiler (Kineto)"
    LEGACY = "PyTorch autograd profiler without Kineto"


_TABLES = ("ops", "runtime", "activities", "ranges", "frames", "spans", "memory")


def name_writer(file: str, frames: Mapping[str, pl.DataFrame], part: Stretch) -> Writer:
    """Find out who wrote the document.

    Args:
        file: file name, for the message.
        frames: the tables.
        part: what was read.

    Raises:
        NotATraceError: another program's trace, or one without any row.
    """
    rows = {name: frames[name].height for name in _TABLES}
    other = name_other_writer(rows, part.counts.unknown, part.processes)
    if other is not None:
        raise refuse_other_writer(file, other)
    if any(rows.values()):
        legacy = frames["threads"]["pid"].eq(LEGACY_PID).any()
        return Writer.LEGACY if legacy else Writer.KINETO
    if part.counts.unused[WAITS] or part.counts.unused[COUNTER_RANGES] or frames["overhead"].height:
        return Writer.KINETO
    raise _without_rows(file, part)


def _without_rows(file: str, part: Stretch) -> NotATraceError:
    """The error for a list of events in which nothing can be measured."""
    if part.events > part.metadata:
        count = f"{part.events - part.metadata:,} events"
        return NotATraceError(f"{file} is Chrome-trace JSON, but none of its {count} has a duration.", PROFILER_HINT)
    what = "a trace without events" if not part.metadata else "a trace with metadata rows and no events"
    hint = "Was the profiler stopped before it recorded a step? " + RECORD_HINT
    return NotATraceError(f"{file} is {what}.", hint)
