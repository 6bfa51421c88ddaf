"""Where costs of the host come from, where the records say: a loop, empty_cache, compilation for the second time."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from analyze.metrics.first_use import COMPILING
from analyze.metrics.vocabulary import COMPILATION, EMPTY_CACHE, RECOMPILATION
from analyze.metrics.whatif.scenario import WhatIfInputs
from analyze.trace import Timed, matching, timed_rows

EMPTIES = r"(?i)empty_?cache$|empty_?cache>$"
# A frame, and how often it was compiled before.
NUMBERED_REGION = re.compile(r"^(?:\S+: )?Torch-Compiled Region: (\d+)/(\d+)")
_MOST = 0.5  # of the time: less does not speak for all


def in_the_loop(inputs: WhatIfInputs, calls: pl.DataFrame) -> pl.DataFrame:
    """The explicit synchronisations that a loop repeats.

    With several steps these are the ones inside steps, if at least two steps have some; otherwise all but a single one.
    What stands before the first step or after the last one is no part of a loop.

    Args:
        inputs: the run.
        calls: explicit synchronisations with `start_ns`.
    """
    steps = inputs.trace.steps
    if steps.height < 2:
        return calls if calls.height > 1 else calls.clear()
    starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    time = calls["start_ns"].to_numpy()
    at = np.searchsorted(starts, time, side="right") - 1
    inside = (at >= 0) & (time < np.max(ends))
    if len(np.unique(at[inside])) < 2:
        return calls.clear()
    return calls.filter(pl.Series(inside, dtype=pl.Boolean))


def allocation_origin(inputs: WhatIfInputs, calls: pl.DataFrame) -> str:
    """`EMPTY_CACHE` where most of the time of allocator calls lies in a frame of that name, else nothing.

    Args:
        inputs: the run.
        calls: of the driver's allocator.
    """
    frames = inputs.trace.frames
    emptying = Timed(frames.filter(matching(frames["name"], EMPTIES)))
    inside = emptying.innermost(calls["thread"], calls["start_ns"]).is_not_null()
    return EMPTY_CACHE if _is_most(calls, inside) else ""


def first_use_origin(inputs: WhatIfInputs, rows: pl.DataFrame) -> str:
    """`COMPILATION` where most of the time of first use is compiling, `RECOMPILATION` where it had been done before.

    Compiled code runs as `Torch-Compiled Region: FRAME/NUMBER`: a number above 0 is a frame that was compiled again.

    Args:
        inputs: the run.
        rows: of first use, none inside another.
    """
    compiling = matching(rows["name"], COMPILING)
    if not _is_most(rows, compiling):
        return ""
    longest = rows.filter(compiling).sort("dur_ns", descending=True).row(0, named=True)
    end = longest["start_ns"] + longest["dur_ns"]
    regions = timed_rows(inputs.trace.ops).filter(pl.col("thread") == longest["thread"]).sort("start_ns")
    regions = pl.concat([regions.select("name", "start_ns"), _ranges(inputs, longest["thread"])])
    regions = regions.filter(matching(regions["name"], NUMBERED_REGION.pattern)).sort("start_ns", maintain_order=True)
    after = regions.filter(pl.col("start_ns") >= end)["name"].cast(pl.String).head(1).to_list()
    before = regions.filter(pl.col("start_ns") < longest["start_ns"])["name"].cast(pl.String).unique().to_list()
    if not after or not (found := NUMBERED_REGION.match(after[0])):
        return COMPILATION
    again = int(found[2]) > 0 or any((other := NUMBERED_REGION.match(name)) and other[1] == found[1] for name in before)
    return RECOMPILATION if again else COMPILATION


def _ranges(inputs: WhatIfInputs, thread: int) -> pl.DataFrame:
    ranges = timed_rows(inputs.trace.ranges)
    return ranges.filter(pl.col("thread") == thread).select("name", "start_ns")


def _is_most(rows: pl.DataFrame, chosen: pl.Series) -> bool:
    """Whether the chosen rows take most of the time of all."""
    return int(rows["dur_ns"].filter(chosen).sum()) > _MOST * int(rows["dur_ns"].sum())
