"""Ops with host time, device time and memory: the table of `key_averages()`, from the trace alone."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.blocks import Block, Cell, Column, Kind, Section, Stat, Table
from analyze.metrics.device_time import DEVICES, HEADLINE
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.question import Answers, Question
from analyze.metrics.shapes import flops_of, read_inputs
from analyze.notices import NotMeasured
from analyze.settings import OpsView
from analyze.timeline import CallTree, union
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import FRAME, KINDS, OP
from analyze.trace import Trace, timed_rows
from analyze.units import duration

# c10::DeviceType: CPU, MKLDNN, IDEEP; CUDA, HIP, XPU, PrivateUse1.
_HOST_TYPES, _DEVICE_TYPES = (0, 2, 5), (1, 6, 12, 20)
_MEMORY = "[memory]"
_WRAPPER_SELF, _WRAPPER_TOTAL = 0.1, 0.01  # of its own total, of all host time
_INPUTS = ("input_dims", "input_types", "concrete_inputs")
_AMOUNTS = (
    "self_cpu_ns",
    "total_cpu_ns",
    "self_device_ns",
    "total_device_ns",
    "self_cpu_memory_bytes",
    "cpu_memory_bytes",
    "self_device_memory_bytes",
    "device_memory_bytes",
)

_OPS_LISTED = 30
_THREADS_LISTED = 20
_BRIEF_OPS = 10
_BRIEF_THREADS = 3
_WHY_THEY_DIFFER = (
    "Neither sum is the GPU's busy time: device time counts overlapping activities twice and leaves out those without "
    "a known op; CPU time runs beside the device and adds up over threads"
)


class Op(Struct, frozen=True):
    """Calls of one name.

    Attributes:
        name: op, range or API call; ranges of steps share one name; `[memory]` for memory events outside all calls.
        kind: op, range, api or memory.
        input_dims: shapes of the inputs as JSON text, empty unless grouped by shape.
        calls: how many.
        self_cpu_ns: host time inside them and outside the calls in them.
        total_cpu_ns: host time inside them.
        self_device_ns: device time of the activities that they launched themselves.
        total_device_ns: the same with the calls in them.
        self_cpu_memory_bytes: host memory allocated less freed inside them and outside the calls in them.
        cpu_memory_bytes: the same with the calls in them.
        self_device_memory_bytes: device memory likewise.
        device_memory_bytes: the same with the calls in them.
        flops: of products, convolutions and attention with recorded shapes; None otherwise.
        wrapper: it does nothing itself: little self time, in both senses, of a large total.
    """

    name: str
    kind: str
    input_dims: str
    calls: int
    self_cpu_ns: int
    total_cpu_ns: int
    self_device_ns: int
    total_device_ns: int
    self_cpu_memory_bytes: int
    cpu_memory_bytes: int
    self_device_memory_bytes: int
    device_memory_bytes: int
    flops: int | None
    wrapper: bool


class HostThread(Struct, frozen=True):
    """One thread that ran ops.

    Attributes:
        label: process and thread as recorded.
        span_ns: first op start to last op end.
        covered_ns: time inside ops.
    """

    label: str
    span_ns: int
    covered_ns: int


class HostSide(Struct, frozen=True):
    """Ops and threads of a trace.

    Attributes:
        ops: in the order that was asked for.
        threads: most covered time first.
        self_cpu_ns: self time of all ops, ranges and API calls together.
        self_device_ns: device time of all activities whose op is known.
        device_ns: device time of all activities.
    """

    ops: tuple[Op, ...]
    threads: tuple[HostThread, ...]
    self_cpu_ns: int
    self_device_ns: int
    device_ns: int


def measure_host(trace: Trace, found: Attribution, within: tuple[int, int] | None, view: OpsView) -> HostSide:
    """Ops and threads, of the selection where there is one.

    The rules are those of `key_averages()`, so that the figures equal it on a trace exported in the same process: a
    call belongs to the innermost call that holds it entirely; Python frames take part in the nesting and are not
    listed; memory events count for every call around them in time. An op that is still open when the recording stops
    counts with the time recorded for it.

    Source: torch.autograd.profiler_util.
    """
    tree = found.tree
    rows = _amounts(trace, found)
    kept = tree.counted & (tree.kind != FRAME)
    if within is not None:
        start = tree.calls["start_ns"].to_numpy()
        kept &= (start >= within[0]) & (start <= within[1])
    rows = rows.with_columns(_inputs(trace, tree)).filter(pl.Series(kept))
    total = int(rows["self_cpu_ns"].sum())
    ops = [_op(row, total) for row in _grouped(rows, by_shape=view.by_shape).iter_rows(named=True)]
    outside = _outside(trace, tree) if within is None else None
    ops += [outside] if outside else []
    return HostSide(
        _sorted(ops, view.sort or ("self_device" if found.total_ns else "self_cpu")),
        _threads(trace, within),
        total,
        int(found.device_ns[kept].sum()),
        found.total_ns,
    )


def _amounts(trace: Trace, found: Attribution) -> pl.DataFrame:
    """One row per call with everything that is added up."""
    tree, dur = found.tree, found.tree.dur_ns
    device = found.device_ns
    amounts = {
        "self_cpu_ns": np.maximum(dur - tree.children_sum(dur), 0),
        "total_cpu_ns": dur,
        "self_device_ns": device,
        "total_device_ns": tree.subtree_sum(device),
    }
    for name, types in (("cpu_memory_bytes", _HOST_TYPES), ("device_memory_bytes", _DEVICE_TYPES)):
        memory = _memory_within(trace, tree, types)
        amounts[f"self_{name}"] = memory - tree.children_sum(memory)
        amounts[name] = memory
    return tree.calls.select("name", "kind", "row").with_columns(pl.Series(k, v) for k, v in amounts.items())


def _memory_within(trace: Trace, tree: CallTree, types: tuple[int, ...]) -> Int64:
    """Bytes per call of the memory events from its start to its end, both included, on any thread."""
    events = trace.memory.filter(pl.col("device_type").is_in(types)).sort("time_ns")
    times = events["time_ns"].to_numpy()
    before = np.concatenate(([0], np.cumsum(events["size_bytes"].fill_null(0).to_numpy()))).astype(np.int64)
    low = np.searchsorted(times, tree.calls["start_ns"].to_numpy(), side="left")
    high = np.searchsorted(times, tree.calls["end_ns"].to_numpy(), side="right")
    return before[high] - before[low]


def _outside(trace: Trace, tree: CallTree) -> Op | None:
    """Memory events outside all calls, as the row that `key_averages()` has for them."""
    order = np.argsort(tree.calls["start_ns"].to_numpy(), kind="stable")
    start = tree.calls["start_ns"].to_numpy()[order]
    reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(tree.calls["end_ns"].to_numpy()[order])))
    times = trace.memory["time_ns"].to_numpy()
    events = trace.memory.filter(pl.Series(reach[np.searchsorted(start, times, side="right")] < times))
    if not events.height:
        return None
    cpu, device = (
        int(events.filter(pl.col("device_type").is_in(types))["size_bytes"].sum())
        for types in (_HOST_TYPES, _DEVICE_TYPES)
    )
    return Op(_MEMORY, "memory", "", events.height, 0, 0, 0, 0, cpu, cpu, device, device, None, wrapper=False)


def _inputs(trace: Trace, tree: CallTree) -> list[pl.Series]:
    """Shapes, types and arguments per call, null for what is no op."""
    rows = (
        pl.Series(np.where(tree.kind == OP, tree.calls["row"].to_numpy(), -1))
        if len(tree)
        else pl.Series([], dtype=pl.Int64)
    )
    at = rows.set(rows < 0, None)
    if not trace.ops.height:
        empty = pl.Series([None] * len(tree), dtype=pl.String)
        return [empty.alias(name) for name in _INPUTS]
    return [trace.ops[name].gather(at) for name in _INPUTS]


def _grouped(rows: pl.DataFrame, *, by_shape: bool) -> pl.DataFrame:
    """The rows added up by name and kind, and by shape where that is asked for."""
    alike = rows.group_by("name", "kind", *_INPUTS).agg(pl.len().alias("calls"), pl.col(_AMOUNTS).sum())
    alike = alike.with_columns(pl.col("name", *_INPUTS).cast(pl.String))
    alike = alike.with_columns(flops=_flops(alike) * alike["calls"])
    known = pl.col("flops").is_not_null().any()
    sums = [pl.col("calls", *_AMOUNTS).sum(), pl.when(known).then(pl.col("flops").sum())]
    shape = pl.col("input_dims").fill_null("") if by_shape else pl.lit("").alias("input_dims")
    return alike.group_by("name", "kind", shape).agg(sums)


def _flops(alike: pl.DataFrame) -> pl.Series:
    """Of one call each, null where not known."""
    found = [
        flops_of(str(name), read_inputs(*inputs)) if kind == OP else None
        for name, kind, *inputs in alike.select("name", "kind", *_INPUTS).iter_rows()
    ]
    return pl.Series(found, dtype=pl.Int64)


def _op(row: dict[str, object], total_ns: int) -> Op:
    amounts = {name: int(row[name]) for name in _AMOUNTS}  # type: ignore[call-overload]
    wraps_host = amounts["self_cpu_ns"] < _WRAPPER_SELF * amounts["total_cpu_ns"]
    wraps_device = amounts["self_device_ns"] <= _WRAPPER_SELF * amounts["total_device_ns"]
    large = amounts["total_cpu_ns"] > _WRAPPER_TOTAL * total_ns
    return Op(
        name=str(row["name"]),
        kind=KINDS[row["kind"]],  # type: ignore[call-overload]
        input_dims=str(row["input_dims"]),
        calls=int(row["calls"]),  # type: ignore[call-overload]
        flops=row["flops"],  # type: ignore[arg-type]
        wrapper=row["kind"] == OP and large and wraps_host and wraps_device,
        **amounts,
    )


# Where the chosen number is the same these decide, and names last: a report shows the same rows under any names.
_ORDER = (
    "self_cpu_ns", "total_cpu_ns", "self_device_ns", "total_device_ns", "calls", "self_cpu_memory_bytes",
    "cpu_memory_bytes", "self_device_memory_bytes", "device_memory_bytes",
)  # fmt: skip


def _sorted(ops: list[Op], key: str) -> tuple[Op, ...]:
    field = {"calls": "calls", "self_cpu_memory": "self_cpu_memory_bytes", "cpu_memory": "cpu_memory_bytes"}
    name = field.get(key, f"{key}_ns")
    numbers = attrgetter(name, *_ORDER)
    return tuple(sorted(ops, key=lambda op: (*(-n for n in numbers(op)), op.name, op.kind, op.input_dims)))


def _threads(trace: Trace, within: tuple[int, int] | None) -> tuple[HostThread, ...]:
    ops = timed_rows(trace.ops)
    if within is not None:
        ops = ops.filter(pl.col("start_ns").is_between(*within))
    found = []
    for (thread,), rows in ops.group_by("thread", maintain_order=True):
        start = rows["start_ns"].to_numpy()
        end = start + rows["dur_ns"].to_numpy()
        who = trace.threads.row(int(thread), named=True)
        label = f"process {who['pid']}, thread {who['tid'].strip()}"
        found.append(HostThread(label, int(end.max() - start.min()), union(start, end).total_ns))
    return tuple(sorted(found, key=lambda t: (-t.covered_ns, t.label)))


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


def _section(answers: Answers) -> Section | None:
    host, main = answers.ask(QUESTION), answers.ask(HEADLINE)
    if main is None:
        return section(host, None, brief=True)
    return section(host, sum(d.busy_ns for d in answers.ask(DEVICES)), brief=False) if host.ops else None


def _not_measured(answers: Answers) -> Iterator[NotMeasured]:
    if not answers.trace.ops.height:
        yield NotMeasured("ops", "no framework operators", "record with activities=[CPU, CUDA]")


QUESTION = Question(
    "ops",
    lambda a: measure_host(a.trace, a.ask(ATTRIBUTION), a.selection.host_interval, a.view),
    answer=HostSide,
    section=_section,
    without_device=True,
    on_screen=False,
    not_measured=_not_measured,
)
