"""Backward ops meet the forward op whose gradient they compute, by autograd's sequence number."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from analyze.arrays import Int64
from analyze.timeline.calls import OP, CallTree
from analyze.timeline.host import spans
from analyze.trace import Trace, matching
from analyze.trace.nesting import NO_ROW

_KEY = ("process", "pid", "sequence", "operation")
_BACKWARD = re.compile(r"backwards?\d*$")
_FORWARD = re.compile(r"forward$")  # NllLossBackward0 belongs to aten::nll_loss_forward
_ENGINE_OP = r"^autograd::engine::|^torch::autograd::|Backward\d*$"
_MOSTLY = 0.75  # of a thread's time in ops: the engine's threads run callbacks besides, other threads forward passes


def around_through_autograd(trace: Trace, tree: CallTree) -> Int64:
    """What stands around each call: its caller, and for the calls of the backward engine their forward op.

    The engine runs on a thread of its own, without the modules and ops that the forward op stands in. Both record the
    sequence number; the forward op is the last of the node's name that began with it (an op that makes a node takes
    the next number) and was over before. Without such a name the forward op was not recorded: nodes of C++ extensions
    share their number with some earlier op. Numbers count per thread: where ops of several threads fit, none is taken.

    Source: the flow events `fwdbwd` that Kineto draws; they agree on all 1,665 pairs of the reference traces.
    """
    ops = _numbered(trace, tree)
    backward = ops.filter(pl.col("forward_thread").is_not_null())
    if not backward.height:
        return tree.caller
    forward = (
        ops.filter(pl.col("forward_thread").is_null())
        .sort("start_ns", "dur_ns", descending=[False, True], maintain_order=True)
        .group_by(_KEY, maintain_order=True)
        .agg(pl.col("thread").n_unique().alias("threads"), pl.col("call", "start_ns", "dur_ns").last())
        .filter(pl.col("threads") == 1)
    )
    start, ended = pl.col("start_ns_right"), pl.col("start_ns_right") + pl.col("dur_ns_right")
    pairs = backward.join(forward, on=_KEY, how="inner", nulls_equal=True)
    # Strictly earlier: so that who climbs from call to call always arrives.
    pairs = pairs.filter((ended <= pl.col("start_ns")) & (start < pl.col("start_ns")))
    origin = np.full(len(tree), NO_ROW, dtype=np.int64)
    origin[tree.survivor[pairs["call"].to_numpy()]] = tree.survivor[pairs["call_right"].to_numpy()]
    outer = np.append(tree.nearest(origin != NO_ROW), NO_ROW)[tree.caller]
    inside = (outer != NO_ROW) & (origin[outer] == origin)  # the engine's call and the node in it say the same
    around: Int64 = np.where((origin != NO_ROW) & ~inside, origin, tree.caller)
    return around


def engine_threads(trace: Trace) -> frozenset[int]:
    """The threads of the backward engine: what they do lies inside ops, and outside ops they wait for the next one.

    A thread that runs a backward pass besides its own work, as on the CPU, is none.
    """
    backward = trace.ops.filter(matching(trace.ops["name"], _ENGINE_OP))
    found = set[int]()
    for thread in backward["thread"].unique().to_list():
        mine = pl.col("thread") == thread
        if spans(backward.filter(mine)).total_ns > _MOSTLY * spans(trace.ops.filter(mine)).total_ns:
            found.add(int(thread))
    return frozenset(found - set(trace.steps["thread"].to_list()))


def _numbered(trace: Trace, tree: CallTree) -> pl.DataFrame:
    """The ops with a sequence number."""
    columns = ("start_ns", "dur_ns", "thread", "sequence", "forward_thread")
    name = pl.col("name").cast(pl.String).fill_null("")
    ops = trace.ops.select(*columns, name=name, call=pl.Series(tree.of_rows(OP, trace.ops.height), dtype=pl.Int64))
    ops = ops.filter((pl.col("call") != NO_ROW) & (pl.col("sequence") >= 0))
    who = trace.threads.select("thread", "process", "pid")
    names = ops["name"].unique()
    operations = pl.Series("operation", [_operation(name) for name in names], dtype=pl.String)
    stems = names.alias("name").to_frame().with_columns(operations)
    ops = ops.join(who, on="thread", how="left", maintain_order="left")
    return ops.join(stems, on="name", how="left", maintain_order="left")


def _operation(name: str) -> str:
    """What an op and the node of its gradient are both called: `aten::addmm_` and `AddmmBackward0` are `addmm`."""
    words = name.rpartition("::")[2].rpartition(" ")[2].replace("_", "").lower()
    return _FORWARD.sub("", _BACKWARD.sub("", words))
