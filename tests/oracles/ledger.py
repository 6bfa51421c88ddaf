"""The device-time ledger the slow, obvious way: cut the window at every time that occurs, and ask of each elementary
interval who owns it. Pure Python on plain rows, written from the definitions alone; it shares no code with analyze.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

SYNC = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize")
PROFILER = ("Activity Buffer Request", "Instrumentation", "Resource")


@dataclass(frozen=True)
class Row:
    """One row: kind is kernel, collective, memcpy, memset, api, op, range or overhead; times in ns."""

    kind: str
    name: str
    start: int
    dur: int
    thread: int = 0
    device: int = 0
    stream: int = 7
    correlation: int = 0

    @property
    def end(self) -> int:
        return self.start + max(self.dur, 0)


@dataclass
class Ledger:
    window: int = 0
    computation: int = 0
    communication: int = 0
    copy: int = 0
    idle: dict[str, int] = field(default_factory=dict)


def _inside(rows: list[Row], t: int) -> bool:
    return any(row.start <= t < row.end for row in rows)


def ledger(rows: list[Row], device: int) -> Ledger:
    """The ledger of one device."""
    work = [r for r in rows if r.kind in ("kernel", "collective", "memcpy", "memset") and r.device == device]
    owning = [r for r in work if r.dur > 0]
    if not owning:
        return Ledger()
    first, last = min(r.start for r in owning), max(r.end for r in owning)
    launches: dict[int, Row] = {}
    for row in rows:
        if row.kind == "api" and row.correlation and row.correlation not in launches:
            launches[row.correlation] = row
    blocking = [r for r in rows if r.kind == "api" and _blocks(r, rows)]
    loading = [r for r in rows if r.kind in ("range", "op") and "dataloader" in r.name.lower()]
    ops = [r for r in rows if r.kind == "op" and "dataloader" not in r.name.lower()]
    calls = [r for r in rows if r.kind == "api"]
    own_cost = [r for r in rows if r.kind == "overhead" and r.name in PROFILER]
    cuts = sorted({t for r in rows for t in (r.start, r.end) if first <= t <= last} | {first, last})
    result = Ledger(window=last - first)
    for a, b in pairwise(cuts):
        running = {r.kind for r in owning if r.start <= a < r.end}
        if "kernel" in running:
            result.computation += b - a
        elif "collective" in running:
            result.communication += b - a
        elif running:
            result.copy += b - a
        else:
            g0 = max((r.end for r in owning if r.end <= a), default=first)
            g1 = min(r.start for r in owning if r.start >= b)
            enders = [launches[r.correlation] for r in owning if r.start == g1 and r.correlation in launches]
            part = "unlinked_ns"
            if enders:
                launch = min(enders, key=lambda r: (r.start, r.end))
                part = _part(launch, g0, a, blocking, loading, calls, ops, own_cost)
            result.idle[part] = result.idle.get(part, 0) + b - a
    return result


def _part(
    launch: Row,
    g0: int,
    t: int,
    blocking: list[Row],
    loading: list[Row],
    calls: list[Row],
    ops: list[Row],
    own_cost: list[Row],
) -> str:
    if launch.end <= g0:
        return "device_queue_ns"
    if t >= launch.end:
        return "launch_delay_ns"
    if _inside(own_cost, t):
        return "profiler_ns"
    if t >= launch.start:
        return "launch_call_ns"
    for part, rows in (
        ("host_sync_ns", blocking),
        ("host_data_loading_ns", loading),
        ("host_runtime_ns", calls),
        ("host_op_ns", ops),
    ):
        if _inside([r for r in rows if r.thread == launch.thread], t):
            return part
    return "host_other_ns"


def _blocks(call: Row, rows: list[Row]) -> bool:
    if call.name in SYNC:
        return True
    if "memcpy" not in call.name.lower() or not call.correlation:
        return False
    first = next(r for r in rows if r.kind == "api" and r.correlation == call.correlation)
    copies = [
        r
        for r in rows
        if r.kind == "memcpy" and r.correlation == call.correlation and ("HtoD" in r.name or "DtoH" in r.name)
    ]
    return first is call and any(call.start <= r.end <= call.end for r in copies)
