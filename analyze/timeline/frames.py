"""Python frames: whose code they are, and how much of their path may be shown."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW

LIBRARY = re.compile(r"^<|^nn\.Module: |(^|/)(numpy|scipy|torch)/|(^|/)lib/python\d[^/]*/(?!site-packages/)")
_ANCESTORS = 2  # path components kept besides the file: enough to distinguish files, not enough to identify persons


def own_frames(trace: Trace, thread: pl.Series, time_ns: pl.Series) -> list[str]:
    """The innermost Python frame around each instant that is no library's, "" where none was recorded.

    Args:
        trace: the trace.
        thread: thread per instant.
        time_ns: instants.
    """
    frames = trace.timed_frames.rows
    if not frames.height or not len(thread):
        return [""] * len(thread)
    nest = trace.timed_frames.nest
    names, code = frames["name"], frames["name"].to_physical().to_numpy()
    distinct = names.unique()
    foreign = pl.Series([LIBRARY.search(name) is not None for name in distinct], dtype=pl.Boolean)
    library = np.isin(code, distinct.to_physical().filter(foreign).to_numpy())
    place = np.empty(frames.height, np.int64)
    place[nest.order] = np.arange(frames.height)
    found = []
    for at in nest.innermost(thread.cast(pl.Int64).to_numpy(), time_ns.to_numpy()).tolist():
        here = int(place[at]) if at != NO_ROW else NO_ROW
        while here != NO_ROW and library[nest.order[here]]:
            here = int(nest.parent[here])
        found.append(short_frame(names[int(nest.order[here])]) if here != NO_ROW else "")
    return found


def short_frame(name: str) -> str:
    """A Python frame with the end of its path only: folders above it are private and long."""
    path, bracket, rest = name.partition("(")
    if not bracket or "/" not in path:
        return name
    parts = path.split("/")
    inside = parts.index("site-packages") + 1 if "site-packages" in parts else len(parts) - 1 - _ANCESTORS
    return "/".join(parts[max(inside, len(parts) - 1 - _ANCESTORS) :]) + bracket + rest
