"""What only the first iterations do: long launch calls, start-up, module loading, compilation and graph capture."""

from __future__ import annotations

import polars as pl

from analyze.timeline import Host, Intervals, union
from analyze.timeline.blocking import LAUNCH_CALL
from analyze.trace import Trace, matching, timed_rows

ALLOCATION = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost|HostMalloc|HostFree|ExtMallocWithFlags)(Pitch|Managed|3D)?$"
    r"|^cu(MemAlloc|MemFree|MemMap|MemUnmap|MemCreate|MemRelease|MemSetAccess|MemAddressReserve)(_v\d)?$"
)
COMPILING = r"dynamo_timed|compile_fx|compile_inner|call_user_compiler|CachingAutotuner\.benchmark|async_compile\.wait"
CAPTURING = "graph capture"
_CREATION = r"^(cuda|hip)(StreamCreate|EventCreate|SetDevice)|^cu(CtxCreate|ModuleLoad|LibraryLoad|StreamCreate)"
_GIVES_BACK = r"Free|Unmap|Release"
_FILLING = 4  # times as many calls, or as much time: what is given back, or got later, hardly counts
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
    creating = calls.filter(matching(calls["name"], _CREATION))
    starting = pl.concat([creating.filter(_starts_up(trace, creating)), _allocations(trace, at_first=True)])
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


def allocations(trace: Trace) -> pl.DataFrame:
    """Calls that get memory from the driver or give it back, but for what belongs to first use."""
    return _allocations(trace, at_first=False)


def _allocations(trace: Trace, *, at_first: bool) -> pl.DataFrame:
    """Calls of the driver's allocator: those of first use, or the others.

    To first use belong calls that start up the driver or a library, and all of them where the cache only fills: hardly
    anything is given back, and with several steps, hardly anything is got after the first.
    """
    calls = timed_rows(trace.runtime)
    calls = calls.filter(matching(calls["name"], ALLOCATION))
    first = _starts_up(trace, calls) | pl.repeat(_fills(trace, calls), calls.height, dtype=pl.Boolean, eager=True)
    return calls.filter(first == at_first)


def _fills(trace: Trace, calls: pl.DataFrame) -> bool:
    """Whether calls of the allocator only fill its cache."""
    if int(matching(calls["name"], _GIVES_BACK).sum()) * _FILLING > calls.height:
        return False
    steps = trace.steps
    if steps.height < 2:
        return True
    later = calls.filter(pl.col("start_ns") >= steps["end_ns"][0])
    return int(later["dur_ns"].sum()) * _FILLING <= int(calls["dur_ns"].sum())


def _starts_up(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """Calls that take so long, beyond what the devices run meanwhile, that they start up the driver or a library."""
    start, dur = calls["start_ns"].to_numpy(), calls["dur_ns"].to_numpy()
    return pl.Series(dur - _working(trace).covered_within(start, start + dur) > _START_UP_NS, dtype=pl.Boolean)


def _working(trace: Trace) -> Intervals:
    """Instants at which some device works."""
    work = trace.activities.filter("timed")
    return union(work["start_ns"].to_numpy(), work["end_ns"].to_numpy())
