"""What only the first iterations do: long launch calls, start-up, module loading and compilation."""

from __future__ import annotations

import polars as pl

from analyze.metrics.launches import LAUNCH_CALL
from analyze.timeline import Host, Schedule, union
from analyze.trace import Trace, matching, timed_rows

ALLOCATION = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost|HostMalloc|HostFree|ExtMallocWithFlags)(Pitch|Managed|3D)?$"
    r"|^cu(MemAlloc|MemFree|MemMap|MemUnmap|MemCreate|MemRelease|MemSetAccess|MemAddressReserve)(_v\d)?$"
)
_CREATION = r"^(cuda|hip)(StreamCreate|EventCreate|SetDevice)|^cu(CtxCreate|ModuleLoad|LibraryLoad|StreamCreate)"
_START_UP_NS = 100_000_000  # no call that only gets memory or makes a stream takes so long
_LAZY = ("Lazy Function Loading", "Runtime Triggered Module Loading")
_COMPILING = r"dynamo_timed|compile_fx|compile_inner|call_user_compiler|CachingAutotuner\.benchmark|async_compile\.wait"


def first_use_rows(trace: Trace, host: Host, schedule: Schedule, long_ns: int) -> pl.DataFrame:
    """The rows of first use.

    Returns:
        `start_ns`, `dur_ns`, `name`, `thread`, and `anywhere` where the file does not say on which thread.
    """
    columns = ["start_ns", "dur_ns", "name", "thread"]
    calls = timed_rows(trace.runtime)
    start = calls["start_ns"].to_numpy()
    recording = host.profiler.covered_within(start, start + calls["dur_ns"].to_numpy())
    long = calls["dur_ns"] - pl.Series(recording, dtype=pl.Int64) > long_ns
    launching = calls.filter(matching(calls["name"], LAUNCH_CALL) & long)
    starting = calls.filter(matching(calls["name"], f"{ALLOCATION}|{_CREATION}"))
    starting = starting.filter(starts_up(schedule, starting))
    lazy = timed_rows(trace.overhead).filter(pl.col("name").cast(pl.String).is_in(_LAZY))
    lazy = lazy.with_columns(thread=pl.lit(0, pl.UInt32))
    ranges = timed_rows(trace.ranges)
    compiling = ranges.filter(matching(ranges["name"], _COMPILING))
    placed = pl.concat([part.select(columns) for part in (launching, starting, compiling)])
    anywhere = pl.lit(value=True).alias("anywhere")
    return pl.concat([placed.with_columns(~anywhere), lazy.select(*columns, anywhere)])


def starts_up(schedule: Schedule, calls: pl.DataFrame) -> pl.Series:
    """Calls that take so long, beyond what the device runs meanwhile, that they start up the driver or a library."""
    work = schedule.work
    busy = union(work.start_ns, work.start_ns + work.dur_ns)
    start, dur = calls["start_ns"].to_numpy(), calls["dur_ns"].to_numpy()
    return pl.Series(dur - busy.covered_within(start, start + dur) > _START_UP_NS, dtype=pl.Boolean)
