"""Calls in which the host waited for the device (metrics.md, section 3)."""

from __future__ import annotations

import polars as pl

from analyze.trace import Trace

_EXPLICIT = (
    r"^(cuda|hip)(Device|Stream|Event)Synchronize(_\w+)?$"
    r"|^cu(Ctx|Stream|Event)Synchronize(_\w+)?$"
    r"|^cudaThreadSynchronize$|^hipCtxSynchronize$"
)
_HOST_COPY = r"HtoD|DtoH|HtoH|HtoA|AtoH|HostToDevice|DeviceToHost"


def find_blocking_calls(trace: Trace) -> pl.DataFrame:
    """The blocking calls: explicit synchronisations, and copies to or from the host that ended inside their call.

    Returns:
        One row per call: `call` (row of `runtime`), `name`, `thread`, `start_ns`, `dur_ns`, in order of the file.
    """
    name = pl.col("name").cast(pl.String)
    calls = (
        trace.runtime.with_row_index("call")
        .filter(pl.col("dur_ns").is_not_null() & pl.col("start_ns").is_not_null())
        .join(_last_host_copy(trace), left_on="call", right_on="launch", how="left", maintain_order="left")
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    copied = name.str.contains("(?i)memcpy") & pl.col("copy_end_ns").is_between(pl.col("start_ns"), end)
    return calls.filter(name.str.contains(_EXPLICIT) | copied.fill_null(value=False)).select(
        "call", "name", "thread", "start_ns", "dur_ns"
    )


def _last_host_copy(trace: Trace) -> pl.DataFrame:
    copies = trace.activities.filter(
        (pl.col("kind").cast(pl.String) == "memcpy")
        & pl.col("launch").is_not_null()
        & pl.col("name").cast(pl.String).str.contains(_HOST_COPY)
    )
    return copies.group_by("launch", maintain_order=True).agg(copy_end_ns=pl.col("end_ns").max())
