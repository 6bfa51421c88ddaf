"""The ledger of the headline device step by step: it separates a change between two runs from the spread of each."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct, field

from analyze.arrays import Int64
from analyze.metrics.blocking_calls import FINAL_SYNC
from analyze.metrics.foundations import GAP_PARTS, HOST, TIMELINES
from analyze.metrics.question import Answers, Question
from analyze.metrics.vocabulary import CAUSES
from analyze.metrics.work import KERNELS
from analyze.settings import Definitions
from analyze.timeline import IDLE_PARTS, DeviceTimeline, Selection, join, launched_within, subtract, union
from analyze.trace import Trace

_OUTSIDE = -1  # launched in no step


class Ledger(Struct, frozen=True, kw_only=True):
    """The parts of a device's time; together they are its window, or what one step launched of it.

    Attributes:
        computation_ns: kernels that are no collectives.
        exposed_communication_ns: collectives without computation.
        exposed_copy_ns: copies and memsets without either.
        idle: nanoseconds per idle part.
        idle_long: the same in gaps over `long_gap_ns` only.
        first_use_ns: `launch_call` in launch calls over `long_gap_ns`.
        causes: nanoseconds of launch-bound time per entry of `CAUSES`; empty in reports of before it was split.
    """

    computation_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle: dict[str, int]
    idle_long: dict[str, int]
    first_use_ns: int
    causes: dict[str, int] = field(default_factory=dict)

    @property
    def window_ns(self) -> int:
        """All parts together."""
        return self.computation_ns + self.exposed_communication_ns + self.exposed_copy_ns + sum(self.idle.values())

    @property
    def queued_long_ns(self) -> int:
        """Work that was queued and not started, in gaps over `long_gap_ns`."""
        return self.idle_long["device_queue_ns"] + self.idle_long["launch_delay_ns"]


class StepLedger(Ledger, frozen=True, kw_only=True):
    """What one step launched: activities, and the gaps that its activities end.

    Attributes:
        name: range name of the step.
        categories: durations of its activities added up, by category.
        launches: calls that launched them.
        launch_latency_p50_ns: of those that met an idle stream, None without any.
        blocking_calls: blocking calls that began in the step, on any thread.
        blocked_ns: time inside them.
        exposed_sync_ns: of the step's gaps, what would vanish had blocking calls returned at once.
    """

    name: str
    categories: dict[str, int] = field(default_factory=dict)
    launches: int = 0
    launch_latency_p50_ns: int | None = None
    blocking_calls: int = 0
    blocked_ns: int = 0
    exposed_sync_ns: int = 0


class StepWork(Struct, frozen=True):
    """Activities of one name that were launched in some step, on any device.

    Attributes:
        name: as recorded.
        category: what it computes.
        count: how many.
        sum_ns: their durations added up.
    """

    name: str
    category: str
    count: int
    sum_ns: int


class ActivityTime(Struct, frozen=True):
    """All activities of one name, so that a later comparison knows which kernels there are not.

    Attributes:
        name: as recorded.
        category: what it computes.
        count: how many in the window.
        sum_ns: their durations added up.
        step_count: of them, how many were launched in some step.
        step_sum_ns: the durations of those.
    """

    name: str
    category: str
    count: int
    sum_ns: int
    step_count: int
    step_sum_ns: int


class _Steps(Struct, frozen=True):
    """Which step an instant on the host lies in."""

    start_ns: Int64
    end_ns: Int64

    def split(self, frame: pl.DataFrame, time_column: str) -> list[pl.DataFrame]:
        """The rows of each step by an instant of theirs; rows of no step are left out."""
        time = frame[time_column].cast(pl.Int64).fill_null(-1).to_numpy()
        row = np.searchsorted(self.start_ns, time, side="right") - 1
        inside = (row >= 0) & (time < self.end_ns[np.maximum(row, 0)])
        numbered = frame.with_columns(step=pl.Series(np.where(inside, row, _OUTSIDE), dtype=pl.Int64))
        found = numbered.partition_by("step", as_dict=True)
        return [found.get((step,), numbered.clear()) for step in range(len(self.start_ns))]


def measure_step_ledgers(
    trace: Trace,
    selection: Selection,
    line: DeviceTimeline,
    gaps: pl.DataFrame,
    blocking: pl.DataFrame,
    definitions: Definitions,
) -> tuple[StepLedger, ...]:
    """One ledger per selected step.

    Args:
        trace: the trace.
        selection: what is accounted for.
        line: the headline device's timeline.
        gaps: its partitioned gaps with `exposed_sync_ns`.
        blocking: blocking calls without the profiler's own.
        definitions: limits.
    """
    if not selection.steps.height:
        return ()
    frame = selection.steps.sort("start_ns")
    starts = frame["start_ns"].to_numpy()
    steps = _Steps(starts, starts + frame["wall_ns"].to_numpy())
    linked = pl.col("launch").is_not_null()
    met_idle = trace.launches.filter(pl.col("idle_stream") & pl.col("latency_ns").is_not_null())
    parts = [
        steps.split(line.owning.filter(linked), "launch_start_ns"),
        steps.split(line.selected.filter(linked), "launch_start_ns"),
        steps.split(gaps, "launch_start_ns"),
        steps.split(blocking, "start_ns"),
        steps.split(met_idle, "start_ns"),
    ]
    names = frame["name"].cast(pl.String)
    return tuple(_ledger(str(name), line, rows, definitions) for name, *rows in zip(names, *parts, strict=True))


def measure_step_work(selection: Selection) -> tuple[StepWork, ...]:
    """What all selected steps launched, by activity name, most time first."""
    if not selection.steps.height:
        return ()
    starts = selection.steps["start_ns"].to_numpy()
    inside = launched_within(selection.activities, starts, starts + selection.steps["wall_ns"].to_numpy())
    grouped = (
        inside.filter("timed")
        .group_by(pl.col("name").cast(pl.String).fill_null(""), pl.col("category").cast(pl.String))
        .agg(count=pl.len(), sum_ns=pl.col("dur_ns").sum())
        .sort("sum_ns", "name", "category", descending=[True, False, False])
    )
    return tuple(StepWork(*row) for row in grouped.iter_rows())


def _ledger(name: str, line: DeviceTimeline, rows: list[pl.DataFrame], definitions: Definitions) -> StepLedger:
    """One step's ledger from what it launched: activities that own time, all activities, gaps, waits, launches."""
    own, mine, gaps, calls, met_idle = rows
    runs = [own.filter(pl.col("class") == i) for i in range(3)]
    computation, communication, copy = (union(r["start_ns"].to_numpy(), r["end_ns"].to_numpy()) for r in runs)
    long_gap = gaps.filter(pl.col("end_ns") - pl.col("start_ns") > definitions.long_gap_ns)
    long_call = gaps.filter(pl.col("launch_end_ns") - pl.col("launch_start_ns") > definitions.long_gap_ns)
    work = mine.group_by(pl.col("category").cast(pl.String)).agg(pl.col("dur_ns").sum()).sort("category")
    return StepLedger(
        name=name,
        computation_ns=computation.total_ns,
        exposed_communication_ns=subtract(communication, line.by_class[0]).total_ns,
        exposed_copy_ns=subtract(copy, join(*line.by_class[:2])).total_ns,
        idle={part: int(gaps[part].sum()) for part in IDLE_PARTS},
        idle_long={part: int(long_gap[part].sum()) for part in IDLE_PARTS},
        first_use_ns=int(long_call["launch_call_ns"].sum()),
        causes={cause: int(gaps[cause].sum()) for cause in CAUSES},
        categories={str(category): int(ns) for category, ns in work.iter_rows()},
        launches=mine["launch"].n_unique(),
        launch_latency_p50_ns=_middle(met_idle["latency_ns"]),
        blocking_calls=calls.height,
        blocked_ns=int(calls["dur_ns"].sum()),
        exposed_sync_ns=int(gaps["exposed_sync_ns"].sum()),
    )


def _middle(values: pl.Series) -> int | None:
    """The lower of the two middles, None of nothing."""
    return int(values.sort()[(len(values) - 1) // 2]) if len(values) else None


def _measure(answers: Answers) -> tuple[StepLedger, ...]:
    """The ledgers of the device with the longest window."""
    lines, gaps, final = answers.ask(TIMELINES), answers.ask(GAP_PARTS), answers.ask(FINAL_SYNC)
    if not lines:
        return ()
    at = max(range(len(lines)), key=lambda i: lines[i].window_ns)
    calls = answers.ask(HOST).blocking
    if final is not None:
        calls = calls.with_row_index("row").filter(pl.col("row") != final)
    selection = answers.selection
    return measure_step_ledgers(answers.trace, selection, lines[at], gaps[at], calls, answers.definitions)


def _activity_times(answers: Answers) -> tuple[ActivityTime, ...]:
    work = measure_step_work(answers.selection) if answers.ask(TIMELINES) else ()
    in_steps = {(one.name, one.category): one for one in work}
    found = []
    for kernel in answers.ask(KERNELS):
        inside = in_steps.get((kernel.name, kernel.category), StepWork(kernel.name, kernel.category, 0, 0))
        times = kernel.count, kernel.sum_ns, inside.count, inside.sum_ns
        found.append(ActivityTime(kernel.name, kernel.category, *times))
    return tuple(found)


QUESTION = Question("step_ledgers", _measure, answer=list[StepLedger])
ACTIVITY_TIMES = Question("activity_times", _activity_times, answer=list[ActivityTime])
