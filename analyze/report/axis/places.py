"""Where each finding can be seen on the timeline: gaps of some states, and activities and calls of some names."""

from __future__ import annotations

from collections.abc import Iterator, Set

import polars as pl
from msgspec import Struct

from analyze.blocks import Kind
from analyze.findings import Diagnosis, Finding
from analyze.trace import Trace

# Rules about idle time: the states of the gaps in which their cost arises.
STATES = {
    "input-wait": ("input-wait",),
    "loader-starved": ("input-wait",),
    "sync-stall": ("sync",),
    "iteration-sync": ("sync",),
    "launch-bound": ("launch-bound",),
    "small-batch": ("launch-bound",),
    "host-lead": ("launch-bound", "pause"),
    "allocator-stall": ("allocator",),
    "warm-up": ("first-use", "compilation", "capture"),
    "profiler-overhead": ("profiler",),
}
# Rules about work on the device: its categories.
CATEGORIES = {
    "exposed-copies": ("memcpy", "memset"),
    "pageable-copy": ("memcpy",),
    "exposed-communication": ("communication",),
    "collective-wait": ("communication",),
    "collective-latency": ("communication",),
}


class Wanted(Struct, frozen=True):
    """What to look for: gaps of some states; where there is none, activities; where there is none, calls.

    Attributes:
        states: states of gaps, by most of their time.
        categories: categories of activities.
        names: names of activities, of the ops that launched them, and of calls.
    """

    states: tuple[str, ...]
    categories: tuple[str, ...]
    names: tuple[str, ...]


def wanted_by(diagnosis: Diagnosis, trace: Trace) -> dict[str, Wanted]:
    """What to look for to see each finding, by its id.

    Args:
        diagnosis: the findings.
        trace: whose names count.
    """
    known = _known(trace)
    return {
        finding.id: Wanted(
            STATES.get(finding.id, ()), CATEGORIES.get(finding.id, ()), tuple(dict.fromkeys(_named(finding, known)))
        )
        for finding in diagnosis.findings
    }


def _known(trace: Trace) -> Set[str]:
    tables = (trace.activities, trace.ops, trace.runtime, trace.ranges)
    found = pl.concat([table["name"].unique().cast(pl.String) for table in tables]).drop_nulls()
    return set(found.to_list())


def _named(finding: Finding, known: Set[str]) -> Iterator[str]:
    for table in finding.evidence:
        for i, column in enumerate(table.columns):
            if column.kind is Kind.CODE:
                yield from (str(row[i]) for row in table.rows if row[i] in known)
