"""Memory over time from `[memory]` rows: peak, who made what was alive then, what stays, and churn per step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.notices import Notice, NotMeasured
from analyze.trace import Trace
from analyze.units import plural

_HOST_TYPES = {0: "CPU", 2: "CPU (MKLDNN)", 5: "CPU (IDEEP)"}  # c10::DeviceType
_POINTS = 120
_NEVER = np.iinfo(np.int64).max
_WIDTHS = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
_NO_OP = "outside of ops"
_RECORD = "record with profile_memory=True"


class Allocation(Struct, frozen=True):
    """One allocation that was alive at the peak.

    Attributes:
        size_bytes: its size.
        time_ns: when it was made, on the file's own clock.
        op: innermost op around it on its thread, "outside of ops" without one.
        outlives: it was not freed before the recording ended.
    """

    size_bytes: int
    time_ns: int
    op: str
    outlives: bool


class Made(Struct, frozen=True):
    """Allocations of one op, in bytes."""

    op: str
    size_bytes: int
    count: int


class Churn(Struct, frozen=True):
    """What one step allocated and freed, in bytes; work on other threads in its time counts."""

    step: str
    allocated_bytes: int
    freed_bytes: int
    allocations: int


class MemoryUse(Struct, frozen=True):
    """The memory of one device as the profiler recorded it. Sizes in bytes, as the allocator counts them.

    Attributes:
        label: "GPU 0", "CPU".
        device_type: number of c10::DeviceType.
        device: device index, -1 for the host.
        events: allocations and frees.
        level_known: totals count memory from before the recording too. False on the host, where torch counts only
            what is allocated while it records, and in old files, whose curve is the lowest that never falls below 0.
        start_bytes: allocated before the first event.
        end_bytes: allocated after the last one.
        peak_bytes: most allocated.
        peak_time_ns: when that was first reached, on the file's own clock.
        peak_after_ns: how long after the device's first recorded event that is; the recording may begin well before it.
        peak_step: step around it, empty without one.
        peak_op: innermost op around it on its thread.
        reserved_peak_bytes: most reserved, None where not recorded.
        reserved_end_bytes: reserved at the end, None where not recorded.
        unmade_peak_bytes: of the peak, what no recorded allocation made: it is from before the recording.
        alive_at_peak: what was alive at the peak, by op, largest first.
        largest_at_peak: the largest allocations alive at the peak.
        outliving: allocations never freed in the recording, by op, largest first.
        outliving_bytes: all of them.
        churn: per step, or for the whole recording without steps.
        jumps: events before which the total changed by itself: rows are missing.
        allocated_points: allocated over time: start, the largest value of each of many equal parts, end.
        reserved_points: reserved likewise, empty where not recorded.
        parameters_bytes: of the model, as `capture` noted them; None where that is unknown.
        activations_bytes: peak beyond the start, where the parameters were in place before; None where that is unknown.
    """

    label: str
    device_type: int
    device: int
    events: int
    level_known: bool
    start_bytes: int
    end_bytes: int
    peak_bytes: int
    peak_time_ns: int
    peak_after_ns: int
    peak_step: str
    peak_op: str
    reserved_peak_bytes: int | None
    reserved_end_bytes: int | None
    unmade_peak_bytes: int
    alive_at_peak: tuple[Made, ...]
    largest_at_peak: tuple[Allocation, ...]
    outliving: tuple[Made, ...]
    outliving_bytes: int
    churn: tuple[Churn, ...]
    jumps: int
    allocated_points: tuple[int, ...]
    reserved_points: tuple[int, ...]
    parameters_bytes: int | None
    activations_bytes: int | None


class Memory(Struct, frozen=True):
    """The memory of every device with events, devices before the host; empty without `[memory]` rows."""

    devices: tuple[MemoryUse, ...]

    def notices(self) -> Iterator[Notice]:
        """Rows that are missing."""
        for use in self.devices:
            if use.jumps:
                text = (
                    f"{use.label}: before {plural(use.jumps, 'memory event')} the allocated total had changed by "
                    "itself: allocations of other threads were not recorded. They are in the curve and belong to no op."
                )
                yield Notice("memory-rows-missing", text, use.jumps)

    def not_measured(self) -> Iterator[NotMeasured]:
        """What the rows cannot answer."""
        if not self.devices:
            yield NotMeasured("memory", "no memory events", f"{_RECORD}, or capture")
        elif all(use.activations_bytes is None for use in self.devices):
            yield NotMeasured(
                "activations",
                "the file does not say how much of the memory are parameters",
                "record with capture, or with record(..., model=model), which note them",
            )


def measure_memory(trace: Trace, within: tuple[int, int] | None, top: int) -> Memory:
    """The memory of each device, of the selection where there is one.

    Args:
        trace: the trace.
        within: the selected time on the host, or None.
        top: how many single allocations to list.
    """
    rows = trace.memory.filter(pl.col("time_ns").is_not_null() & pl.col("size_bytes").is_not_null())
    if within is not None:
        rows = rows.filter(pl.col("time_ns").is_between(*within))
    if not rows.height:
        return Memory(())
    rows = rows.sort("time_ns", maintain_order=True).with_columns(
        op=_ops_around(trace, rows.sort("time_ns", maintain_order=True)),
        device_type=pl.col("device_type").fill_null(0),
        device=pl.col("device").fill_null(-1),
    )
    found = [
        _measure(trace, mine, int(kind), int(device), top)
        for (kind, device), mine in rows.group_by("device_type", "device", maintain_order=True)
    ]
    return Memory(tuple(sorted(found, key=lambda use: (use.device_type in _HOST_TYPES, use.device_type, use.device))))


def _ops_around(trace: Trace, rows: pl.DataFrame) -> pl.Series:
    names: pl.Series = trace.timed_ops.names(rows["thread"], rows["time_ns"]).cast(pl.String).fill_null(_NO_OP)
    return names


def _measure(trace: Trace, rows: pl.DataFrame, kind: int, device: int, top: int) -> MemoryUse:
    size, times = rows["size_bytes"].to_numpy(), rows["time_ns"].to_numpy()
    recorded = rows["allocated_bytes"].null_count() == 0
    level, start = _levels(rows, size, recorded=recorded)
    freed_at = _lifetimes(size, rows["address"].to_list())
    peak = int(level.argmax()) if level.max() > start else -1
    peak_bytes = max(start, int(level.max()))
    alive = _fitting(np.flatnonzero((size[: peak + 1] > 0) & (freed_at[: peak + 1] > peak)), size, peak_bytes)
    staying = np.flatnonzero((size > 0) & (freed_at == _NEVER))
    at = max(peak, 0)
    reserved = rows["reserved_bytes"].to_numpy() if _reserves(rows, kind) else None
    known = recorded and kind not in _HOST_TYPES
    parameters = _parameters(trace)
    return MemoryUse(
        label=_HOST_TYPES.get(kind, f"GPU {device}"),
        device_type=kind,
        device=device,
        events=rows.height,
        level_known=known,
        start_bytes=start,
        end_bytes=int(level[-1]),
        peak_bytes=peak_bytes,
        peak_time_ns=int(times[at]),
        peak_after_ns=int(times[at] - times[0]),
        peak_step=_step_around(trace, int(times[at])),
        peak_op=rows["op"][at],
        reserved_peak_bytes=int(reserved.max()) if reserved is not None else None,
        reserved_end_bytes=int(reserved[-1]) if reserved is not None else None,
        unmade_peak_bytes=peak_bytes - int(size[alive].sum()),
        alive_at_peak=_made(rows, alive),
        largest_at_peak=_largest(rows, alive, freed_at, top),
        outliving=_made(rows, staying),
        outliving_bytes=int(size[staying].sum()),
        churn=tuple(_churn(trace, size, times)),
        jumps=int((np.diff(level) != size[1:]).sum()) if recorded else 0,
        allocated_points=_points(times, level, start),
        reserved_points=_points(times, reserved, int(reserved[0])) if reserved is not None else (),
        parameters_bytes=parameters,
        activations_bytes=_activations(parameters, peak_bytes, start, known=known),
    )


def _levels(rows: pl.DataFrame, size: Int64, *, recorded: bool) -> tuple[Int64, int]:
    """Allocated bytes after each event, and before the first, at least 0: a host's total can lack earlier memory."""
    if recorded:
        level = rows["allocated_bytes"].to_numpy()
        return level, max(0, int(level[0] - size[0]))
    total = np.cumsum(size)
    start = max(0, -int(total.min()))
    return total + start, start


def _reserves(rows: pl.DataFrame, kind: int) -> bool:
    """The host reserves nothing: its column holds zeros."""
    return kind not in _HOST_TYPES and rows["reserved_bytes"].null_count() == 0


def _lifetimes(size: Int64, addresses: list[int | None]) -> Int64:
    """Per allocation the position of its free, `_NEVER` without one."""
    freed_at = np.full(len(size), _NEVER, np.int64)
    still: dict[int | None, int] = {}
    for i, (amount, address) in enumerate(zip(size.tolist(), addresses, strict=True)):
        if amount > 0:
            still[address] = i
        elif amount < 0:
            made = still.pop(address, None)
            if made is not None:
                freed_at[made] = i
    return freed_at


def _fitting(alive: Int64, size: Int64, most: int) -> Int64:
    """The latest of some allocations that add up to so much: what is beyond it was freed, and the free not recorded."""
    together = np.cumsum(size[alive][::-1])
    return alive[len(alive) - int(np.searchsorted(together, most, side="right")) :]


def _made(rows: pl.DataFrame, chosen: Int64) -> tuple[Made, ...]:
    grouped = (
        rows[chosen]
        .group_by("op")
        .agg(size_bytes=pl.col("size_bytes").sum(), count=pl.len().cast(pl.Int64))
        .sort("size_bytes", "count", "op", descending=[True, True, False])
    )
    return tuple(Made(**row) for row in grouped.iter_rows(named=True))


def _largest(rows: pl.DataFrame, alive: Int64, freed_at: Int64, top: int) -> tuple[Allocation, ...]:
    size = rows["size_bytes"].to_numpy()
    order = alive[np.lexsort((alive, -size[alive]))][:top]
    picked = rows.select("size_bytes", "time_ns", "op")[order]
    return tuple(
        Allocation(amount, time, op, outlives=bool(freed_at[i] == _NEVER))
        for (amount, time, op), i in zip(picked.iter_rows(), order.tolist(), strict=True)
    )


def _step_around(trace: Trace, time_ns: int) -> str:
    steps = trace.steps.filter((pl.col("start_ns") <= time_ns) & (time_ns < pl.col("start_ns") + pl.col("wall_ns")))
    return str(steps["name"][0]) if steps.height else ""


def _churn(trace: Trace, size: Int64, times: Int64) -> Iterator[Churn]:
    def amounts(name: str, mine: Int64) -> Churn:
        made = mine[mine > 0]
        return Churn(name, int(made.sum()), int(-mine[mine < 0].sum()), len(made))

    for step in trace.steps.iter_rows(named=True):
        inside = (times >= step["start_ns"]) & (times < step["start_ns"] + step["wall_ns"])
        if inside.any():
            yield amounts(str(step["name"]), size[inside])
    if not trace.steps.height:
        yield amounts("whole recording", size)


def _points(times: Int64, level: Int64, start: int) -> tuple[int, ...]:
    """Start, the largest value in each equal part of the time, end; a part without events keeps its level."""
    span = int(times[-1] - times[0])
    parts = min(_POINTS, len(times))
    edges = times[0] + np.arange(1, parts + 1, dtype=np.int64) * span // parts
    stops = np.searchsorted(times, edges, side="right")
    found, before, low = [start], start, 0
    for high in stops.tolist():
        here = max([before, *([int(level[low:high].max())] if high > low else [])])
        before, low = (int(level[high - 1]), high) if high > low else (before, low)
        found.append(here)
    return (*found, int(level[-1]))


def _parameters(trace: Trace) -> int | None:
    recorded = trace.metadata.recorded
    if recorded is not None and recorded.parameter_bytes is not None:
        return recorded.parameter_bytes
    if recorded is None or recorded.parameter_count is None:
        return None
    width = 4 if recorded.amp else _WIDTHS.get(recorded.precision)
    return recorded.parameter_count * width if width else None


def _activations(parameters: int | None, peak: int, start: int, *, known: bool) -> int | None:
    """What the run itself took at the peak; only where the parameters are seen to be in the start, or known not to be.

    On the host nothing from before the recording counts, so the whole peak is the run's own.
    """
    if parameters is None:
        return None
    if not known:
        return peak - start
    return peak - start if start >= parameters else None
