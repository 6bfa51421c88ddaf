"""Steps: the device's pace, the host's beside it, device work by launch, spread (docs/definitions.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.metrics.lead import QUESTION as LEAD
from analyze.metrics.lead import stat
from analyze.metrics.question import Answers, Question
from analyze.notices import NotMeasured
from analyze.timeline import Selection, union
from analyze.trace import Trace
from analyze.units import duration

_PACES_DIFFER = 0.10  # of the step time: from here on the host's pace is printed beside it
_OUTLIER = 1.5  # times the median: a longest step of this length is named
_SPREAD_FROM = 3  # steps: fewer have no outlier
_NONE = -1


class Step(Struct, frozen=True):
    """One step.

    Attributes:
        name: range name.
        time_ns: from the first activity launched in the step to the first one launched in the next step; where the
            next one launched nothing, or there is none, to the end of its own last activity. The host's pace where
            `basis` says so.
        basis: "device"; "host" where the step launched nothing, or the device began the next step before it.
        wall_ns: the host's pace: distance to the next step's start, or for the last one its own duration.
        device_ns: time during which activities launched in the step run, on any device.
        activities: how many they are.
        edge: "first" or "last" of the recording: the first holds residual work, the last lacks a successor; "only"
            where it is both, empty otherwise.
    """

    name: str
    time_ns: int
    basis: str
    wall_ns: int
    device_ns: int
    activities: int
    edge: str


def measure_steps(trace: Trace, selection: Selection) -> tuple[Step, ...]:
    """The selected steps in order; empty when the trace has none.

    A step's time does not depend on what is selected: its successor is the recording's.
    """
    steps = trace.steps.with_columns(_processes(trace, trace.steps["thread"])).with_row_index("at")
    if not selection.steps.height:
        return ()
    first, last = 0, steps.height - 1
    found: dict[int, Step] = {}
    for _, mine in steps.group_by("process", maintain_order=True):
        works = _work_by_step(trace, mine)
        for i, row in enumerate(mine.iter_rows(named=True)):
            at = row["at"]
            edge = "only" if first == last else {first: "first", last: "last"}.get(at, "")
            found[at] = _step(row, works[i], works[i + 1] if i + 1 < len(works) else None, edge)
    keys = ["thread", "name", "start_ns"]
    chosen = steps.join(selection.steps.select(keys), on=keys, how="semi", maintain_order="left")
    return tuple(found[at] for at in chosen["at"])


def _processes(trace: Trace, thread: pl.Series) -> pl.Series:
    """Process group of each thread: in a merged file each program has its own steps."""
    group: pl.Series = trace.threads["process"].cast(pl.String).gather(thread).alias("process")
    return group


def _work_by_step(trace: Trace, steps: pl.DataFrame) -> list[pl.DataFrame]:
    """The timed activities that each step of one process launched: it is the last to have begun before the launch."""
    work = trace.activities.filter(pl.col("timed") & pl.col("launch").is_not_null())
    own = _processes(trace, work["launch_thread"]) == steps["process"][0]
    work = work.filter(own)
    start: Int64 = steps["start_ns"].to_numpy()
    launched: Int64 = work["launch_start_ns"].to_numpy()
    at = np.searchsorted(start, launched, side="right") - 1
    inside = (at >= 0) & (launched < (start + steps["wall_ns"].to_numpy())[np.maximum(at, 0)])
    numbered = work.with_columns(step=pl.Series(np.where(inside, at, _NONE), dtype=pl.Int64))
    parts = numbered.partition_by("step", as_dict=True)
    return [parts.get((i,), numbered.clear()) for i in range(steps.height)]


def _step(row: dict[str, object], work: pl.DataFrame, following: pl.DataFrame | None, edge: str) -> Step:
    """One step from its row, what it launched and what the next one launched, None behind the last."""
    wall = int(row["wall_ns"])  # type: ignore[call-overload]
    begin, end = _extent(work)
    after = _extent(following)[0] if following is not None else None
    pace = None
    if begin is not None and end is not None:
        pace = (end if after is None else after) - begin
    runs = union(work["start_ns"].to_numpy(), work["end_ns"].to_numpy())
    on_device = pace is not None and pace > 0
    time, basis = (pace or 0, "device") if on_device else (wall, "host")
    return Step(str(row["name"]), time, basis, wall, runs.total_ns, work.height, edge)


def _extent(work: pl.DataFrame) -> tuple[int | None, int | None]:
    """First start and last end of the activities that own time, None without any."""
    own = work.filter(pl.col("dur_ns") > 0)
    return own["start_ns"].min(), own["end_ns"].max()  # type: ignore[return-value]


def step_times(steps: tuple[Step, ...]) -> tuple[int, int, int] | None:
    """Median, minimum and maximum of the step times; None without steps.

    Even counts take the lower middle, but of two steps the first where the last lacks a successor.
    """
    times = _spread([step.time_ns for step in steps])
    if times is not None and len(steps) == 2 and steps[1].edge == "last":
        return steps[0].time_ns, *times[1:]
    return times


def host_pace(steps: tuple[Step, ...]) -> int | None:
    """The host's median pace where it differs from the step time by over a tenth, else None."""
    times, walls = step_times(steps), _spread([step.wall_ns for step in steps])
    if times is None or walls is None or abs(walls[0] - times[0]) <= _PACES_DIFFER * times[0]:
        return None
    return walls[0]


def _spread(times: list[int]) -> tuple[int, int, int] | None:
    times = sorted(times)
    return (times[(len(times) - 1) // 2], times[0], times[-1]) if times else None


def section(steps: tuple[Step, ...]) -> Section:
    """The steps with their spread."""
    table = Table(
        title="Steps",
        columns=(
            Column("step", Kind.CODE),
            Column("time", Kind.TIME),
            Column("host's pace", Kind.TIME),
            Column("device busy", Kind.TIME),
            Column("activities", Kind.COUNT),
        ),
        rows=tuple((_named(s), s.time_ns, s.wall_ns, s.device_ns, s.activities) for s in steps),
        note=(
            "A step's time runs from the first activity launched in it to the first one launched in the next step; the "
            "last step ends with its last activity, and a step without device work takes the host's pace. The host's "
            "pace is the distance between the starts of two steps. Work belongs to the step that launched it."
        ),
    )
    return Section("steps", "Steps", (Stat("Step", spread_text(steps), brief=bool(steps)), table))


def spread_text(steps: tuple[Step, ...]) -> str:
    """Median with minimum and maximum; one step has no spread."""
    times = step_times(steps)
    if times is None:
        return "no steps in this file"
    median, low, high = times
    pace = host_pace(steps)
    beside = "" if pace is None else f"; the host's pace is {duration(pace)}"
    if all(step.basis == "host" for step in steps):
        beside = "; the host's pace, no step launched device work"
    if len(steps) == 1:
        own = "its first activity to its last end" if steps[0].basis == "device" else "its own duration"
        if steps[0].edge not in ("last", "only"):
            own = "to the next one"
        return f"{duration(median)} (1 step, no spread; {own}){beside}"
    word = "median of" if len(steps) > 2 else "of"
    spread = f"{duration(low)} to {duration(high)}{_outlier(steps)}"
    return f"{duration(median)} ({word} {len(steps)}; {spread}{_cut(steps)}){beside}"


def _cut(steps: tuple[Step, ...]) -> str:
    """That the last step is shorter for want of a successor, where it makes a difference."""
    last, times = steps[-1], step_times(steps)
    assert times is not None
    cut = last.edge == "last" and last.basis == "device" and last.time_ns < (1 - _PACES_DIFFER) * times[0]
    return "; the last to its end" if cut else ""


def _outlier(steps: tuple[Step, ...]) -> str:
    """The longest step's number, where it is far longer than the median and the longest on the host too.

    What the host does before a step's first launch lengthens the step before it: of such a time no step is named.
    """
    times = step_times(steps)
    assert times is not None
    if len(steps) < _SPREAD_FROM or times[2] < _OUTLIER * times[0]:
        return ""
    longest = max(steps, key=lambda step: step.time_ns)
    if longest.wall_ns < max(step.wall_ns for step in steps):
        return ""
    return f" in step {longest.name.rpartition('#')[2]}"


def _named(step: Step) -> str:
    marks = [step.edge, "host's pace" if step.basis == "host" else ""]
    said = ", ".join(mark for mark in marks if mark)
    return f"{step.name} ({said})" if said else step.name


def _section(answers: Answers) -> Section:
    found, lead = section(answers.ask(QUESTION)), answers.ask(LEAD)
    return found if lead is None else Section(found.id, found.title, (*found.blocks, stat(lead)))


def _not_measured(answers: Answers) -> Iterator[NotMeasured]:
    if not answers.trace.steps.height:
        how = "call prof.step() once per iteration, or capture --traced-steps N"
        yield NotMeasured("steps", "no ProfilerStep ranges", how)


QUESTION = Question(
    "steps",
    lambda a: measure_steps(a.trace, a.selection),
    answer=list[Step],
    section=_section,
    not_measured=_not_measured,
)
