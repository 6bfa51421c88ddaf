"""The host's side by op: calls, self and total time. All that a file without device records can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from analyze.blocks import Column, Kind, Section, Table
from analyze.timeline import union
from analyze.trace import Nesting, Trace

_OPS_LISTED = 20
_THREADS_LISTED = 20
_BRIEF_OPS = 10
_BRIEF_THREADS = 3


@dataclass(frozen=True, slots=True)
class Op:
    """Calls of one op.

    Attributes:
        name: op.
        count: how many calls.
        self_ns: time inside them and outside the ops that they called.
        total_ns: time inside them.
    """

    name: str
    count: int
    self_ns: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class HostThread:
    """One thread that ran ops.

    Attributes:
        label: process and thread as recorded.
        span_ns: first op start to last op end.
        covered_ns: time inside ops.
    """

    label: str
    span_ns: int
    covered_ns: int


@dataclass(frozen=True, slots=True)
class HostSide:
    """Ops and threads of a trace.

    Attributes:
        ops: most self time first.
        threads: most covered time first.
    """

    ops: tuple[Op, ...]
    threads: tuple[HostThread, ...]


def measure_host(trace: Trace, within: tuple[int, int] | None) -> HostSide:
    """Ops and threads, of the selection where there is one.

    An op that is still open when the recording stops counts with the time recorded for it.
    """
    ops = trace.ops.filter(pl.col("dur_ns").is_not_null() & pl.col("start_ns").is_not_null())
    if within is not None:
        ops = ops.filter(pl.col("start_ns").is_between(*within))
    if not ops.height:
        return HostSide((), ())
    start = ops["start_ns"].to_numpy()
    nest = Nesting.of(ops["thread"].cast(pl.Int64).to_numpy(), start, start + ops["dur_ns"].to_numpy())
    parent, dur = nest.parent, nest.end_ns - nest.start_ns
    # A child that sticks out of its parent shares only the time inside it.
    inside = np.minimum(nest.end_ns, nest.end_ns[np.maximum(parent, 0)]) - nest.start_ns
    below = np.zeros(len(dur), np.int64)
    np.add.at(below, parent[parent >= 0], inside[parent >= 0])
    own = np.empty(len(dur), np.int64)
    own[nest.order] = dur - below
    grouped = (
        ops.with_columns(self_ns=own)
        .group_by(pl.col("name").cast(pl.String).fill_null(""))
        .agg(count=pl.len(), self_ns=pl.col("self_ns").sum(), total_ns=pl.col("dur_ns").sum())
        .sort("self_ns", "name", descending=[True, False])
    )
    return HostSide(tuple(Op(**row) for row in grouped.iter_rows(named=True)), _threads(trace, ops))


def _threads(trace: Trace, ops: pl.DataFrame) -> tuple[HostThread, ...]:
    found = []
    for (thread,), rows in ops.group_by("thread", maintain_order=True):
        start = rows["start_ns"].to_numpy()
        end = start + rows["dur_ns"].to_numpy()
        who = trace.threads.row(int(thread), named=True)
        label = f"process {who['pid']}, thread {who['tid'].strip()}"
        found.append(HostThread(label, int(end.max() - start.min()), union(start, end).total_ns))
    return tuple(sorted(found, key=lambda t: (-t.covered_ns, t.label)))


def section(host: HostSide, *, brief: bool) -> Section:
    """Ops with most self time, and the threads they ran on; on one screen only where there is nothing else."""
    total = sum(op.self_ns for op in host.ops)
    ops = Table(
        title="Ops with most host time",
        columns=(
            Column("op", Kind.CODE),
            Column("count", Kind.COUNT),
            Column("self", Kind.TIME),
            Column("of op time", Kind.SHARE),
            Column("total", Kind.TIME),
        ),
        rows=tuple(
            (op.name, op.count, op.self_ns, op.self_ns / total if total else None, op.total_ns)
            for op in host.ops[:_OPS_LISTED]
        ),
        brief=_BRIEF_OPS if brief else 0,
        note="Host time includes the profiler's cost.",
        total=len(host.ops),
    )
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
    return Section("host", "Host", (ops, threads))
