"""Amounts over time as steps: the depth of the launch queue, and memory."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.trace import Trace

_POINTS = 20_000


class Steps(Struct, frozen=True):
    """An amount that changes at instants.

    Attributes:
        time_ns: instants, in order.
        value: the amount from there on.
        part_ns: length of the equal parts of which only the largest value was kept; 0 where all were.
    """

    time_ns: Int64
    value: Int64
    part_ns: int


def queue_depth(activities: pl.DataFrame) -> Steps:
    """Linked activities that were launched and have not begun.

    Args:
        activities: those of one device.
    """
    waiting = activities.filter(
        pl.col("timed") & pl.col("launch").is_not_null() & (pl.col("start_ns") >= pl.col("launch_start_ns"))
    )
    times = np.concatenate((waiting["start_ns"].to_numpy(), waiting["launch_start_ns"].to_numpy()))
    change = np.repeat(np.array([-1, 1]), waiting.height)
    order = np.argsort(times, kind="stable")
    return _reduced(times[order], np.cumsum(change[order]))


def memory_over_time(trace: Trace, device_type: int, device: int, column: str) -> Steps | None:
    """One of the allocator's totals of a device, None where the file does not hold it.

    Args:
        trace: the trace.
        device_type: number of c10::DeviceType.
        device: device index.
        column: `allocated_bytes` or `reserved_bytes`.
    """
    rows = trace.memory.filter(
        (pl.col("device_type").fill_null(0) == device_type)
        & (pl.col("device").fill_null(-1) == device)
        & pl.col("time_ns").is_not_null()
        & pl.col(column).is_not_null()
    ).sort("time_ns", maintain_order=True)
    if not rows.height or not (rows[column] != 0).any():
        return None
    return _reduced(rows["time_ns"].to_numpy(), rows[column].to_numpy())


def _reduced(times: Int64, values: Int64) -> Steps:
    """One value per instant, the last one; with too many instants the largest value of each of many equal parts."""
    last = np.append(np.diff(times) > 0, True)[: len(times)]
    times, values = times[last], values[last]
    if len(times) <= _POINTS:
        return Steps(times, values, 0)
    part = int(times[-1] - times[0]) // _POINTS + 1
    number = (times - times[0]) // part
    first = np.flatnonzero(np.diff(number, prepend=-1))
    largest = np.maximum.reduceat(np.maximum(values, np.concatenate((values[:1], values[:-1]))), first)
    return Steps(times[0] + number[first] * part, largest, part)
