"""How input arrives: loaded on the launching thread, or awaited there from worker processes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from analyze.metrics.whatif.scenario import Loading, Place, WhatIfInputs
from analyze.timeline import Intervals, intersect, join, spans
from analyze.timeline.intervals import NOTHING
from analyze.trace import Trace, matching, timed_rows

# The iterator of a loader with workers, and the function of it that polls their queue.
FROM_WORKERS = r"_MultiProcessingDataLoaderIter|/dataloader\.py\(\d+\): _try_get_data$"
PINNING = r"^(cuda|hip)(HostAlloc|MallocHost|HostMalloc|HostRegister)$|^cuMem(HostAlloc|AllocHost|HostRegister)(_v\d)?$"
_MOST = 0.5  # of the time: what covers less does not explain it
_LONG = 10  # times the median: a wait that is longer is no usual one


def measure_loading(inputs: WhatIfInputs, rows: pl.DataFrame) -> Loading | None:
    """How the launching threads wait for workers, None where loading runs mostly on these threads themselves.

    Args:
        inputs: the run.
        rows: rows of loading on launching threads, none inside another.
    """
    waiting = join(NOTHING, *(_from_workers(inputs.trace, thread) for thread in _threads(rows)))
    loading = spans(rows)
    if intersect(loading, waiting).total_ns <= _MOST * loading.total_ns:
        return None
    time_ns = rows["dur_ns"].to_numpy()
    long = time_ns[time_ns > _LONG * np.median(time_ns)]
    few = int(long.sum()) > _MOST * int(time_ns.sum())
    pinning = _pinning(inputs, loading)
    return Loading(rows.height, len(long) if few else 0, int(long.sum()) if few else 0, pinning)


def _threads(rows: pl.DataFrame) -> Iterable[int]:
    return (int(thread) for thread in rows["thread"].unique().to_list())


def _from_workers(trace: Trace, thread: int) -> Intervals:
    """Instants at which a thread waits for a loader's workers."""
    tables = (table.filter(pl.col("thread") == thread) for table in (trace.ranges, trace.ops, trace.frames))
    return join(*(spans(table.filter(matching(table["name"], FROM_WORKERS))) for table in tables))


def _pinning(inputs: WhatIfInputs, waits: Intervals) -> Place | None:
    """What fills the waits on another thread, if it is pinning memory."""
    calls = timed_rows(inputs.trace.runtime)
    calls = calls.filter(matching(calls["name"], PINNING) & ~pl.col("thread").is_in(list(inputs.schedule.threads)))
    start = calls["start_ns"].to_numpy()
    calls = calls.filter(
        pl.Series(waits.covered_within(start, start + calls["dur_ns"].to_numpy()) > 0, dtype=pl.Boolean)
    )
    if not calls.height or intersect(spans(calls), waits).total_ns <= _MOST * waits.total_ns:
        return None
    longest = calls.sort("dur_ns", "start_ns", descending=[True, False]).row(0, named=True)
    thread = inputs.trace.threads.filter(pl.col("thread") == longest["thread"])["tid"][0]
    return Place(
        str(longest["name"]), f"thread {thread}", calls.height, int(calls["dur_ns"].sum()), int(longest["start_ns"])
    )
