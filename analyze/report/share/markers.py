"""Findings at their places: gaps of some states, else activities, else calls, the longest ones of each finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.findings import Finding
from analyze.metrics.foundations import ATTRIBUTION, GAP_PARTS, TIMELINES
from analyze.report.axis.gaps import IDLE_STATES, main_states, states_of_gaps
from analyze.report.axis.places import Wanted, wanted_by
from analyze.report.report import Report
from analyze.report.share.viewer import Drawn, Lane, microseconds, text_of
from analyze.units import duration, percent, plural

MOST = 20  # places of one finding: the rest is in the tables of the report


class Places(Struct, frozen=True):
    """Where a finding can be seen.

    Attributes:
        start_ns: starts of the longest places, the longest first.
        end_ns: their ends.
        total: how many there are.
        what: what they are, in the plural.
    """

    start_ns: Int64
    end_ns: Int64
    total: int
    what: str


class Markers(Struct, frozen=True):
    """The lanes of all findings.

    Attributes:
        lanes: one per finding, more where its places overlap.
        line: what they are, one sentence.
    """

    lanes: tuple[Lane, ...]
    line: str


def markers(report: Report) -> Markers:
    """A lane for each finding, with a slice at each of its places; an instant for those without a place."""
    wanted = wanted_by(report.diagnosis, report.measures.trace)
    lanes: list[Lane] = []
    for finding in report.diagnosis.findings:
        lanes += _lanes(report, finding, places_of(report, wanted[finding.id]))
    return Markers(
        tuple(lanes), f"{plural(len(report.diagnosis.findings), 'finding')}, each at its {MOST} longest places at most"
    )


def places_of(report: Report, wanted: Wanted) -> Places:
    """The longest places of a finding."""
    for what, places in (
        ("gaps", partial(_gaps, report, wanted)),
        ("activities", partial(_activities, report, wanted)),
        ("calls", partial(_calls, report, wanted)),
    ):
        start, end = places()
        if len(start):
            order = np.lexsort((start, start - end))[:MOST]
            return Places(start[order], end[order], len(start), what)
    return Places(np.empty(0, np.int64), np.empty(0, np.int64), 0, "")


def _gaps(report: Report, wanted: Wanted) -> tuple[Int64, Int64]:
    numbers = [number for number, state in enumerate(IDLE_STATES) if state.id in wanted.states]
    found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for gaps in report.measures.ask(GAP_PARTS):
        mine = np.isin(main_states(states_of_gaps(gaps, report.definitions)), numbers)
        found.append((gaps["start_ns"].to_numpy()[mine], gaps["end_ns"].to_numpy()[mine]))
    starts, ends = zip(*found, strict=True)
    return np.concatenate(starts), np.concatenate(ends)


def _activities(report: Report, wanted: Wanted) -> tuple[Int64, Int64]:
    named = pl.col("name").cast(pl.String).is_in(wanted.names) | pl.col("op").cast(pl.String).is_in(wanted.names)
    kind = pl.col("category").cast(pl.String).is_in(wanted.categories)
    found = [line.selected.filter(named | kind) for line in report.measures.ask(TIMELINES)]
    return _bounds(found)


def _calls(report: Report, wanted: Wanted) -> tuple[Int64, Int64]:
    tree = report.measures.ask(ATTRIBUTION).tree
    calls = tree.calls.filter(pl.Series(tree.counted) & tree.calls["name"].cast(pl.String).is_in(wanted.names))
    within = report.measures.selection.host_interval
    if within is not None:
        calls = calls.filter((pl.col("start_ns") >= within[0]) & (pl.col("start_ns") < within[1]))
    return _bounds([calls])


def _bounds(frames: Iterable[pl.DataFrame]) -> tuple[Int64, Int64]:
    none = np.empty(0, np.int64)
    columns = [(none, none), *((frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy()) for frame in frames)]
    starts, ends = zip(*columns, strict=True)
    return np.concatenate(starts), np.concatenate(ends)


def _lanes(report: Report, finding: Finding, places: Places) -> Iterator[Lane]:
    what = _about(finding)
    if not places.total:
        windows = [line.window[0] for line in report.measures.ask(TIMELINES) if line.window_ns]
        event = Drawn("i", finding.title, min(windows), None, {**what, "place": "the whole window"})
        yield Lane(finding.id, lambda: (event,))
        return
    shown = len(places.start_ns)
    of = f"{shown} longest of {places.total:,} {places.what}" if places.total > shown else places.what
    for number, mine in enumerate(packed(places.start_ns, places.end_ns), start=1):
        events = tuple(
            Drawn("X", text_of(finding.title), start, end - start, {**what, **_place(places, rank, start)})
            for start, end, rank in mine
        )
        yield Lane(f"{finding.id} ({of})" + (f", {number}" if number > 1 else ""), partial(tuple, events))


def _place(places: Places, rank: int, start_ns: int) -> dict[str, str]:
    return {"place": f"{rank + 1} of {places.total:,} {places.what}, by length", "ts": microseconds(start_ns)}


def packed(start_ns: Int64, end_ns: Int64) -> list[list[tuple[int, int, int]]]:
    """Intervals (start, end, number) on as few lines as hold them without overlap, each line in order of time."""
    lines: list[list[tuple[int, int, int]]] = []
    for at in np.lexsort((end_ns, start_ns)).tolist():
        one = (int(start_ns[at]), int(end_ns[at]), at)
        line = next((line for line in lines if line[-1][1] <= one[0]), None)
        if line is None:
            lines.append([one])
        else:
            line.append(one)
    return lines


def _about(finding: Finding) -> dict[str, Any]:
    saving = finding.saving
    found = {"finding": finding.id, "severity": finding.severity, "observed": text_of(finding.observed)}
    if saving is not None:
        bound = "at most" if saving.bound else "about"
        found["saves"] = f"{bound} {duration(saving.ns)}, {percent(saving.share)} of the window"
    return {**found, "change": text_of(finding.change), "explained by": f"analyze explain {finding.id}"}
