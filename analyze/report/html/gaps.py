"""The gaps of a device with the state that owns each nanosecond of them: the ledger, gap by gap."""

from __future__ import annotations

import numpy as np
import polars as pl

from analyze.findings.states import STATES
from analyze.settings import Definitions
from analyze.timeline.intervals import Int64

IDLE_STATES = tuple(state for state in STATES if state.idle)


def states_of_gaps(gaps: pl.DataFrame, definitions: Definitions) -> dict[str, Int64]:
    """Nanoseconds of each gap by state; they sum to its length.

    Args:
        gaps: the partitioned gaps with their causes.
        definitions: limits.

    Source: `window_states`, which says the same of a whole window.
    """
    part = {name: gaps[name].to_numpy() for name in gaps.columns if name.endswith("_ns")}
    long_gap = part["end_ns"] - part["start_ns"] > definitions.long_gap_ns
    call_ns = (gaps["launch_end_ns"] - gaps["launch_start_ns"]).fill_null(0).to_numpy()
    slow_call = np.where(call_ns > definitions.long_gap_ns, part["launch_call_ns"], 0)
    not_begun = np.where(long_gap, part["launch_delay_ns"], 0)
    queued = np.where(long_gap, part["device_queue_ns"], 0)
    causes = {
        name: part[f"{name}_ns"] for name in ("sync", "pause", "allocator", "compilation", "first_use", "capture")
    }
    host = part["host_op_ns"] + part["host_other_ns"] + part["host_runtime_ns"]
    launching = host + part["launch_call_ns"] - slow_call + part["launch_delay_ns"] - not_begun
    return {
        "input-wait": part["host_data_loading_ns"],
        "sync": part["host_sync_ns"] + causes["sync"],
        "launch-bound": launching - sum(causes.values()),
        "pause": causes["pause"],
        "allocator": causes["allocator"],
        "compilation": causes["compilation"],
        "first-use": slow_call + causes["first_use"],
        "capture": causes["capture"],
        "kernel-gap": part["device_queue_ns"] - queued,
        "queued": queued + not_begun,
        "unlinked": part["unlinked_ns"],
        "profiler": part["profiler_ns"],
    }
