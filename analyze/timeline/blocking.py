"""Calls in which the host waited for the device (docs/definitions.md)."""

from __future__ import annotations

import polars as pl

from analyze.trace import Trace, timed_rows

LAUNCH_CALL = r"^(cudaLaunch|cudaGraphLaunch|cuLaunch|cuGraphLaunch|hip\w*Launch)"
_EXPLICIT = (
    r"^(cuda|hip)(Device|Stream|Event)Synchronize(_\w+)?$"
    r"|^cu(Ctx|Stream|Event)Synchronize(_\w+)?$"
    r"|^cudaThreadSynchronize$|^hipCtxSynchronize$"
    # Other runtimes: musaStreamSynchronize, aclrtSynchronizeStream, zeEventHostSynchronize, urQueueFinish ...
    r"|(?i)^(musa|mu(ctx|stream|event)|ze|acl|ascendcl|mtia|hpu|syn|tops|cnrt|xpu|sycl)\w*.*synchroni[sz]e"
    r"|(?i)^(synchroni[sz]e|(device|stream|event|queue)_?synchroni[sz]e)"
    r"|^(ur|pi)(Queue|Event|Events)(Finish|Wait)$"
)
_HOST_COPY = r"HtoD|DtoH|HtoH|HtoA|AtoH|HostToDevice|DeviceToHost"


def find_blocking_calls(trace: Trace) -> pl.DataFrame:
    """The blocking calls: explicit synchronisations, and copies to or from the host that ended inside their call.

    Returns:
        One row per call: `call` (row of `runtime`), `name`, `thread`, `start_ns`, `dur_ns`, in order of the file.
    """
    name = pl.col("name").cast(pl.String)
    calls = timed_rows(trace.runtime.with_row_index("call"))
    copying = calls.filter(name.str.contains("(?i)memcpy")).join(host_copies(trace), left_on="call", right_on="launch")
    end = pl.col("start_ns") + pl.col("dur_ns")
    waited = copying.filter(pl.col("copy_end_ns").is_between(pl.col("start_ns"), end))["call"]
    return calls.filter(name.str.contains(_EXPLICIT) | pl.col("call").is_in(waited.unique().implode())).select(
        "call", "name", "thread", "start_ns", "dur_ns"
    )


def host_copies(trace: Trace) -> pl.DataFrame:
    """The copies to or from the host that have a launch.

    Returns:
        One row per copy: `launch`, `copy` (its row among the timed activities), `copy_start_ns`, `copy_end_ns`, and
        `pinned`: its name says that the host's memory is.
    """
    name = pl.col("name").cast(pl.String)
    copying = (pl.col("kind").cast(pl.String) == "memcpy") & pl.col("launch").is_not_null()
    return (
        trace.activities.filter("timed")
        .with_row_index("copy")
        .filter(copying & name.str.contains(_HOST_COPY))
        .select(
            "launch",
            "copy",
            copy_start_ns="start_ns",
            copy_end_ns="end_ns",
            pinned=name.str.contains("(?i)pinned"),
        )
    )
