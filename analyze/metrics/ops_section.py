"""How ops, and the threads they ran on, are told."""

from __future__ import annotations

from analyze.blocks import Block, Cell, Column, Kind, Section, Stat, Table
from analyze.metrics.ops import HostSide, Op
from analyze.units import duration

_OPS_LISTED = 30
_THREADS_LISTED = 20
_BRIEF_OPS = 10
_BRIEF_THREADS = 3
_WHY_THEY_DIFFER = (
    "Neither sum is the GPU's busy time: device time counts overlapping activities twice and leaves out those without "
    "a known op; CPU time runs beside the device and adds up over threads"
)


def section(host: HostSide, busy_ns: int | None, *, brief: bool) -> Section:
    """Ops with most time, and the threads they ran on; on one screen only where there is nothing else.

    Args:
        host: the ops in the order to list them.
        busy_ns: busy time of all devices, None without device records.
        brief: the tables belong on a one-screen report.
    """
    threads = Table(
        title="Threads that ran ops",
        columns=(
            Column("thread", Kind.CODE),
            Column("inside ops", Kind.TIME),
            Column("of its span", Kind.SHARE),
            Column("span", Kind.TIME),
        ),
        rows=tuple(
            (t.label, t.covered_ns, t.covered_ns / t.span_ns if t.span_ns else None, t.span_ns)
            for t in host.threads[:_THREADS_LISTED]
        ),
        brief=_BRIEF_THREADS if brief else 0,
        total=len(host.threads),
    )
    blocks: tuple[Block, ...] = (_host_table(host, brief=brief), threads)
    if busy_ns is not None:
        blocks = (_totals(host, busy_ns), _device_table(host), _host_table(host, brief=False), threads)
    return Section("host", "Ops", (*blocks, *_memory_table(host)))


def _totals(host: HostSide, busy_ns: int) -> Stat:
    text = (
        f"self device time {duration(host.self_device_ns)} in all, self CPU time {duration(host.self_cpu_ns)}; the GPU "
        f"is busy for {duration(busy_ns)}. {_WHY_THEY_DIFFER}"
    )
    return Stat("Ops", text, brief=False)


def _named(op: Op) -> str:
    mark = " (wrapper)" if op.wrapper else ""
    return f"{op.name}{mark} {op.input_dims}".rstrip()


def _host_table(host: HostSide, *, brief: bool) -> Table:
    ops = [op for op in host.ops if op.kind != "memory"]
    if host.device_ns:
        ops.sort(key=lambda op: -op.self_cpu_ns)
    return Table(
        title="Ops with most host time" if host.device_ns or not brief else "Ops on the host",
        columns=(
            Column("op", Kind.CODE),
            Column("count", Kind.COUNT),
            Column("self", Kind.TIME),
            Column("of self CPU time", Kind.SHARE),
            Column("total", Kind.TIME),
        ),
        rows=tuple(
            (_named(op), op.calls, op.self_cpu_ns, _share(op.self_cpu_ns, host.self_cpu_ns), op.total_cpu_ns)
            for op in ops[:_OPS_LISTED]
        ),
        brief=_BRIEF_OPS if brief else 0,
        note="Host time includes the profiler's cost. A wrapper does next to nothing itself.",
        total=len(ops),
    )


def _device_table(host: HostSide) -> Table:
    ops = [op for op in host.ops if op.total_device_ns]
    return Table(
        title="Ops by device time",
        columns=(
            Column("op", Kind.CODE),
            Column("count", Kind.COUNT),
            Column("self", Kind.TIME),
            Column("of activity time", Kind.SHARE),
            Column("total", Kind.TIME),
        ),
        rows=tuple(
            (_named(op), op.calls, op.self_device_ns, _share(op.self_device_ns, host.device_ns), op.total_device_ns)
            for op in ops[:_OPS_LISTED]
        ),
        note="Self is what an op launched itself, total includes what was launched in it. Totals of nested ops repeat.",
        total=len(ops),
    )


def _memory_table(host: HostSide) -> tuple[Table, ...]:
    ops = [op for op in host.ops if op.self_cpu_memory_bytes or op.self_device_memory_bytes]
    if not ops:
        return ()
    ops.sort(key=lambda op: -abs(op.self_cpu_memory_bytes) - abs(op.self_device_memory_bytes))
    rows: list[tuple[Cell, ...]] = [
        (_named(op), op.self_device_memory_bytes, op.device_memory_bytes, op.self_cpu_memory_bytes, op.cpu_memory_bytes)
        for op in ops[:_OPS_LISTED]
    ]
    heads = ("device, self", "device, total", "host, self", "host, total")
    note = "Allocated less freed during the calls, on any thread; negative where more was freed."
    columns = (Column("op", Kind.CODE), *(Column(head, Kind.MEMORY) for head in heads))
    return (Table("Memory by op", columns, tuple(rows), note=note, total=len(ops)),)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
