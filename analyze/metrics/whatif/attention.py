"""Attention that is not fused: what runs on the device beside its products."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec.structs import replace

from analyze.metrics.vocabulary import MULTI_HEAD
from analyze.metrics.whatif.scenario import Scenario, WhatIfInputs, of_activities
from analyze.metrics.whatif.sdpa import math_calls
from analyze.timeline.calls import OP
from analyze.trace import matching
from analyze.trace.nesting import NO_ROW

_MOST = 0.5  # of the time
_BATCHED = ("aten::bmm", "aten::baddbmm", "aten::baddbmm_")
_BETWEEN = ("softmax", "elementwise", "reduction", "rng")  # of attention: what a fused kernel does on its way


def unfused_attention(inputs: WhatIfInputs) -> Scenario | None:
    """Softmax, masks and scaling of attention that is not fused; its products stay."""
    rows = inputs.rows.filter((pl.col("op_category") == "attention") & (pl.col("kind") == "kernel"))
    gone = rows.filter(pl.col("category").is_in(_BETWEEN))
    if not {"softmax", "gemm"} <= set(rows["category"]):
        gone = gone.clear()
    gone = pl.concat([gone, _attention_by_hand(inputs.rows)]).unique("at", keep="first", maintain_order=True)
    found = of_activities(gone, inputs.without(gone))
    origin = MULTI_HEAD if found and _averages_weights(inputs, gone) else ""
    return found and replace(found, sdpa=math_calls(inputs.trace, inputs.work, gone), origin=origin)


def _averages_weights(inputs: WhatIfInputs, gone: pl.DataFrame) -> bool:
    """Whether most of it is nn.MultiheadAttention's own op, which also sums the weights over the heads."""
    tree = inputs.work.tree
    wanted = matching(tree.calls["name"], f"^{MULTI_HEAD}$").to_numpy() & (tree.kind == OP)
    above = np.append(tree.nearest(wanted, inputs.work.around), NO_ROW)[gone["call"].fill_null(NO_ROW).to_numpy()]
    inside = gone.filter(pl.Series(above != NO_ROW, dtype=pl.Boolean))
    sums = (inside["category"] == "reduction").any()
    return sums and int(inside["dur_ns"].sum()) > _MOST * int(gone["dur_ns"].sum())


def _attention_by_hand(rows: pl.DataFrame) -> pl.DataFrame:
    """What runs on a stream between two batched products, where a softmax is among it and no other work.

    That is attention, whatever the module or the function around it is called.
    """
    kernels = rows.filter(pl.col("kind") == "kernel").sort("device", "stream", "start_ns", maintain_order=True)
    batched = (pl.col("category") == "gemm") & pl.col("op").fill_null("").is_in(_BATCHED)
    between = pl.col("category").is_in(_BETWEEN)
    stream = ("device", "stream")
    runs = kernels.with_columns(run=(~between).cum_sum().over(stream), batched=batched)
    ends = runs.filter(~between)
    closed = pl.col("batched") & pl.col("batched").shift(-1).over(stream).fill_null(value=False)
    inside = runs.filter(between).join(ends.filter(closed), on=[*stream, "run"], how="semi")
    soft = (pl.col("category") == "softmax").any().over(*stream, "run")
    return inside.filter(soft).select(rows.columns)
