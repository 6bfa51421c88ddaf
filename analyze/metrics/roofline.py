"""Achieved FLOP/s and bytes/s of ops with recorded shapes, against the GPU's peaks: a position under the roofline."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Bool, Int64
from analyze.blocks import Column, Kind, Section, Table
from analyze.gpus import Gpu
from analyze.metrics.device_time import HEADLINE
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.precision import GPU, HELPERS, NO_PRECISION, with_precision
from analyze.metrics.question import Answers, Question
from analyze.metrics.shapes import bytes_of, flops_of, read_inputs
from analyze.notices import NotMeasured
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import OP
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW

_LISTED = 20
_NAME_LIMIT = 200
_FAR_BELOW = 0.5  # of both peaks: work that is short and far below them pays for its launch
_NEITHER = 0.2  # of both peaks: so far below them latency, too few blocks or the algorithm limits, no peak
_GIGA, _TERA = 10**9, 10**12


class Rate(Struct, frozen=True):
    """Calls of one op with one set of input shapes and types.

    Attributes:
        op: name.
        input_dims: shapes as JSON text.
        precision: of its kernels with most time; empty for ops without products.
        calls: how many with device time.
        device_ns: durations of their activities added up.
        flops: floating-point operations of all calls, None for ops without products.
        size_bytes: traffic of all calls if each tensor is read or written once: a lower bound; None where unknown.
        flops_per_s: achieved, None without `flops`.
        bytes_per_s: achieved, None without `size_bytes`.
        flops_share: of the GPU's dense peak in that precision, 0..1; None where it is not known.
        bytes_share: of the GPU's memory bandwidth; above 1 where caches serve it; None where it is not known.
        limited_by: "compute" or "memory" by the side of the roofline's ridge that the op lies on, "launch" where
            calls are shorter than `short_kernel_ns` and far below both peaks, "neither" where longer ones reach not
            even a fifth of one; empty where it is not known.
    """

    op: str
    input_dims: str
    precision: str
    calls: int
    device_ns: int
    flops: int | None
    size_bytes: int | None
    flops_per_s: float | None
    bytes_per_s: float | None
    flops_share: float | None
    bytes_share: float | None
    limited_by: str


class Roofline(Struct, frozen=True):
    """Rates of one trace.

    Attributes:
        gpu: model whose peaks are used; empty where it is not known.
        rates: most device time first.
        covered_share: share of the added-up time of all activities that the rates cover, 0..1.
    """

    gpu: str
    rates: tuple[Rate, ...]
    covered_share: float

    def not_measured(self) -> tuple[NotMeasured, ...]:
        """Why there is no rate, or no peak to compare it with."""
        if not self.rates:
            how = "record with record_shapes=True, as capture does"
            return (NotMeasured("roofline", "no op with both recorded input shapes and device time", how),)
        if not self.gpu:
            how = "add the GPU to gpus.toml with its data sheet's figures"
            return (NotMeasured("roofline-share", "the GPU's peaks are not known", how),)
        return ()


def measure_roofline(trace: Trace, found: Attribution, gpu: Gpu | None, short_ns: int) -> Roofline:
    """Rates of products, convolutions, attention, and of elementwise, normalization and copy ops.

    The outermost op that stands for the work gets all device time inside it: a convolution's layout copies count for
    the convolution. Products of which only the helpers were recorded (a cut file) have no rate.
    """
    tree = found.tree
    owner, multiplies = _standing_op(trace, found)
    call = found.work["call"].fill_null(NO_ROW).to_numpy()
    at = np.where(_crosses_the_bus(found.work), NO_ROW, np.append(owner, NO_ROW)[call])
    works = (pl.col("kind").cast(pl.String) == "kernel") & ~pl.col("family").is_in(HELPERS).fill_null(value=False)
    work = found.work.select(
        "dur_ns", works=works | pl.Series(~np.append(multiplies, False)[call]), at=pl.Series(at)
    ).filter(pl.col("at") != NO_ROW)
    if not work.height:
        return Roofline(gpu.name if gpu else "", (), 0.0)
    times = work.group_by("at").agg(pl.col("dur_ns").sum(), pl.col("works").any()).filter("works").drop("works")
    ops = trace.ops[tree.calls["row"].gather(times["at"])].select("name", *_INPUTS).cast(pl.String)
    grouped = (
        pl.concat([times, ops], how="horizontal")
        .group_by("name", *_INPUTS)
        .agg(calls=pl.len(), device_ns=pl.col("dur_ns").sum(), one=pl.col("at").min())
        .sort("device_ns", "name", *_INPUTS, descending=[True, *(False for _ in _KEY)])
    )
    precision = _precision_by_op(trace, found, owner)
    rates = tuple(_rate(row, precision.get(_key(row)), gpu, short_ns) for row in grouped.iter_rows(named=True))
    kept = tuple(r for r in rates if r.device_ns and (r.flops_per_s or r.bytes_per_s))
    covered = sum(r.device_ns for r in kept) / found.total_ns if found.total_ns else 0.0
    return Roofline(gpu.name if gpu else "", kept, covered)


def _crosses_the_bus(work: pl.DataFrame) -> Bool:
    """Copies to and from the host: the device's memory bandwidth is no measure for them."""
    inside = pl.col("name").cast(pl.String).str.contains("DtoD|Device -> Device")
    crosses = (pl.col("kind").cast(pl.String) == "memcpy") & ~inside
    mask: Bool = work.select(crosses.fill_null(value=False)).to_series().to_numpy()
    return mask


_INPUTS = ("input_dims", "input_types", "concrete_inputs")
_KEY = ("name", *_INPUTS)
_Key = tuple[object, ...]


def _key(row: dict[str, object]) -> _Key:
    return tuple(row[name] for name in _KEY)


def _standing_op(trace: Trace, found: Attribution) -> tuple[Int64, Bool]:
    """Per call the outermost op around it whose FLOPs are known, else itself where its bytes are; `NO_ROW` for none.

    The second array says where the FLOPs are.
    """
    tree = found.tree
    if not trace.ops.height:
        return np.full(len(tree), NO_ROW, dtype=np.int64), np.zeros(len(tree), dtype=np.bool_)
    distinct = trace.ops.select("name", *_INPUTS).unique()
    known = [
        (flops_of(str(name), inputs) is not None, bytes_of(str(name), inputs) is not None)
        for name, *texts in distinct.iter_rows()
        for inputs in [read_inputs(*texts)]
    ]
    marks = distinct.with_columns(
        pl.Series(name, [k[i] for k in known], dtype=pl.Boolean) for i, name in enumerate(("flops", "bytes"))
    )
    joined = trace.ops.select("name", *_INPUTS).join(
        marks, on=["name", *_INPUTS], how="left", maintain_order="left", nulls_equal=True
    )
    row = np.where(tree.kind == OP, tree.calls["row"].to_numpy(), 0)
    is_op = tree.kind == OP
    works = is_op & joined["flops"].to_numpy()[row]
    moves = is_op & joined["bytes"].to_numpy()[row]
    outermost = _outermost(tree.nearest(works), tree.caller)
    standing: Int64 = np.where(outermost != NO_ROW, outermost, np.where(moves, np.arange(len(tree)), NO_ROW))
    return standing, outermost != NO_ROW


def _outermost(nearest: Int64, caller: Int64) -> Int64:
    """Climb from each wanted call to the wanted one furthest out."""
    padded, above = np.append(nearest, NO_ROW), np.append(caller, NO_ROW)
    at: Int64 = padded[:-1].copy()
    while True:
        further = padded[above[at]]
        climbs = (at != NO_ROW) & (further != NO_ROW)
        if not climbs.any():
            return at
        at[climbs] = further[climbs]


def _precision_by_op(trace: Trace, found: Attribution, owner: Int64) -> dict[_Key, tuple[str, bool | None]]:
    """Precision and matrix-unit use of the kernels with most time, per op, shapes and types."""
    work = with_precision(trace, found)
    at = np.append(owner, NO_ROW)[work["call"].fill_null(NO_ROW).to_numpy()]
    work = work.with_columns(at=pl.Series(at, dtype=pl.Int64)).filter(
        (pl.col("at") != NO_ROW) & (pl.col("precision") != NO_PRECISION)
    )
    if not work.height:
        return {}
    ops = (
        trace.ops[found.tree.calls["row"].gather(work["at"])]
        .select(pl.col("name").alias("op"), *_INPUTS)
        .cast(pl.String)
    )
    most = (
        pl.concat([work.select("precision", "tensor_core", "dur_ns"), ops], how="horizontal")
        .group_by("op", *_INPUTS, "precision", "tensor_core")
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "precision", "tensor_core", descending=[False, True, True])
    )
    return {tuple(key): (precision, core) for *key, precision, core, _ in most.iter_rows()}


def _rate(row: dict[str, object], ran: tuple[str, bool | None] | None, gpu: Gpu | None, short_ns: int) -> Rate:
    calls, ns = int(row["calls"]), int(row["device_ns"])  # type: ignore[call-overload]
    inputs = read_inputs(*(row[name] for name in _INPUTS))  # type: ignore[arg-type]
    flops, size = flops_of(str(row["name"]), inputs), bytes_of(str(row["name"]), inputs)
    flops_per_s = flops * calls * 10**9 / ns if flops and ns else None
    bytes_per_s = size * calls * 10**9 / ns if size and ns else None
    precision, core = ran if ran is not None and flops else ("", None)
    peak = gpu.peak(precision, matrix_unit=core) if gpu and precision else None
    flops_share = flops_per_s / peak if flops_per_s and peak else None
    bandwidth = gpu.bandwidth_bytes_per_s if gpu else 0
    bytes_share = bytes_per_s / bandwidth if bytes_per_s and bandwidth else None
    limit = ""
    if gpu is not None and bytes_share is not None and (peak or not flops):
        limit = _limit(flops_share or 0.0, bytes_share, short=ns < short_ns * calls)
    return Rate(
        op=str(row["name"]),
        input_dims=str(row["input_dims"]),
        precision=precision,
        calls=calls,
        device_ns=ns,
        flops=flops * calls if flops else None,
        size_bytes=size * calls if size else None,
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
        flops_share=flops_share,
        bytes_share=bytes_share,
        limited_by=limit,
    )


def _limit(flops_share: float, bytes_share: float, *, short: bool) -> str:
    reached = max(flops_share, bytes_share)
    if short and reached < _FAR_BELOW:
        return "launch"
    if reached < _NEITHER:
        return "neither"
    return "compute" if flops_share >= bytes_share else "memory"


def section(roofline: Roofline) -> Section:
    """Two tables: what computes, and what moves data."""
    computing = [r for r in roofline.rates if r.flops_per_s]
    moving = [r for r in roofline.rates if not r.flops_per_s]
    peaks = f"of the {roofline.gpu}" if roofline.gpu else "not known: no GPU of gpus.toml is recorded"
    compute = Table(
        title="Achieved FLOP/s",
        columns=(
            Column("op and input shapes", Kind.CODE),
            Column("time", Kind.TIME),
            Column("TFLOP/s", Kind.TEXT),
            Column("of peak FLOP/s", Kind.SHARE),
            Column("limited by", Kind.TEXT),
        ),
        rows=tuple(
            (
                _named(r),
                r.device_ns,
                f"{(r.flops_per_s or 0) / _TERA:.3g} {r.precision}",
                r.flops_share,
                r.limited_by or None,
            )
            for r in computing[:_LISTED]
        ),
        note=(
            "2MNK for products, 2 per output element and weight for convolutions and as much per gradient of one, "
            "4BHNNd for attention forward, half of it where it was recorded as causal. "
            f"Peaks in the precision that ran, {peaks}. Limited by neither: below a fifth of both peaks."
        ),
        total=len(computing),
    )
    move = Table(
        title="Achieved bytes/s",
        columns=(
            Column("op and input shapes", Kind.CODE),
            Column("time", Kind.TIME),
            Column("GB/s", Kind.TEXT),
            Column("of peak bandwidth", Kind.SHARE),
            Column("limited by", Kind.TEXT),
        ),
        rows=tuple(
            (_named(r), r.device_ns, f"{(r.bytes_per_s or 0) / _GIGA:.3g}", r.bytes_share, r.limited_by or None)
            for r in moving[:_LISTED]
        ),
        note="Each tensor read or written once; above 100% where caches serve it.",
        total=len(moving),
    )
    return Section("roofline", "Achieved rates", (compute, move))


def _named(rate: Rate) -> str:
    return f"{rate.op} {rate.input_dims}"[:_NAME_LIMIT]


def _section(answers: Answers) -> Section | None:
    found = answers.ask(QUESTION)
    return section(found) if found.rates else None


def _not_measured(answers: Answers) -> tuple[NotMeasured, ...]:
    found = answers.ask(HEADLINE) and answers.trace.ops.height and answers.ask(QUESTION)
    return found.not_measured() if found else ()


QUESTION = Question(
    "roofline",
    lambda a: measure_roofline(a.trace, a.ask(ATTRIBUTION), a.ask(GPU), a.definitions.short_kernel_ns),
    answer=Roofline,
    section=_section,
    on_screen=False,
    not_measured=_not_measured,
)
