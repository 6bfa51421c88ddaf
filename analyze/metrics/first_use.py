"""What only the first iterations do: long launch calls, start-up, module loading, compilation and graph capture."""

from __future__ import annotations

import polars as pl

from analyze.metrics.launches import LAUNCH_CALL
from analyze.timeline import Host, Intervals, union
from analyze.trace import Trace, matching, timed_rows

ALLOCATION = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost|HostMalloc|HostFree|ExtMallocWithFlags)(Pitch|Managed|3D)?$"
    r"|^cu(MemAlloc|MemFree|MemMap|MemUnmap|MemCreate|MemRelease|MemSetAccess|MemAddressReserve)(_v\d)?$"
)
COMPILING = r"dynamo_timed|compile_fx|compile_inner|call_user_compiler|CachingAutotuner\.benchmark|async_compile\.wait"
CAPTURING = "graph capture"
_CREATION = r"^(cuda|hip)(StreamCreate|EventCreate|SetDevice)|^cu(CtxCreate|ModuleLoad|LibraryLoad|StreamCreate)"
_START_UP_NS = 100_000_000  # no call that only gets memory or makes a stream takes so long
_LAZY = ("Lazy Function Loading", "Runtime Triggered Module Loading")
_CAPTURE, _CAPTURED = r"^(cuda|hip|cu)StreamBeginCapture", r"^(cuda|hip|cu)StreamEndCapture"
_INSTANTIATE = r"^(cuda|hip|cu)GraphInstantiate"
_COLUMNS = ("start_ns", "dur_ns", "name", "thread")
KINDS = ("compilation", "capture", "first use")


def first_use_rows(trace: Trace, host: Host, long_ns: int) -> pl.DataFrame:
    """The rows of first use.

    Returns:
        `start_ns`, `dur_ns`, `name`, `thread`, `anywhere` where the file does not say on which thread, and `kind`, one
        of `KINDS`.
    """
    calls = timed_rows(trace.runtime)
    start = calls["start_ns"].to_numpy()
    recording = host.profiler.covered_within(start, start + calls["dur_ns"].to_numpy())
    long = calls["dur_ns"] - pl.Series(recording, dtype=pl.Int64) > long_ns
    launching = calls.filter(matching(calls["name"], LAUNCH_CALL) & long)
    starting = calls.filter(matching(calls["name"], f"{ALLOCATION}|{_CREATION}"))
    starting = starting.filter(starts_up(trace, starting))
    lazy = timed_rows(trace.overhead).filter(pl.col("name").cast(pl.String).is_in(_LAZY))
    lazy = lazy.with_columns(thread=pl.lit(0, pl.UInt32))
    ranges = timed_rows(trace.ranges)
    compiling = ranges.filter(matching(ranges["name"], COMPILING))
    parts = (
        (compiling, KINDS[0], False),
        (captures(calls), KINDS[1], False),
        (launching, KINDS[2], False),
        (starting, KINDS[2], False),
        (lazy, KINDS[2], True),
    )
    return pl.concat(
        [
            rows.select(*_COLUMNS, anywhere=pl.lit(value=anywhere), kind=pl.lit(kind)).with_columns(
                pl.col("name").cast(pl.String), pl.col("thread").cast(pl.UInt32)
            )
            for rows, kind, anywhere in parts
        ]
    )


def captures(calls: pl.DataFrame) -> pl.DataFrame:
    """Captures of graphs, each from the call that begins it to the end of the one that ends it, and instantiations.

    Args:
        calls: API calls with a start and a duration.
    """
    ends, begins = (matching(calls["name"], pattern) for pattern in (_CAPTURED, _CAPTURE))
    marks = calls.with_columns(begins=begins).filter(begins | ends).sort("thread", "start_ns", maintain_order=True)
    following = pl.col("start_ns").shift(-1) + pl.col("dur_ns").shift(-1)
    marks = marks.with_columns(
        until=following.over("thread"), ended=(~pl.col("begins")).shift(-1).over("thread").fill_null(value=False)
    )
    whole = marks.filter(pl.col("begins") & pl.col("ended")).select(
        "start_ns", "thread", dur_ns=pl.col("until") - pl.col("start_ns"), name=pl.lit(CAPTURING)
    )
    made = calls.filter(matching(calls["name"], _INSTANTIATE)).with_columns(pl.col("name").cast(pl.String))
    return pl.concat([rows.select(*_COLUMNS) for rows in (whole, made)])


def starts_up(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """Calls that take so long, beyond what the devices run meanwhile, that they start up the driver or a library."""
    start, dur = calls["start_ns"].to_numpy(), calls["dur_ns"].to_numpy()
    return pl.Series(dur - _working(trace).covered_within(start, start + dur) > _START_UP_NS, dtype=pl.Boolean)


def _working(trace: Trace) -> Intervals:
    """Instants at which some device works."""
    work = trace.activities.filter("timed")
    return union(work["start_ns"].to_numpy(), work["end_ns"].to_numpy())
