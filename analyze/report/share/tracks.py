"""What `analyze export` adds to a trace: ledger, longest gaps and launch queue of each device, findings, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.findings.states import STATES
from analyze.metrics.device_time import DEVICES
from analyze.metrics.foundations import GAP_PARTS, TIMELINES
from analyze.metrics.idle import PART_LABELS, Gap, largest_gaps
from analyze.report.axis.gaps import IDLE_STATES, main_states, states_of_gaps
from analyze.report.axis.series import Steps, memory_over_time, queue_depth
from analyze.report.report import Report
from analyze.report.share.markers import markers
from analyze.report.share.viewer import Drawn, Heading, Lane, microseconds, number_of, text_of
from analyze.settings import Definitions
from analyze.timeline import DeviceTimeline
from analyze.units import duration, plural

# How the parts of a gap lie inside it: what the host did before the launch, then the launch, then what came behind it.
ORDER_IN_GAP = (
    "input-wait", "sync", "allocator", "compilation", "capture", "first-use", "pause", "profiler", "unlinked",
    "launch-bound", "kernel-gap", "queued",
)  # fmt: skip
_LAYOUT = "layout: the ledger knows how much of the gap each part is, not when"
_CHUNK = 50_000
_NUMBER = {state.id: number for number, state in enumerate(STATES)}


class LedgerSlices(Struct, frozen=True):
    """Every nanosecond of a device's window by its owner, in order of time, as columns.

    Attributes:
        start_ns: starts.
        dur_ns: durations.
        state: index into `STATES`.
        gap: the gap that a slice is part of, -1 for busy time.
        gap_start_ns: starts of the gaps.
        gap_dur_ns: their lengths.
    """

    start_ns: Int64
    dur_ns: Int64
    state: Int64
    gap: Int64
    gap_start_ns: Int64
    gap_dur_ns: Int64


class Tracks(Struct, frozen=True):
    """What is added.

    Attributes:
        groups: the rows to write; empty where nothing in the trace has a track.
        lines: what they are, a sentence each.
        window: from the first to the last instant of all devices' windows, None without a device.
    """

    groups: tuple[Heading, ...]
    lines: tuple[str, ...]
    window: tuple[int, int] | None


def tracks_of(report: Report) -> Tracks:
    """All that is added for a report; nothing of it holds on to the trace but columns of integers."""
    measures = report.measures
    devices, lines, gaps = measures.ask(DEVICES), measures.ask(TIMELINES), measures.ask(GAP_PARTS)
    groups, said, windows = [], [], []
    for device, line, gap in zip(devices, lines, gaps, strict=True):
        if not line.window_ns:
            continue
        group, what = _of_device(report, line, gap, text_of(device.label))
        groups.append(group)
        said.append(what)
        windows.append(line.window)
    found = markers(report)
    if found.lanes:
        groups.append(Heading("gpuledger: findings", found.lanes))
        said.append(found.line)
    memory = list(_memory(report))
    if memory:
        groups.append(Heading("gpuledger: memory", counters=partial(_counters, memory)))
        said.append(f"memory: {', '.join(name for name, _, _ in memory)}, in bytes")
    window = (min(low for low, _ in windows), max(high for _, high in windows)) if windows else None
    return Tracks(tuple(groups), tuple(said), window)


def _of_device(report: Report, line: DeviceTimeline, gaps: pl.DataFrame, label: str) -> tuple[Heading, str]:
    ledger = ledger_of(line, gaps, report.definitions)
    longest = largest_gaps(report.measures.trace, [line], [gaps], report.definitions.top)
    marks = tuple(_gap_events(longest, gaps, report.definitions))
    queue = queue_depth(line.activities)
    lanes = [Lane("ledger", partial(ledger_events, ledger))]
    if marks:
        lanes.append(Lane(f"{len(marks)} longest gaps", lambda: marks))
    depth = ("launch queue" + _thinned(queue), "launches", queue)
    group = Heading(f"gpuledger: {label}", tuple(lanes), partial(_counters, [depth]))
    total = plural(len(ledger.dur_ns), "ledger slice that adds", "ledger slices that add")
    what = f"{label}: {total} up to its window of {duration(line.window_ns)}, exactly"
    return group, f"{what}; {plural(len(marks), 'longest gap')}; {depth[0]}"


def ledger_of(line: DeviceTimeline, gaps: pl.DataFrame, definitions: Definitions) -> LedgerSlices:
    """The window of a device as slices: busy time by class, gaps by state.

    The parts of one gap lie in it in the order of `ORDER_IN_GAP`, which is a layout.

    Args:
        line: the device.
        gaps: its partitioned gaps with their causes.
        definitions: limits.
    """
    start = [one.start_ns for one in line.exposed]
    dur = [one.end_ns - one.start_ns for one in line.exposed]
    state = [np.full(len(one), number) for number, one in enumerate(line.exposed)]
    gap = [np.full(len(one), -1) for one in line.exposed]
    states = states_of_gaps(gaps, definitions)
    at = gap_start = gaps["start_ns"].to_numpy()
    for name in ORDER_IN_GAP:
        assert not (states[name] < 0).any(), "a part of a gap is less than nothing"
        there = np.flatnonzero(states[name])
        start.append(at[there])
        dur.append(states[name][there])
        state.append(np.full(len(there), _NUMBER[name]))
        gap.append(there)
        at = at + states[name]
    order = np.argsort(np.concatenate(start), kind="stable")
    columns = [np.concatenate(one).astype(np.int64)[order] for one in (start, dur, state, gap)]
    start_ns, dur_ns, number, of_gap = columns
    found = LedgerSlices(start_ns, dur_ns, number, of_gap, gap_start, gaps["end_ns"].to_numpy() - gap_start)
    assert int(found.dur_ns.sum()) == line.window_ns, "slices do not sum to the window"
    return found


def ledger_events(ledger: LedgerSlices) -> Iterator[Drawn]:
    """The slices of a ledger; those of a gap say where it begins, as the page does, and what is a layout."""
    parts = np.bincount(ledger.gap[ledger.gap >= 0], minlength=len(ledger.gap_start_ns))
    for begin in range(0, len(ledger.dur_ns), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        columns = (ledger.start_ns, ledger.dur_ns, ledger.state, ledger.gap)
        for start, dur, number, gap in zip(*(column[rows].tolist() for column in columns), strict=True):
            state = STATES[number]
            args: dict[str, Any] = {}
            if gap >= 0:
                args = {"cause": state.cause, "gap begins at ts": microseconds(int(ledger.gap_start_ns[gap]))}
                if parts[gap] > 1:
                    args |= {"gap us": number_of(int(ledger.gap_dur_ns[gap])), "order": _LAYOUT}
            yield Drawn("X", state.label, start, dur, args)


def _gap_events(longest: Iterable[Gap], gaps: pl.DataFrame, definitions: Definitions) -> Iterator[Drawn]:
    """The longest gaps of a device in order of time, with cause and evidence."""
    state_of = dict(
        zip(gaps["start_ns"].to_list(), main_states(states_of_gaps(gaps, definitions)).tolist(), strict=True)
    )
    ranked = enumerate(longest, start=1)
    for rank, gap in sorted(ranked, key=lambda item: item[1].start_ns):
        state = IDLE_STATES[state_of[gap.start_ns]]
        texts = {
            "mostly": state.name, "cause": state.cause, "before": gap.previous, "ended by": gap.next,
            "launched by": gap.launch, "op": gap.op, "host meanwhile": " < ".join(gap.frame or gap.meanwhile),
            "step": gap.step, "ts": microseconds(gap.start_ns),
        }  # fmt: skip
        args: dict[str, Any] = {"rank by length": rank}
        args |= {key: text_of(text) for key, text in texts.items() if text}
        args |= {f"us, {PART_LABELS[part]}": number_of(ns) for part, ns in gap.parts.items()}
        yield Drawn("X", f"{duration(gap.length_ns)} {state.name}", gap.start_ns, gap.length_ns, args)


def _memory(report: Report) -> Iterator[tuple[str, str, Steps]]:
    for use in report.measures.memory.devices:
        for column, what in (("allocated_bytes", "allocated"), ("reserved_bytes", "reserved")):
            steps = memory_over_time(report.measures.trace, use.device_type, use.device, column)
            if steps is not None:
                yield f"{text_of(use.label)} {what}{_thinned(steps)}", "bytes", steps


def _thinned(steps: Steps) -> str:
    return f", largest of each {duration(steps.part_ns)}" if steps.part_ns else ""


def _counters(series: Iterable[tuple[str, str, Steps]]) -> Iterator[Drawn]:
    for name, unit, steps in series:
        for time, value in zip(steps.time_ns.tolist(), steps.value.tolist(), strict=True):
            yield Drawn("C", name, time, None, {unit: value})
