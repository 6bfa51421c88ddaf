"""What a host thread was doing at each instant: the first that applies of sync, data loading, API call, op."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.timeline.blocking import find_blocking_calls
from analyze.timeline.intervals import Intervals, join, subtract, union
from analyze.timeline.waits import find_waits
from analyze.trace import Trace, matching, timed_rows

DATA_LOADING = r"(?i)dataloader"
PROFILER_OVERHEAD = ("Activity Buffer Request", "Instrumentation", "Resource")
STATES = ("host_sync_ns", "host_data_loading_ns", "host_runtime_ns", "host_op_ns")


class ThreadStates(Struct, frozen=True):
    """Growing unions of one thread's intervals, without the profiler's own time.

    Attributes:
        grown: instants in the first state, in the first two, and so on; one set per entry of `STATES`.
    """

    grown: tuple[Intervals, ...]

    def time_in_states(self, start_ns: Int64, end_ns: Int64) -> list[Int64]:
        """Time of each query interval in each of `STATES`; each instant counts for the first that applies."""
        covered = [states.covered_within(start_ns, end_ns) for states in self.grown]
        return [covered[0], *(b - a for a, b in pairwise(covered))]


class Host:
    """The host side of a trace, thread by thread.

    Attributes:
        profiler: the profiler's own cost, on no thread in particular.
        blocking: blocking calls, see `find_blocking_calls`.
        waits: these, row for row, and what else held the host for the device, see `find_waits`.
        loading: ranges and ops of the DataLoader, schema `RANGES`.
    """

    def __init__(self, trace: Trace) -> None:
        name = pl.col("name").cast(pl.String)
        loading = pl.concat([trace.ranges, trace.ops.select(trace.ranges.columns)])
        self.blocking = find_blocking_calls(trace)
        self.waits = find_waits(trace, self.blocking)
        self.loading = loading.filter(matching(loading["name"], DATA_LOADING))
        self.profiler = spans(trace.overhead.filter(name.is_in(PROFILER_OVERHEAD)))
        self._tables = (
            self.blocking,
            self.loading,
            trace.runtime,
            trace.ops.filter(~matching(trace.ops["name"], DATA_LOADING)),
        )
        self._states: dict[int, ThreadStates] = {}

    def states(self, thread: int) -> ThreadStates:
        """The states of one thread."""
        if thread not in self._states:
            grown: list[Intervals] = []
            for table in self._tables:
                mine = spans(table.filter(pl.col("thread") == thread))
                grown.append(join(grown[-1], mine) if grown else mine)
            self._states[thread] = ThreadStates(tuple(subtract(states, self.profiler) for states in grown))
        return self._states[thread]

    def partition(self, thread: Int64, start_ns: Int64, end_ns: Int64) -> dict[str, Int64]:
        """Split host intervals by what their thread was doing.

        Args:
            thread: thread of each interval.
            start_ns: starts.
            end_ns: ends, not before the starts.

        Returns:
            Nanoseconds per interval for each of `STATES`, `host_other_ns` and `profiler_ns`; they sum to its length.
        """
        parts = {state: np.zeros(len(start_ns), np.int64) for state in STATES}
        for one in np.unique(thread):
            mine = thread == one
            times = self.states(int(one)).time_in_states(start_ns[mine], end_ns[mine])
            for state, time in zip(STATES, times, strict=True):
                parts[state][mine] = time
        parts["profiler_ns"] = self.profiler.covered_within(start_ns, end_ns)
        parts["host_other_ns"] = end_ns - start_ns - sum(parts.values())
        return parts


def spans(frame: pl.DataFrame) -> Intervals:
    """The instants that some row of a frame with `start_ns` and `dur_ns` covers."""
    timed = timed_rows(frame)
    start = timed["start_ns"].to_numpy()
    return union(start, start + timed["dur_ns"].to_numpy())
