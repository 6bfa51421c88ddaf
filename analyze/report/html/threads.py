"""The lanes of the host: what each thread called, with blocking calls and data loading marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from analyze.arrays import Int64
from analyze.inert import printable
from analyze.report.html.columns import deltas
from analyze.report.html.lanes import Scale
from analyze.report.html.slices import NO_ROW, Merged, merge_runs, merge_to
from analyze.report.html.stacks import StackTree
from analyze.timeline import CallTree, Host
from analyze.trace import Trace, timed_rows

_SLICES = 120_000


def host_lanes(
    trace: Trace, host: Host, tree: CallTree, stacks: StackTree, scale: Scale
) -> tuple[list[dict[str, Any]], int]:
    """One table of calls per thread, and the limit below which calls are merged, in nanoseconds.

    A call is a start, a duration and a node of the stacks; a run of merged calls has minus their number for a node.

    Args:
        trace: the trace.
        host: its host side.
        tree: its calls.
        stacks: their nodes.
        scale: origin and names.
    """
    chosen = np.flatnonzero(tree.counted)
    start, end, thread = (tree.calls[name].to_numpy()[chosen] for name in ("start_ns", "end_ns", "thread"))
    merged = _merged(tree, chosen, start, end, thread)
    begin = np.concatenate((start[merged.kept], merged.start_ns))
    until = np.concatenate((end[merged.kept], merged.end_ns))
    node = np.concatenate((stacks.node[chosen[merged.kept]], -merged.count - 1))
    of = np.concatenate((thread[merged.kept], thread[merged.first]))
    order = np.lexsort((-until, begin, of))
    begin, until, node, of = begin[order], until[order], node[order], of[order]
    found = []
    for one in _in_order(trace, of, until - begin, _marked(host)):
        mine = of == one
        found.append(
            {
                "thread": one,
                "label": thread_label(trace, one),
                "start": deltas(begin[mine] - scale.origin_ns),
                "dur": (until[mine] - begin[mine]).tolist(),
                "node": node[mine].tolist(),
                "blocking": _spans(host.blocking, one, scale),
                "loading": _spans(host.loading, one, scale),
            }
        )
    return found, merged.limit_ns


def _in_order(trace: Trace, thread: Int64, dur_ns: Int64, marked: Int64) -> list[int]:
    """The threads: those that hold the steps first, then the busiest."""
    holds, busy = set(trace.steps["thread"].to_list()), np.bincount(thread, weights=dur_ns).tolist()
    known = np.unique(np.concatenate((thread, marked))).tolist()
    return sorted(known, key=lambda one: (one not in holds, -busy[one] if one < len(busy) else 0, one))


def _merged(tree: CallTree, chosen: Int64, start: Int64, end: Int64, thread: Int64) -> Merged:
    """The calls with runs of short ones merged that one call made."""
    dur = end - start
    caller = tree.caller[chosen]
    around = np.where(caller == NO_ROW, np.iinfo(np.int64).max, np.append(tree.dur_ns, 0)[caller])
    group = np.where(caller == NO_ROW, -1 - thread, caller)

    def merge(limit_ns: int) -> Merged:
        short = dur < limit_ns
        inner = short & (around < limit_ns)
        return merge_runs(start, end, group, np.flatnonzero(short & ~inner), np.flatnonzero(inner), limit_ns)

    return merge_to(_SLICES, len(chosen), merge)


def _marked(host: Host) -> Int64:
    """Threads with blocking calls or data loading."""
    threads: Int64 = pl.concat([host.blocking["thread"], host.loading["thread"]]).cast(pl.Int64).to_numpy()
    return threads


def _spans(rows: pl.DataFrame, thread: int, scale: Scale) -> dict[str, list[int]]:
    mine = timed_rows(rows.filter(pl.col("thread") == thread)).sort("start_ns")
    return {
        "start": deltas(mine["start_ns"].to_numpy() - scale.origin_ns),
        "dur": mine["dur_ns"].to_list(),
        "name": scale.names.numbers(mine["name"].cast(pl.String).to_list()),
    }


def thread_label(trace: Trace, thread: int) -> str:
    """A thread by its process and its own number."""
    who = trace.threads.row(thread, named=True)
    return printable(f"process {who['pid']}, thread {str(who['tid']).strip()}")
