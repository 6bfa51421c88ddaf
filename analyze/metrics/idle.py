"""The largest gaps with their evidence: what stood before and after, and what the host did meanwhile."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Table
from analyze.metrics.device_time import DEVICES, DeviceTime
from analyze.metrics.foundations import GAP_PARTS, TIMELINES
from analyze.metrics.question import Answers, Question
from analyze.timeline import IDLE_PARTS, DeviceTimeline, spans
from analyze.timeline.frames import LIBRARY, short_frame
from analyze.trace import Nesting, Trace

_FRAME = re.compile(r"^(?:.*/)?([^/(]+)\((\d+)\): (.*)$")
_STEP = "ProfilerStep#"


class Gap(Struct, frozen=True):
    """One gap.

    Attributes:
        device: device number.
        start_ns: its start on the file's clock.
        length_ns: its length.
        parts: nanoseconds per idle part that is not zero; they sum to the length.
        previous: name of an activity that ended at its start.
        next: name of the activity that ended it.
        launch: API call that launched that activity, None when no launch is recorded.
        op: innermost op around that call, None outside ops.
        frame: what the launching thread did most meanwhile, innermost first: Python frames up to the first one
            outside builtins, numpy, scipy and torch, or the op where no frames were recorded.
        meanwhile: the same for the thread that holds the steps, where the launching thread shows nothing.
        after_sync: it began inside a blocking call.
        step: name of the step that holds most of it, None outside steps.
    """

    device: int
    start_ns: int
    length_ns: int
    parts: dict[str, int]
    previous: str | None
    next: str | None
    launch: str | None
    op: str | None
    frame: tuple[str, ...]
    meanwhile: tuple[str, ...]
    after_sync: bool
    step: str | None


def largest_gaps(trace: Trace, lines: list[DeviceTimeline], gaps: list[pl.DataFrame], top: int) -> tuple[Gap, ...]:
    """The longest gaps of all devices, longest first.

    Args:
        trace: the trace.
        lines: device timelines.
        gaps: their partitioned gaps, in the same order.
        top: how many.
    """
    found = [
        (line, row)
        for line, frame in zip(lines, gaps, strict=True)
        for row in frame.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True, maintain_order=True)
        .head(top)
        .iter_rows(named=True)
    ]
    found.sort(key=lambda item: (item[1]["start_ns"] - item[1]["end_ns"], item[1]["start_ns"]))
    return tuple(_gap(trace, line, row) for line, row in found[:top])


def _gap(trace: Trace, line: DeviceTimeline, row: dict[str, int | None]) -> Gap:
    start, end = _known(row["start_ns"]), _known(row["end_ns"])
    owning = line.owning
    before = owning.filter(pl.col("end_ns") == start)["name"]
    ender = row["ender"]
    after = owning["name"][ender] if ender is not None else owning.filter(pl.col("start_ns") == end)["name"][0]
    api = trace.runtime["name"][owning["launch"][ender]] if ender is not None else None
    thread, host_end = row["thread"], min(max(_known(row["launch_start_ns"], end), start), end)
    frame = _doing(trace, thread, start, host_end) if thread is not None else ()
    steps = trace.steps
    elsewhere = not frame and thread is not None and host_end > start and steps.height > 0
    meanwhile = _doing(trace, steps["thread"][0], start, host_end) if elsewhere else ()
    return Gap(
        device=line.device,
        start_ns=start,
        length_ns=end - start,
        parts={part: _known(row[part]) for part in IDLE_PARTS if row[part]},
        previous=before[0] if len(before) else None,
        next=after,
        launch=api,
        op=owning["op"][ender] if ender is not None else None,
        frame=frame,
        meanwhile=meanwhile,
        after_sync=row["call"] is not None,
        step=_step(trace, start, host_end) if thread is not None else None,
    )


def _step(trace: Trace, start_ns: int, end_ns: int) -> str | None:
    """The step that covers at least half of a host interval."""
    steps = trace.steps
    inside = pl.min_horizontal(pl.col("end_ns"), end_ns) - pl.max_horizontal("start_ns", start_ns)
    found = steps.filter((inside * 2 >= end_ns - start_ns) & (inside > 0))["name"].cast(pl.String)
    return found[0] if len(found) else None


def _known(value: int | None, default: int = 0) -> int:
    return default if value is None else int(value)


def _doing(trace: Trace, thread: int, start_ns: int, end_ns: int) -> tuple[str, ...]:
    """What a thread did most in an interval: its Python frames; where none were recorded, its op or range.

    Where ops take less than half of the interval, only an op or range that covers half of it by itself names it.
    """
    frames = _busiest(trace.frames, thread, start_ns, end_ns)
    if frames:
        own = next((i for i, name in enumerate(frames) if not LIBRARY.search(name)), 0)
        return tuple(short_frame(name) for name in frames[: own + 1])
    ranges = trace.ranges.filter(~pl.col("name").cast(pl.String).str.starts_with(_STEP))
    rows = pl.concat([trace.ops.select(ranges.columns), ranges])
    covered = spans(trace.ops.filter(pl.col("thread") == thread)).covered_within(
        np.array([start_ns]), np.array([end_ns])
    )
    if covered[0] * 2 >= end_ns - start_ns:
        return _busiest(rows, thread, start_ns, end_ns)[:1]
    inside = pl.min_horizontal(pl.col("start_ns") + pl.col("dur_ns"), end_ns) - pl.max_horizontal("start_ns", start_ns)
    around = rows.filter(inside * 2 >= end_ns - start_ns)
    return _busiest(around, thread, start_ns, end_ns)[:1]


def _busiest(rows: pl.DataFrame, thread: int, start_ns: int, end_ns: int) -> tuple[str, ...]:
    """Names of the row with most self time inside the interval and of the rows around it, innermost first."""
    if end_ns <= start_ns:
        return ()
    end = pl.col("start_ns") + pl.col("dur_ns")
    mine = rows.filter((pl.col("thread") == thread) & (pl.col("start_ns") < end_ns) & (end > start_ns))
    if not mine.height:
        return ()
    begin = mine["start_ns"].to_numpy()
    nest = Nesting.of(np.zeros(mine.height, np.int64), begin, begin + mine["dur_ns"].to_numpy())
    inside = np.minimum(nest.end_ns, end_ns) - np.maximum(nest.start_ns, start_ns)
    parent = nest.parent
    below = np.zeros(mine.height, np.int64)
    np.add.at(below, parent[parent >= 0], inside[parent >= 0])
    names, at = [], int(np.argmax(inside - below))
    while at >= 0:
        names.append(str(mine["name"][int(nest.order[at])]))
        at = int(parent[at])
    return tuple(names)


PART_LABELS = {
    "host_data_loading_ns": "host: inside DataLoader work",
    "host_sync_ns": "host: inside a blocking call",
    "host_op_ns": "host: framework dispatch (inside an op)",
    "host_other_ns": "host: Python, or not recorded",
    "host_runtime_ns": "host: inside another API call",
    "launch_call_ns": "launch call running",
    "launch_delay_ns": "launched, not begun",
    "device_queue_ns": "queued before the gap began",
    "unlinked_ns": "launch not recorded",
    "profiler_ns": "the profiler's own cost",
}

_SHORT_LABELS = {
    "host_data_loading_ns": "DataLoader",
    "host_sync_ns": "blocking",
    "host_op_ns": "dispatch",
    "host_other_ns": "Python",
    "host_runtime_ns": "API call",
    "launch_call_ns": "launch call",
    "launch_delay_ns": "not begun",
    "device_queue_ns": "queued",
    "unlinked_ns": "unknown",
    "profiler_ns": "profiler",
}


def section(devices: tuple[DeviceTime, ...], gaps: tuple[Gap, ...], *, has_ops: bool) -> Section:
    """Idle time by the ten parts of the ledger, and the largest gaps with their evidence."""
    labels = PART_LABELS if has_ops else {**PART_LABELS, "host_other_ns": "host, not recorded"}
    idle_ns = sum(device.idle_ns for device in devices)
    sums = {part: sum(device.idle[part] for device in devices) for part in IDLE_PARTS}
    parts = Table(
        title="Who owns the idle time",
        columns=(Column("owner", Kind.TEXT), Column("time", Kind.TIME), Column("of idle time", Kind.SHARE)),
        rows=tuple(
            (labels[part], ns, ns / idle_ns) for part, ns in sorted(sums.items(), key=lambda p: -p[1]) if ns and idle_ns
        ),
    )
    table = Table(
        title="Largest gaps",
        columns=(
            Column("length", Kind.TIME),
            Column("of idle time", Kind.SHARE),
            Column("mostly", Kind.TEXT),
            Column("host meanwhile", Kind.CODE),
            Column("ended by", Kind.CODE),
        ),
        rows=tuple((g.length_ns, g.length_ns / idle_ns, _mostly(g), _host(g), g.op or g.next) for g in gaps),
        total=sum(device.gaps for device in devices),
    )
    return Section("idle", "Idle time", (parts, table))


def _mostly(gap: Gap) -> str:
    return _SHORT_LABELS[max(gap.parts, key=lambda name: gap.parts[name])]


def _host(gap: Gap) -> str | None:
    """The frame that a reader knows best, the first one outside libraries, function first; else what there is."""
    doing = gap.frame or gap.meanwhile
    if not doing:
        return None
    found = _FRAME.match(doing[-1])
    return f"{found[3]} ({found[1]}:{found[2]})" if found else doing[-1]


def _section(answers: Answers) -> Section:
    has_ops = answers.trace.ops.height > 0
    return section(answers.ask(DEVICES), answers.ask(QUESTION), has_ops=has_ops)


QUESTION = Question(
    "gaps",
    lambda a: largest_gaps(a.trace, a.ask(TIMELINES), a.ask(GAP_PARTS), a.definitions.top),
    answer=list[Gap],
    section=_section,
    on_screen=False,
)
