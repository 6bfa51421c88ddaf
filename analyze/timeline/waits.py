"""Calls that held the host until the device had done something: what a replay lets return earlier.

The ledger's blocking calls (docs/definitions.md) are some of them. The others block without a name that says so.
"""

from __future__ import annotations

import polars as pl

from analyze.timeline.blocking import host_copies
from analyze.trace import Trace, matching, timed_rows

_RETURNS_EARLY_NS = 10_000  # before the record of its copy ends: 2 to 4 us were seen on V100, A100 and H100
_FREES = r"^(cuda|hip)(Free|FreeHost|HostFree)$|^cuMemFree(_v\d)?$"
_QUEUE = 1_000  # launches that have not begun: NVIDIA's queue holds 1,024, then a launch call waits for a place
_STALLED_NS = 20_000  # a launch call that waits for no place takes less
_COLUMNS = ("call", "name", "thread", "start_ns", "dur_ns")


def find_waits(trace: Trace, blocking: pl.DataFrame) -> pl.DataFrame:
    """All waits of the host for the device.

    Args:
        trace: the trace.
        blocking: the ledger's blocking calls, see `find_blocking_calls`; they keep their rows.

    Returns:
        The columns of `blocking`, and `copy`: the row, among the timed activities, of the copy that the call made,
        null for other calls, and `why`: "blocking", "copy" (a pageable copy whose call returned a little before its
        record ends), "free" (memory given back to the driver) or "queue" (a launch into a full queue).
    """
    copies = host_copies(trace).sort("copy_end_ns").unique("launch", keep="last", maintain_order=True)
    calls = timed_rows(trace.runtime.with_row_index("call")).select(_COLUMNS)
    calls = calls.filter(~pl.col("call").is_in(blocking["call"].implode()))
    found = [
        part.select(_COLUMNS).with_columns(why=pl.lit(why))
        for why, part in (
            ("blocking", blocking),
            ("copy", _held_by_copies(calls, copies)),
            ("free", calls.filter(matching(calls["name"], _FREES))),
            ("queue", calls.filter(pl.col("call").is_in(_into_full_queue(trace).implode()))),
        )
    ]
    made = copies.select("copy", call="launch")
    return pl.concat(found).join(made, on="call", how="left", maintain_order="left")


def _held_by_copies(calls: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Copy calls that returned at most `_RETURNS_EARLY_NS` before their copy's record ends, after it began."""
    copying = calls.filter(matching(calls["name"], "(?i)memcpy"))
    joined = copying.join(copies, left_on="call", right_on="launch", maintain_order="left")
    end = pl.col("start_ns") + pl.col("dur_ns")
    early = pl.col("copy_end_ns").is_between(end, end + _RETURNS_EARLY_NS)
    return joined.filter(~pl.col("pinned") & early & (pl.col("copy_start_ns") < end))


def _into_full_queue(trace: Trace) -> pl.Series:
    """Calls that launched work while so many launches on the same stream had not begun that the queue was full."""
    launched = trace.activities.filter(pl.col("timed") & pl.col("launch").is_not_null())
    first = launched.sort("start_ns").unique("launch", keep="first", maintain_order=True)
    ahead = pl.col("start_ns").shift(_QUEUE).over("process", "device", "stream", order_by="launch_start_ns")
    long = pl.col("launch_end_ns") - pl.col("launch_start_ns") > _STALLED_NS
    return first.filter(long & (ahead > pl.col("launch_start_ns")))["launch"]
