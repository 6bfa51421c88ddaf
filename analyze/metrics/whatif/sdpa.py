"""What PyTorch's attention function was given where it ran without a fused kernel."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.metrics.shapes import Inputs, read_inputs
from analyze.metrics.vocabulary import MATH
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import OP
from analyze.trace import Trace, matching
from analyze.trace.nesting import NO_ROW

_MASK = 3  # among the arguments, behind query, key and value


class MathAttention(Struct, frozen=True):
    """What `scaled_dot_product_attention` was given where it ran without a fused kernel.

    Attributes:
        share: of the time of unfused attention beside its products, 0..1.
        element: type of the query as recorded, of the inputs with most time; empty where not recorded.
        head_size: last dimension of the query, 0 where not recorded.
        mask: a mask was given; None where not recorded.
    """

    share: float
    element: str
    head_size: int
    mask: bool | None


def math_calls(trace: Trace, found: Attribution, gone: pl.DataFrame) -> MathAttention | None:
    """What the calls of PyTorch's unfused path around some activities were given, None without any such call."""
    ops = trace.ops
    wanted = matching(found.tree.calls["name"], f"^{MATH}$").to_numpy() & (found.tree.kind == OP)
    if not wanted.any():
        return None
    above = np.append(found.tree.nearest(wanted, found.around), NO_ROW)[gone["call"].fill_null(NO_ROW).to_numpy()]
    inside = gone.select("dur_ns").with_columns(call=pl.Series(above)).filter(pl.col("call") != NO_ROW)
    if not inside.height:
        return None
    rows = found.tree.calls["row"].gather(inside["call"])
    texts = {name: ops[name].cast(pl.String).gather(rows) for name in ("input_dims", "input_types")}
    kinds = inside.with_columns(**texts).group_by(*texts).agg(pl.col("dur_ns").sum())
    dims, types, _ = kinds.sort("dur_ns", *texts, descending=[True, False, False], nulls_last=True).row(0)
    share = int(inside["dur_ns"].sum()) / max(int(gone["dur_ns"].sum()), 1)
    return _given(share, read_inputs(dims, types))


def _given(share: float, inputs: Inputs | None) -> MathAttention:
    if inputs is None or not inputs.types or not inputs.shape(0):
        return MathAttention(share, "", 0, None)
    return MathAttention(share, inputs.types[0], inputs.shape(0)[-1], bool(inputs.shape(_MASK)))
