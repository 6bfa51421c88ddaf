"""The gaps of a device with the state that owns each nanosecond of them: the ledger, gap by gap."""

from __future__ import annotations

import numpy as np
import polars as pl

from analyze.arrays import Int64
from analyze.findings.states import STATES, idle_states
from analyze.metrics.vocabulary import CAUSES
from analyze.settings import Definitions

IDLE_STATES = tuple(state for state in STATES if state.idle)


def states_of_gaps(gaps: pl.DataFrame, definitions: Definitions) -> dict[str, Int64]:
    """Nanoseconds of each gap by state; they sum to its length.

    Args:
        gaps: the partitioned gaps with their causes.
        definitions: limits.
    """
    part = {name: gaps[name].to_numpy() for name in gaps.columns if name.endswith("_ns")}
    long_gap = part["end_ns"] - part["start_ns"] > definitions.long_gap_ns
    idle_long = {name: np.where(long_gap, part[name], 0) for name in ("launch_delay_ns", "device_queue_ns")}
    call_ns = (gaps["launch_end_ns"] - gaps["launch_start_ns"]).fill_null(0).to_numpy()
    first_use = np.where(call_ns > definitions.long_gap_ns, part["launch_call_ns"], 0)
    return idle_states(part, idle_long, first_use, {name: part[name] for name in CAUSES})


def main_states(states: dict[str, Int64]) -> Int64:
    """The state with most of each gap, as an index into `IDLE_STATES`; the first one of equals.

    Args:
        states: see `states_of_gaps`.
    """
    amounts = np.array([states[state.id] for state in IDLE_STATES])
    found: Int64 = amounts.argmax(axis=0)
    return found
