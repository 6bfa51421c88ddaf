"""What the page draws over time: lanes, series, stacks and places, unpacked and drawn by the browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
from msgspec import Struct

from analyze.inert import printable
from analyze.kernels.categories import CATEGORIES
from analyze.metrics import Measures
from analyze.metrics.foundations import ATTRIBUTION, GAP_PARTS, HOST, TIMELINES
from analyze.report.axis.gaps import IDLE_STATES
from analyze.report.axis.places import wanted_by
from analyze.report.axis.series import Steps, memory_over_time, queue_depth
from analyze.report.html.columns import Names, deltas
from analyze.report.html.lanes import Scale, device_lanes, idle_lane
from analyze.report.html.looks import CATEGORY_COLOURS
from analyze.report.html.stacks import StackTree, build_stacks
from analyze.report.html.threads import host_lanes
from analyze.report.report import Report
from analyze.timeline import DeviceTimeline, Host, Selection
from analyze.timeline.attribution import Attribution
from analyze.trace import Trace
from analyze.units import duration


class Scene(Struct, frozen=True):
    """The content of a page's timeline.

    Attributes:
        content: what the browser unpacks, by the keys of static/data.js.
        notes: what had to be left out or merged, in sentences.
        origin_ns: the instant that the scene calls 0, on the file's own clock.
    """

    content: dict[str, Any]
    notes: tuple[str, ...]
    origin_ns: int


class _Parts(Struct, frozen=True):
    """The intervals of a trace, as the measures see them."""

    trace: Trace
    selection: Selection
    lines: list[DeviceTimeline]
    gaps: list[pl.DataFrame]
    host: Host
    found: Attribution


def build_scene(report: Report) -> Scene | None:
    """The scene of a report, None where nothing in its trace has a time."""
    parts = _parts(report.measures)
    origin = _origin(parts.trace)
    if origin is None:
        return None
    scale = Scale(origin, Names())
    stacks = build_stacks(parts.found, scale.names)
    streams, merged_device = device_lanes(parts.trace, parts.lines, parts.found, stacks, scale)
    threads, merged_host = host_lanes(parts.trace, parts.host, parts.found.tree, stacks, scale)
    devices = [
        _device(line, gap, tables, scale, report)
        for line, gap, tables in zip(parts.lines, parts.gaps, streams, strict=True)
    ]
    content = {
        "origin": str(origin),
        "window": _window(parts, scale),
        "categories": [
            {"id": one.name, "label": one.label, "colour": CATEGORY_COLOURS[one.name]} for one in CATEGORIES
        ],
        "states": [{"id": one.id, "label": one.label, "cause": one.cause} for one in IDLE_STATES],
        "devices": devices,
        "threads": threads,
        "stacks": _stacks(stacks),
        "memory": list(_memory(report.measures, parts.trace, scale)),
        "steps": _steps(parts, scale),
        "places": _places(report, parts.trace, scale.names),
        "names": scale.names.texts,  # last: the others fill it
    }
    return Scene(content, tuple(_notes(merged_device, merged_host, stacks.left_out)), origin)


def _parts(measures: Measures) -> _Parts:
    ask = measures.ask
    return _Parts(measures.trace, measures.selection, ask(TIMELINES), ask(GAP_PARTS), ask(HOST), ask(ATTRIBUTION))


def _origin(trace: Trace) -> int | None:
    """The first instant of anything."""
    tables = (trace.activities.filter("timed"), trace.launches, trace.ops, trace.runtime, trace.ranges, trace.frames)
    starts = [table["start_ns"].min() for table in tables] + [trace.memory["time_ns"].min()]
    return min((int(start) for start in starts if start is not None), default=None)  # type: ignore[arg-type]


def _window(parts: _Parts, scale: Scale) -> list[int]:
    """What is shown at first: all windows together, else everything that the host did."""
    windows = [line.window for line in parts.lines if line.window_ns]
    if not windows:
        calls = parts.found.tree.calls
        if not calls.height:
            return [0, 1]
        windows = [(int(calls["start_ns"].min()), int(calls["end_ns"].max()))]  # type: ignore[arg-type]
    low, high = min(low for low, _ in windows), max(high for _, high in windows)
    return [low - scale.origin_ns, high - scale.origin_ns]


def _device(
    line: DeviceTimeline, gaps: pl.DataFrame, streams: list[dict[str, Any]], scale: Scale, report: Report
) -> dict[str, Any]:
    label = next(
        (d.label for d in report.measures.devices if (d.process, d.id) == (line.process, line.device)), "device"
    )
    low, high = line.window
    return {
        "label": printable(label),
        "window": [low - scale.origin_ns, high - scale.origin_ns],
        "streams": streams,
        "gaps": idle_lane(gaps, scale, report.definitions),
        "queue": _series(queue_depth(line.activities), scale),
    }


def _series(steps: Steps, scale: Scale) -> dict[str, Any]:
    return {
        "time": deltas(steps.time_ns - scale.origin_ns),
        "value": deltas(steps.value),
        "part": steps.part_ns,
    }


def _stacks(stacks: StackTree) -> dict[str, Any]:
    return {
        "parent": deltas(stacks.parent),
        "name": stacks.name.tolist(),
        "kind": stacks.kind.tolist(),
        "calls": stacks.calls.tolist(),
        "host": stacks.host_ns.tolist(),
        "device": stacks.device_ns.tolist(),
    }


def _memory(measures: Measures, trace: Trace, scale: Scale) -> Iterator[dict[str, Any]]:
    for use in measures.memory.devices:
        for column, what in (("allocated_bytes", "allocated"), ("reserved_bytes", "reserved")):
            steps = memory_over_time(trace, use.device_type, use.device, column)
            if steps is not None:
                yield {"label": use.label, "what": what, **_series(steps, scale)}


def _steps(parts: _Parts, scale: Scale) -> dict[str, Any]:
    steps = parts.trace.steps
    return {
        "name": scale.names.numbers(steps["name"].cast(pl.String).to_list()),
        "start": deltas(steps["start_ns"].to_numpy() - scale.origin_ns),
        "dur": steps["wall_ns"].to_list(),
    }


def _places(report: Report, trace: Trace, names: Names) -> dict[str, dict[str, Any]]:
    """Per finding the states, categories and numbers of names to look for."""
    return {
        finding: {
            "states": list(wanted.states),
            "categories": list(wanted.categories),
            "names": sorted({names.number(name) for name in wanted.names}),
        }
        for finding, wanted in wanted_by(report.diagnosis, trace).items()
    }


def _notes(device_ns: int, host_ns: int, left_out: int) -> Iterator[str]:
    if device_ns:
        yield f"Device slices shorter than {duration(device_ns)} that follow each other closely are drawn as one."
    if host_ns:
        yield f"Host calls shorter than {duration(host_ns)} that follow each other closely are drawn as one."
    if left_out:
        yield f"The {left_out:,} stacks with least time are counted for their callers."
