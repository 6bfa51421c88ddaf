"""Host time of the first step or range before the device window begins: one extra line beside the ledger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from analyze.timeline import Host, Selection
from analyze.trace import Trace


@dataclass(frozen=True, slots=True)
class Lead:
    """What the host did from the start of the first step to the first activity of the window.

    Attributes:
        length_ns: how long it is.
        parts: nanoseconds by host part; they sum to the length.
    """

    length_ns: int
    parts: dict[str, int]


def measure_lead(trace: Trace, host: Host, selection: Selection, window_start_ns: int | None) -> Lead | None:
    """The lead of the selection, or of the first step; None without steps or when the device was busy before."""
    steps = selection.steps
    if window_start_ns is None:
        return None
    start, thread = selection.host_start_ns, None
    if steps.height:
        start, thread = int(steps["start_ns"][0]), int(steps["thread"][0])
    elif start is not None:
        thread = int(trace.ranges.filter(pl.col("start_ns") == start)["thread"][0])
    if start is None or thread is None or start >= window_start_ns:
        return None
    parts = host.partition(np.array([thread]), np.array([start]), np.array([window_start_ns]))
    return Lead(window_start_ns - start, {name: int(ns[0]) for name, ns in parts.items() if ns[0]})
