"""Precision that the kernels ran in, against what was asked for and what the GPU offers (docs/definitions.md)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from analyze.blocks import Block, Column, Kind, Section, Stat, Table
from analyze.gpus import Abilities, Gpu, find_abilities, find_gpu
from analyze.kernels.categories import LABELS, WITH_PRECISION
from analyze.metrics.device_time import HEADLINE
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.question import Answers, Question
from analyze.metrics.shapes import read_inputs
from analyze.timeline.attribution import Attribution, once
from analyze.timeline.calls import OP
from analyze.trace import DeviceInfo, Trace
from analyze.units import percent

_OF_TYPES = {"float": "fp32", "double": "fp64", "c10::Half": "fp16", "c10::BFloat16": "bf16"}
# Families of kernels that add up partial products, apply epilogues or prepare offsets for kernels of any precision.
HELPERS = (
    "split_k",
    "epilogue",
    "helper",
    "cudnn_split_k",
    "flash_attention_helper",
    "attention_reduction",
    "plan",
)
NO_PRECISION = "none"
_ALL, _NEWS = 0.9995, 0.01  # of a category's time: printed as 100 %; below it other precisions are no news
_TERA = 10**12


class PrecisionUse(Struct, frozen=True):
    """Kernels of one category that ran in one precision.

    Attributes:
        category: gemm, convolution or attention, by kernel.
        precision: fp32, tf32, fp16, bf16, fp64, fp8, fp4, int8, mixed or unknown; none for kernels that only help
            others (split-K sums, epilogues, offsets).
        tensor_core: they use tensor or matrix cores; None where their names do not say.
        told_by: "name" (of the kernel) or "input types" (of the launching op: a float input may run in fp32 or tf32).
        count: how many.
        sum_ns: their durations added up.
        share: of the added-up time of the category, 0..1.
        peak_flops_per_s: what the GPU offers in that precision, None where it is not known.
    """

    category: str
    precision: str
    tensor_core: bool | None
    told_by: str
    count: int
    sum_ns: int
    share: float
    peak_flops_per_s: int | None


class Judgement(Struct, frozen=True):
    """One sentence of the audit.

    Attributes:
        id: as-asked, tf32-not-used, tf32-uninvited, other-precision, 3xtf32, helper, not-said or observed.
        category: gemm, convolution or attention.
        share: of the category's time that the sentence is about, 0..1.
        text: the sentence.
        surprising: the run is not what was asked for.
    """

    id: str
    category: str
    share: float
    text: str
    surprising: bool


class PrecisionAudit(Struct, frozen=True):
    """The audit of one trace.

    Attributes:
        asked: fp32, tf32, fp16 or bf16, as `capture` recorded it; empty in other files.
        amp: by autocast.
        gpu: model whose peaks are used; empty where it is not known.
        gpu_source: where its peaks are from.
        uses: time by category, precision and tensor-core use.
        judgements: what they say, category by category.
    """

    asked: str
    amp: bool
    gpu: str
    gpu_source: str
    uses: tuple[PrecisionUse, ...]
    judgements: tuple[Judgement, ...]


def gpu_of(trace: Trace, device: int | None) -> Gpu | None:
    """The model of a device, None when it is not known."""
    if device is None:
        return None
    sizes = {(d.multiprocessors, d.memory_bytes) for d in _infos(trace, device)}
    return find_gpu(trace.metadata.device_name(device), *(sizes.pop() if len(sizes) == 1 else (0, 0)))


def abilities_of(trace: Trace, device: int | None) -> Abilities | None:
    """What a device can multiply with, None when it is not known."""
    if device is None:
        return None
    capabilities = {d.capability for d in _infos(trace, device)}
    capability = capabilities.pop() if len(capabilities) == 1 else None
    if trace.metadata.runtime.startswith("ROCm"):
        capability = None
    return find_abilities(gpu_of(trace, device), trace.metadata.device_name(device), capability)


def lacks(abilities: Abilities | None, precision: str) -> bool:
    """Whether a device is known to be without a precision. TF32 and bf16 came with the same generation."""
    return abilities is not None and not {"bf16" if precision == "tf32" else precision} & set(abilities.faster)


def _infos(trace: Trace, device: int) -> list[DeviceInfo]:
    return [d for d in trace.metadata.devices if d.id == device] or list(trace.metadata.devices)


def measure_precision(trace: Trace, found: Attribution, gpu: Gpu | None, abilities: Abilities | None) -> PrecisionAudit:
    """The audit over all devices; `gpu` and `abilities` are the headline device's."""
    recorded = trace.metadata.recorded
    asked, amp = (recorded.precision, recorded.amp) if recorded else ("", False)
    uses = tuple(_uses(with_precision(trace, found), gpu))
    asked_for = Asked(asked, amp, gpu, abilities, trace.metadata.runtime.startswith("ROCm"))
    judgements = tuple(j for category in WITH_PRECISION for j in _judge(category, uses, asked_for))
    return PrecisionAudit(asked, amp, gpu.name if gpu else "", gpu.source if gpu else "", uses, judgements)


@once
def with_precision(trace: Trace, found: Attribution) -> pl.DataFrame:
    """The kernels of the three categories with `precision` completed from their op's input types, and `told_by`."""
    kernel = pl.col("category").cast(pl.String)
    work = found.work.with_columns(category=kernel).filter(
        pl.col("category").is_in(WITH_PRECISION) & (pl.col("kind").cast(pl.String) == "kernel")
    )
    types = _type_of_inputs(trace, found, work["call"])
    unknown, helps = pl.col("precision") == "unknown", pl.col("family").is_in(HELPERS)
    work = work.with_columns(
        precision=pl.when(helps).then(pl.lit(NO_PRECISION)).otherwise("precision"),
        tensor_core=pl.when(~helps).then("tensor_core"),
    )
    return work.with_columns(of_type=types).with_columns(
        told_by=pl.when(unknown & pl.col("of_type").is_not_null())
        .then(pl.lit("input types"))
        .otherwise(pl.lit("name")),
        precision=pl.when(unknown).then(pl.col("of_type").fill_null("unknown")).otherwise("precision"),
    )


def _type_of_inputs(trace: Trace, found: Attribution, calls: pl.Series) -> pl.Series:
    """Precision of the first floating-point input of each call's op, null where not recorded."""
    tree = found.tree
    if not trace.ops.height:
        return pl.Series([None] * len(calls), dtype=pl.String)
    op_row = tree.calls.select(pl.when(pl.col("kind") == OP).then("row"))["row"].gather(calls)
    words = trace.ops["input_types"].cast(pl.String).gather(op_row)
    known = {word: _first_float(word) for word in words.unique().drop_nulls()}
    return pl.Series([known.get(word) for word in words], dtype=pl.String)


def _first_float(types: str) -> str | None:
    inputs = read_inputs("[]", types)
    return next((_OF_TYPES[t] for t in inputs.types if t in _OF_TYPES), None) if inputs else None


def _uses(work: pl.DataFrame, gpu: Gpu | None) -> Iterator[PrecisionUse]:
    keys = ["category", "precision", "tensor_core", "told_by"]
    whole = dict(work.group_by("category").agg(pl.col("dur_ns").sum()).iter_rows())
    grouped = work.group_by(keys).agg(pl.len(), pl.col("dur_ns").sum())
    grouped = grouped.sort("dur_ns", *keys, descending=[True, *(False for _ in keys)])
    for category in WITH_PRECISION:
        for _, precision, core, told_by, count, ns in grouped.filter(pl.col("category") == category).iter_rows():
            peak = gpu.peak(precision, matrix_unit=core) if gpu else None
            share = ns / whole[category] if whole[category] else 0.0
            yield PrecisionUse(category, precision, core, told_by, count, ns, share, peak)


class Asked(Struct, frozen=True):
    """What was asked for, and of what."""

    asked: str
    amp: bool
    gpu: Gpu | None
    abilities: Abilities | None
    rocm: bool

    @property
    def words(self) -> str:
        """As sentences say it."""
        return f"{self.asked} autocast" if self.amp else self.asked


def _judge(category: str, uses: tuple[PrecisionUse, ...], asked_for: Asked) -> Iterator[Judgement]:
    """Sentences on one category, largest share first."""
    merged: dict[tuple[str, str], float] = {}
    for use in uses:
        if use.category == category:
            key = _verdict_on(use, asked_for), _described(use)
            merged[key] = merged.get(key, 0.0) + use.share
    for (ident, ran_in), share in merged.items():
        if share >= _NEWS:
            surprising = ident in ("tf32-not-used", "tf32-uninvited", "other-precision")
            yield Judgement(ident, category, share, _sentence(ident, category, ran_in, share, asked_for), surprising)


def _verdict_on(use: PrecisionUse, asked_for: Asked) -> str:
    """What a use means beside what was asked for."""
    fp32_class = asked_for.asked in ("fp32", "tf32")
    either = use.told_by == "input types" and use.precision == "fp32" and fp32_class
    if use.precision == NO_PRECISION:
        return "helper"
    if use.precision == "unknown" or either or not asked_for.asked:
        return "not-said" if asked_for.asked or use.precision == "unknown" else "observed"
    if fp32_class and use.precision == "fp32" and use.tensor_core and not asked_for.rocm:
        return "3xtf32"
    if asked_for.asked == "tf32" and use.precision == "fp32":
        return "tf32-not-used"
    if asked_for.asked == "fp32" and use.precision == "tf32":
        return "tf32-uninvited"
    return "as-asked" if use.precision == asked_for.asked else "other-precision"


def _described(use: PrecisionUse) -> str:
    if use.precision == NO_PRECISION:
        return "helpers that multiply nothing (split-K sums, epilogues, offsets)"
    if use.precision == "unknown":
        return "kernels whose names give no precision"
    if use.precision == "fp32" and use.told_by == "input types":
        return "kernels on fp32 tensors whose names do not separate fp32 from tf32"
    if use.precision == "fp32":
        return {
            True: "fp32 kernels on tensor cores",
            False: "fp32 SIMT kernels (no tensor cores)",
            None: "fp32 kernels",
        }[use.tensor_core]
    if use.precision == "mixed":
        return "kernels of two operand types"
    where = {True: "tensor-core kernels", False: "kernels without tensor cores", None: "kernels"}[use.tensor_core]
    return f"{use.precision} {where}"


def _labelled(use: PrecisionUse) -> str:
    """As the table says it: uses that sentences put together stay apart."""
    if use.precision == "unknown" and use.tensor_core is not None:
        return f"{_described(use)} (tensor cores: {'yes' if use.tensor_core else 'no'})"
    by_inputs = use.told_by == "input types" and use.precision != "fp32"
    return f"{_described(use)}, by the types of their inputs" if by_inputs else _described(use)


def _sentence(ident: str, category: str, ran_in: str, share: float, asked_for: Asked) -> str:
    part = "100%" if share >= _ALL else percent(share)
    ran = f"{part} of {LABELS[category]} time ran in {ran_in}"
    if ident in ("observed", "not-said", "helper"):
        return f"{ran[0].upper()}{ran[1:]}."
    if ident == "as-asked":
        return f"As asked ({asked_for.words}), {ran}."
    text = f"Asked for {asked_for.words}, {ran}"
    if ident == "3xtf32":
        return f"{text}: three tf32 products for one, with fp32 accuracy; this is not tf32."
    if ident == "tf32-not-used":
        return f"{text}: {_nothing_changed(category, share, asked_for)}"
    if ident == "tf32-uninvited" and category == "convolution":
        return f"{text}: torch.backends.cudnn.allow_tf32 is on by default."
    return f"{text}."


def _nothing_changed(category: str, share: float, asked_for: Asked) -> str:
    gpu = asked_for.gpu
    if gpu is not None and "tf32" not in gpu.flops_per_s:
        return f"the {gpu.name} has no tf32."
    if lacks(asked_for.abilities, "tf32"):
        return "this GPU has no tf32."
    effect = "nothing changed" if share >= _ALL else "that part did not change"
    if category == "attention":
        return f"{effect}; the tf32 switches do not reach fused attention."
    switch = "cuda.matmul" if category == "gemm" else "cudnn"
    gain = ""
    if gpu is not None:
        offered = gpu.flops_per_s["tf32"] / _TERA, gpu.flops_per_s["fp32"] / _TERA
        gain = f" The {gpu.name} offers {offered[0]:g} TFLOP/s in tf32 and {offered[1]:g} in fp32."
    return f"{effect}; torch.backends.{switch}.allow_tf32 was off, or shapes or alignment kept it out.{gain}"


def section(audit: PrecisionAudit) -> Section:
    """The sentences, and the times that they are about."""
    surprises = [j.text for j in audit.judgements if j.surprising]
    others = [j.text for j in audit.judgements if not j.surprising]
    stats: list[Block] = [Stat("Math", text, brief=i == 0) for i, text in enumerate(surprises)]
    stats += [Stat("Math", text, brief=False) for text in others]
    known = f"dense, {audit.gpu} ({audit.gpu_source})" if audit.gpu else "not known, no GPU of gpus.toml is recorded"
    table = Table(
        title="Precision of GEMM, convolution and attention kernels",
        columns=(
            Column("category", Kind.TEXT),
            Column("ran in", Kind.TEXT),
            Column("time", Kind.TIME),
            Column("of category time", Kind.SHARE),
            Column("peak TFLOP/s", Kind.TEXT),
        ),
        rows=tuple((u.category, _labelled(u), u.sum_ns, u.share, _peak(u)) for u in audit.uses),
        note=f"From the kernels' names, else from their ops' input types. Peaks: {known}.",
    )
    return Section("precision", "Precision", (*stats, table))


def _peak(use: PrecisionUse) -> str | None:
    return None if use.peak_flops_per_s is None else f"{use.peak_flops_per_s / _TERA:g}"


def _headline_id(answers: Answers) -> int | None:
    main = answers.ask(HEADLINE)
    return main.id if main else None


GPU = Question("gpu", lambda a: gpu_of(a.trace, _headline_id(a)))
ABILITIES = Question("abilities", lambda a: abilities_of(a.trace, _headline_id(a)))
QUESTION: Question[PrecisionAudit] = Question(
    "precision",
    lambda a: measure_precision(a.trace, a.ask(ATTRIBUTION), a.ask(GPU), a.ask(ABILITIES)),
    answer=PrecisionAudit,
    section=lambda a: section(a.ask(QUESTION)),
)
