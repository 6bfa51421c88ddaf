"""Host time of the first step or range around the device window: beside the ledger, and what it was spent on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Stat
from analyze.metrics.device_time import DEVICES, DeviceTime
from analyze.metrics.foundations import HOST
from analyze.metrics.idle import PART_LABELS
from analyze.metrics.question import Question
from analyze.metrics.vocabulary import SPEAKS
from analyze.timeline import Host, Intervals, Selection, intersect, union
from analyze.timeline.frames import LIBRARY, short_frame
from analyze.trace import Trace, timed_rows
from analyze.units import duration

_COVERS = 0.5  # of the host time around the window: a name that covers less does not explain it
_STEP = "ProfilerStep#"


class Lead(Struct, frozen=True):
    """What the host did around the device window, in the first step or range.

    Attributes:
        length_ns: from the start of the row to the first activity of the window, on any device.
        parts: nanoseconds of it by host part; they sum to the length.
        row_ns: length of the host row.
        lone: it is the only step or range that is accounted for.
        window_ns: first activity start to last activity end, over all devices.
        tail_ns: from the last activity's end to the row's end, 0 where the device ends later.
        place: what covers most of lead and tail: the innermost range, op or Python frame that covers half of them,
            and the first one around it outside libraries; empty where none does.
        place_ns: what the first of them covers.
        recorded_ns: what all ranges, ops and frames cover.
    """

    length_ns: int
    parts: dict[str, int]
    row_ns: int
    lone: bool
    window_ns: int
    tail_ns: int
    place: tuple[str, ...]
    place_ns: int
    recorded_ns: int

    @property
    def around_ns(self) -> int:
        """Host time around the window."""
        return self.length_ns + self.tail_ns

    @property
    def unrecorded(self) -> bool:
        """What was recorded covers less than half of the host time around the window."""
        return self.recorded_ns < _COVERS * self.around_ns

    @property
    def step_ns(self) -> int:
        """The step with its device work: lead, window and tail."""
        return self.around_ns + self.window_ns

    @property
    def beyond_share(self) -> float:
        """By how much of the host row a lone row is longer than the window; 0 for one of several."""
        longer = self.row_ns - self.window_ns
        return longer / self.row_ns if self.lone and self.row_ns and longer > 0 else 0.0

    @property
    def speaks(self) -> bool:
        """The window is so small a part of the step that sentences speak of the step."""
        return self.beyond_share > SPEAKS


def measure_lead(trace: Trace, host: Host, selection: Selection, devices: tuple[DeviceTime, ...]) -> Lead | None:
    """The lead of the selection, or of the first step; None without steps or when the device was busy before."""
    spans = [(d.window_start_ns, d.window_start_ns + d.window_ns) for d in devices if d.window_ns]
    row = _row(trace, selection)
    if not spans or row is None:
        return None
    begin, end = min(start for start, _ in spans), max(end for _, end in spans)
    start, row_end, thread, lone = row
    if start >= begin:
        return None
    parts = host.partition(np.array([thread]), np.array([start]), np.array([begin]))
    around = union(np.array([start, end]), np.array([begin, max(row_end, end)]))
    rows = _rows(trace, _threads(trace, thread), around, (start, row_end))
    place, place_ns = _place(rows, around)
    return Lead(
        length_ns=begin - start,
        parts={name: int(ns[0]) for name, ns in parts.items() if ns[0]},
        row_ns=row_end - start,
        lone=lone,
        window_ns=end - begin,
        tail_ns=max(row_end - end, 0),
        place=place,
        place_ns=place_ns,
        recorded_ns=_time(rows, around),
    )


def _row(trace: Trace, selection: Selection) -> tuple[int, int, int, bool] | None:
    """Start, end and thread of the first step, or of the range that is selected, and whether it is the only one."""
    steps = selection.steps
    if steps.height:
        first = steps.row(0, named=True)
        return int(first["start_ns"]), int(first["end_ns"]), int(first["thread"]), steps.height == 1
    if selection.host_interval is None:
        return None
    start, end = selection.host_interval
    rows = timed_rows(trace.ranges).filter(pl.col("start_ns") == start)
    whole = rows.filter(pl.col("start_ns") + pl.col("dur_ns") == end)
    row = (whole if whole.height else rows).row(0, named=True)
    return start, int(row["start_ns"] + row["dur_ns"]), int(row["thread"]), whole.height > 0


def _threads(trace: Trace, thread: int) -> list[int]:
    """The step's thread, and the one that launches first: in some files the row of the step stands on its own."""
    first = trace.activities.filter("timed").sort("start_ns")["launch_thread"].drop_nulls().head(1)
    return [thread, *first.to_list()]


def _rows(trace: Trace, threads: list[int], around: Intervals, row: tuple[int, int]) -> pl.DataFrame:
    """Frames, ranges and ops of some threads that lie in the intervals: `name`, `start_ns`, `end_ns`, `covered`."""
    columns, name = ["name", "thread", "start_ns", "dur_ns"], pl.col("name").cast(pl.String)
    ranges = timed_rows(trace.ranges)
    ranges = ranges.filter((pl.col("start_ns") != row[0]) | (pl.col("start_ns") + pl.col("dur_ns") != row[1]))
    rows = pl.concat([table.select(columns) for table in (timed_rows(trace.frames), ranges, timed_rows(trace.ops))])
    rows = rows.filter(pl.col("thread").is_in(threads)).with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    covered = around.covered_within(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
    rows = rows.with_columns(covered=pl.Series(covered, dtype=pl.Int64)).filter(pl.col("covered") > 0)
    return rows.with_columns(name).filter(~name.fill_null("").str.starts_with(_STEP))


def _place(rows: pl.DataFrame, around: Intervals) -> tuple[tuple[str, ...], int]:
    """The innermost name that covers half of the intervals, the first own one around it, and its time."""
    covering = sorted((ns, -i, name) for i, (name, ns) in enumerate(_covering(rows, around)))
    if not covering:
        return (), 0
    names = [name for _, _, name in covering]  # innermost first: what is around covers no less
    own = next((name for name in names if not LIBRARY.search(name)), names[0])
    return tuple(dict.fromkeys(short_frame(name) for name in (names[0], own))), covering[0][0]


def _covering(rows: pl.DataFrame, around: Intervals) -> Iterator[tuple[str, int]]:
    """Names whose rows together cover half of the intervals, with what they cover, outer ones first."""
    least = _COVERS * around.total_ns
    sums = rows.group_by("name", maintain_order=True).agg(pl.col("covered").sum(), pl.col("start_ns").min())
    for name in sums.filter(pl.col("covered") >= least).sort("start_ns", maintain_order=True)["name"].drop_nulls():
        time = _time(rows.filter(pl.col("name") == name), around)
        if time >= least:
            yield str(name), time


def _time(rows: pl.DataFrame, around: Intervals) -> int:
    """How much of the intervals some rows cover together."""
    return intersect(union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()), around).total_ns


def stat(lead: Lead) -> Stat:
    """The lead in one line."""
    name, ns = max(lead.parts.items(), key=lambda part: part[1])
    most = f"{duration(ns)} {PART_LABELS[name].removeprefix('host: ')}"
    place = f"; mostly in {lead.place[-1]}" if lead.place else ""
    text = f"{duration(lead.length_ns)} of host time before the first activity; most: {most}{place}"
    return Stat("Lead", text, brief=False)


QUESTION = Question(
    "lead",
    lambda a: measure_lead(a.trace, a.ask(HOST), a.selection, a.ask(DEVICES)),
    answer=Lead | None,
)
