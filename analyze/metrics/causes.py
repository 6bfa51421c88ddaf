"""Why the host was not in time: the launch-bound part of each gap by cause, beside the ledger's own parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.metrics.first_use import KINDS, allocations, first_use_rows
from analyze.metrics.vocabulary import CAUSES
from analyze.timeline import Host, Intervals, complement, engine_threads, join, spans
from analyze.timeline.intervals import NOTHING
from analyze.trace import Trace

_HOST_PARTS = ("host_op_ns", "host_other_ns", "host_runtime_ns")
_FOREVER = 2**62


class Engine(Struct, frozen=True):
    """The threads of the backward engine, whose time outside ops is waiting.

    Attributes:
        threads: them.
        work: their ops by process.
        processes: process by thread.
    """

    threads: frozenset[int]
    work: dict[str, Intervals]
    processes: dict[int, str]

    def pauses(self, host: Host, thread: int, longer_ns: int) -> Intervals:
        """Stretches of a thread outside everything recorded: Python, or not recorded.

        A thread whose process runs a backward pass meanwhile waits for it.
        """
        if thread in self.threads:
            return NOTHING
        busy = join(host.states(thread).grown[-1], host.profiler, self.work.get(self.processes[thread], NOTHING))
        free = complement(busy, -_FOREVER, _FOREVER)
        long = free.end_ns - free.start_ns > longer_ns
        return Intervals(free.start_ns[long], free.end_ns[long])


def find_engine(trace: Trace) -> Engine:
    """The backward engine of each process."""
    processes = dict(trace.threads.select("thread", pl.col("process").cast(pl.String).fill_null("")).iter_rows())
    threads, work = engine_threads(trace), dict[str, Intervals]()
    for thread in sorted(threads):
        mine = spans(trace.ops.filter(pl.col("thread") == thread))
        work[processes[thread]] = join(work.get(processes[thread], NOTHING), mine)
    return Engine(threads, work, processes)


class Delays(Struct, frozen=True, dict=True):
    """What keeps the host from launching, found when it is first asked for: gaps and what-ifs share it.

    Attributes:
        trace: the trace.
        host: its host side.
        long_ns: `Definitions.long_gap_ns`.
    """

    trace: Trace
    host: Host
    long_ns: int

    @cached_property
    def first_use(self) -> pl.DataFrame:
        """What only the first iterations do, see `first_use_rows`."""
        return first_use_rows(self.trace, self.host, self.long_ns)

    @cached_property
    def engine(self) -> Engine:
        """The backward engine."""
        return find_engine(self.trace)


def add_causes(delays: Delays, gaps: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """The gaps with one column per entry of `CAUSES`: how much of their launch-bound time has that cause.

    Launch-bound time is `host_op_ns`, `host_other_ns`, `host_runtime_ns`, launch calls and delays that are no longer
    than `long_gap_ns`. Of it, what the launching thread spends inside compilation, the capture of a graph, start-up or
    module loading, and calls of the driver's allocator; the first that applies. What is left of a gap that began inside
    a blocking call is due to that call, which cost the host its lead, as far as `exposed_sync_ns` reaches: where the
    call took longer than the gap, all of it; else what pauses leave.

    Args:
        delays: of the trace.
        gaps: per device, partitioned, with `exposed_sync_ns`.
    """
    host, long_ns, first_use, engine = delays.host, delays.long_ns, delays.first_use, delays.engine
    allocating = allocations(delays.trace)
    sets: dict[int, list[Intervals]] = {}

    def of_thread(thread: int) -> list[Intervals]:
        if thread not in sets:
            pauses = engine.pauses(host, thread, long_ns)
            sets[thread] = _grown(host, thread, [*_by_kind(first_use, thread), _on(allocating, thread), pauses])
        return sets[thread]

    return [_with_causes(frame, of_thread, long_ns) for frame in gaps]


def _on(rows: pl.DataFrame, thread: int) -> Intervals:
    return spans(rows.filter(pl.col("thread") == thread))


def _by_kind(first_use: pl.DataFrame, thread: int) -> list[Intervals]:
    mine = first_use.filter(pl.col("anywhere") | (pl.col("thread") == thread))
    return [spans(mine.filter(pl.col("kind") == kind)) for kind in KINDS]


def _grown(host: Host, thread: int, causes: list[Intervals]) -> list[Intervals]:
    """Growing unions: what is no launch-bound time of a thread, that and the first cause, and so on."""
    waiting_or_loading = host.states(thread).grown[1]
    grown = [join(waiting_or_loading, host.profiler)]
    for cause in causes:
        grown.append(join(grown[-1], cause))
    return grown


def _with_causes(gaps: pl.DataFrame, of_thread: Callable[[int], list[Intervals]], long_ns: int) -> pl.DataFrame:
    """One device's gaps with the causes."""
    found = {cause: np.zeros(gaps.height, np.int64) for cause in CAUSES}
    begin, end = gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy()
    launch = gaps["launch_start_ns"].fill_null(0).to_numpy()
    host = gaps.select(pl.sum_horizontal(_HOST_PARTS)).to_series().to_numpy()
    thread = gaps["thread"].fill_null(-1).to_numpy()
    for one in np.unique(thread[host > 0]).tolist():
        mine = (thread == one) & (host > 0)
        until = np.clip(launch[mine], begin[mine], end[mine])
        covered = [grown.covered_within(begin[mine], until) for grown in of_thread(one)]
        for cause, (before, after) in zip(CAUSES, pairwise(covered), strict=False):
            found[cause][mine] = after - before
    rest = _launch_bound(gaps, long_ns) - sum(found[cause] for cause in CAUSES[:-2])
    exposed = gaps["exposed_sync_ns"].to_numpy()
    behind = np.minimum(np.maximum(exposed - gaps["host_sync_ns"].to_numpy(), 0), rest)
    explained = (exposed > 0) & (exposed == end - begin)
    found["pause_ns"] = np.where(explained, np.minimum(found["pause_ns"], rest - behind), found["pause_ns"])
    found["sync_ns"] = np.minimum(behind, rest - found["pause_ns"])
    return gaps.with_columns(**found)


def _launch_bound(gaps: pl.DataFrame, long_ns: int) -> Int64:
    """Launch-bound time of each gap, all causes together."""
    long_call = (pl.col("launch_end_ns") - pl.col("launch_start_ns") > long_ns).fill_null(value=False)
    long_gap = pl.col("end_ns") - pl.col("start_ns") > long_ns
    amount = (
        pl.sum_horizontal(_HOST_PARTS)
        + pl.when(long_call).then(0).otherwise("launch_call_ns")
        + pl.when(long_gap).then(0).otherwise("launch_delay_ns")
    )
    return gaps.select(amount.alias("amount"))["amount"].to_numpy()
