"""Half-precision GEMMs whose sizes or addresses kept the library from kernels that load 16 bytes at once."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from analyze.gpus import Abilities
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.precision import ABILITIES, with_precision
from analyze.metrics.question import Question
from analyze.metrics.shapes import Inputs, read_inputs
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import OP
from analyze.trace import Trace

MULTIPLE = 8  # values of 2 bytes in a load of 16
_LISTED, _MATRIX = 5, 2
_FEW_VALUES = r"(?i)align[12](?:\D|$)|ldg[12](?:\D|$)"
# From Ampere on cuBLAS has kernels of its own for aligned operands; those of Turing say at most what they load.
_OLDER, _LOADS_MORE = r"(?i)cutlass_7\d_|(?:^|\s)(?:volta|turing)_", r"(?i)(?:align|ldg)(?:4|8|16)(?:\D|$)"
# Where the operands stand among an op's arguments.
_OPERANDS = {"aten::mm": 0, "aten::bmm": 0, "aten::matmul": 0, "aten::addmm": 1, "aten::baddbmm": 1}


class Unaligned(Struct, frozen=True):
    """GEMMs of one op on one set of input shapes.

    Attributes:
        op: name, empty where not recorded.
        input_dims: shapes as JSON text, empty where not recorded.
        sizes: of the product, those that alignment needs and that are no multiples of 8; empty where not known.
        count: kernels.
        sum_ns: their durations added up.
    """

    op: str
    input_dims: str
    sizes: tuple[int, ...]
    count: int
    sum_ns: int


class Alignment(Struct, frozen=True):
    """What kernel names say about the alignment of half-precision GEMMs.

    Attributes:
        count: GEMM kernels that load fewer values at once than the hardware can.
        sum_ns: their durations added up.
        share: of the added-up time of all activities, 0..1.
        worst: by op and shapes, most time first.
    """

    count: int
    sum_ns: int
    share: float
    worst: tuple[Unaligned, ...]


def measure_alignment(trace: Trace, found: Attribution, abilities: Abilities | None) -> Alignment:
    """The unaligned half-precision GEMMs on tensor cores."""
    work = with_precision(trace, found)
    half = (pl.col("category") == "gemm") & pl.col("precision").is_in(["fp16", "bf16"])
    named = work.filter(half & pl.col("tensor_core").fill_null(value=False)).with_columns(
        pl.col("name").cast(pl.String)
    )
    few = pl.col("name").str.contains(_FEW_VALUES)
    if abilities is not None and "bf16" in abilities.faster:
        few |= pl.col("name").str.contains(_OLDER) & ~pl.col("name").str.contains(_LOADS_MORE)
    rows = named.filter(few)
    total = int(rows["dur_ns"].sum())
    return Alignment(rows.height, total, total / found.total_ns if found.total_ns else 0.0, _worst(trace, found, rows))


def _worst(trace: Trace, found: Attribution, rows: pl.DataFrame) -> tuple[Unaligned, ...]:
    if not rows.height:
        return ()
    called = found.tree.calls.select(pl.when(pl.col("kind") == OP).then("row"))["row"].gather(rows["call"])
    dims = trace.ops["input_dims"].cast(pl.String).gather(called)
    grouped = (
        rows.select(pl.col("op").cast(pl.String).fill_null(""), "dur_ns", dims=dims.fill_null(""))
        .group_by("op", "dims")
        .agg(pl.len(), pl.col("dur_ns").sum())
        .sort("dur_ns", "op", "dims", descending=[True, False, False])
        .head(_LISTED)
    )
    return tuple(
        Unaligned(op, text, odd_sizes(op, read_inputs(text, "[]")), count, ns)
        for op, text, count, ns in grouped.iter_rows()
    )


def odd_sizes(op: str, inputs: Inputs | None) -> tuple[int, ...]:
    """Sizes of a product (M, K) x (K, N) that are no multiples of 8: K and N, and M only where those are."""
    if inputs is None or op not in _OPERANDS:
        return ()
    at = _OPERANDS[op]
    one, other = inputs.shape(at), inputs.shape(at + 1)
    if min(len(one), len(other)) < _MATRIX:
        return ()
    rows, inner, columns = one[-2], one[-1], other[-1]
    needed = tuple(dict.fromkeys(size for size in (inner, columns) if size % MULTIPLE))
    return needed or ((rows,) if rows % MULTIPLE else ())


QUESTION = Question("alignment", lambda a: measure_alignment(a.trace, a.ask(ATTRIBUTION), a.ask(ABILITIES)))
