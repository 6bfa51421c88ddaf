"""What is fused already, and what a compiler could fuse: memory-bound kernels back to back between two heavy ones."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.kernels.categories import HEAVY, MEMORY_BOUND
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.question import Question
from analyze.metrics.shapes import bytes_of, read_inputs
from analyze.timeline.attribution import Attribution, once
from analyze.timeline.callers import chains
from analyze.timeline.calls import OP
from analyze.trace import Trace
from analyze.units import duration, percent, plural

_LISTED = 15
_SHORTEST = 2  # kernels: one alone has nothing to be fused with
_LONGEST_SHOWN = 6
CASTING = ("aten::to", "aten::_to_copy", "aten::copy_", "aten::_autocast_to_reduced_precision")
# Ops that autocast casts the inputs of; their casts are recorded inside them.
AUTOCAST = frozenset(
    [
        "aten::linear",
        "aten::addmm",
        "aten::mm",
        "aten::bmm",
        "aten::baddbmm",
        "aten::matmul",
        "aten::einsum",
        "aten::conv1d",
        "aten::conv2d",
        "aten::conv3d",
        "aten::convolution",
        "aten::_convolution",
        "aten::scaled_dot_product_attention",
        "aten::layer_norm",
        "aten::softmax",
        "aten::log_softmax",
        "aten::group_norm",
        "aten::cross_entropy_loss",
        "aten::nll_loss",
        "aten::sum",
        "aten::pow",
    ]
)


class Evidence(Struct, frozen=True):
    """Kernels of one kind that show how far a model is fused.

    Attributes:
        kind: fused attention, unfused attention, batched GEMM, convolution, compiled Triton, autocast cast, other cast.
        count: how many.
        sum_ns: their durations added up.
        share: of the added-up time of all activities, 0..1.
    """

    kind: str
    count: int
    sum_ns: int
    share: float


class Chain(Struct, frozen=True):
    """Chains of the same steps.

    Attributes:
        steps: what each kernel is, in order: its op where one is known, its category otherwise.
        count: how many such chains.
        kernels: in all of them.
        sum_ns: their durations added up.
        share: of the added-up time of all activities, 0..1.
        size_bytes: traffic that their ops need, each tensor read or written once; None where a shape is missing.
    """

    steps: tuple[str, ...]
    count: int
    kernels: int
    sum_ns: int
    share: float
    size_bytes: int | None


class Fusion(Struct, frozen=True):
    """Fusion evidence of one trace.

    Attributes:
        evidence: kinds of kernels that occur, in a fixed order.
        chains: back-to-back memory-bound kernels on one stream between two heavy ones, most time first.
        chain_ns: durations in all chains added up.
        chain_kernels: kernels in all chains.
        chain_count: how many chains.
        total_ns: durations of all activities added up.
    """

    evidence: tuple[Evidence, ...]
    chains: tuple[Chain, ...]
    chain_ns: int
    chain_kernels: int
    chain_count: int
    total_ns: int


def measure_fusion(trace: Trace, found: Attribution) -> Fusion:
    """Evidence and chains over all devices."""
    total = found.total_ns
    work = _told(found).with_columns(cast=casts(trace, found))
    listed = tuple(_listed(chain_links(trace, found), total))
    return Fusion(
        tuple(_evidence(work, total)),
        listed,
        sum(c.sum_ns for c in listed),
        sum(c.kernels for c in listed),
        sum(c.count for c in listed),
        total,
    )


def _told(found: Attribution) -> pl.DataFrame:
    kernel = pl.col("kind").cast(pl.String) == "kernel"
    return found.work.with_columns(pl.col("category", "name").cast(pl.String), kernel=kernel)


def _evidence(work: pl.DataFrame, total: int) -> Iterator[Evidence]:
    category, op = pl.col("category"), pl.col("op").cast(pl.String)
    batched = op.is_in(["aten::bmm", "aten::baddbmm"]) | pl.col("name").str.contains("(?i)batched|strided_?batch")
    kinds = {
        "fused attention": category == "attention",
        "unfused attention": (pl.col("op_category") == "attention") & category.is_in(["gemm", "softmax"]),
        "batched GEMM": (category == "gemm") & batched,
        "convolution": category == "convolution",
        "compiled Triton": pl.col("kernel") & pl.col("name").str.starts_with("triton_"),
        "autocast cast": pl.col("cast") == "autocast",
        "other cast": pl.col("cast") == "other",
    }
    for kind, condition in kinds.items():
        rows = work.filter(condition)
        if rows.height:
            ns = int(rows["dur_ns"].sum())
            yield Evidence(kind, rows.height, ns, ns / total if total else 0.0)


@once
def casts(trace: Trace, found: Attribution) -> pl.Series:
    """Per activity "autocast" for a change of type inside an op that autocast serves, "other" for one elsewhere."""
    rows = found.work.select(
        "call",
        copies=pl.col("category").cast(pl.String).is_in(["copy_layout", "elementwise"]).fill_null(value=False),
        mixed=(pl.col("precision") == "mixed").fill_null(value=False),
    ).join(_casting_calls(trace, found), on="call", how="left", maintain_order="left")
    unlinked = pl.col("call").is_null()  # without an op only the kernel's own name is known
    cast = pl.when(unlinked & pl.col("mixed")).then(pl.lit("other")).when(~unlinked).then("cast")
    return rows.select(pl.when("copies").then(cast).alias("cast"))["cast"]


def _casting_calls(trace: Trace, found: Attribution) -> pl.DataFrame:
    """The calls that change a type, with the kind of cast that they are."""
    tree = found.tree
    calls = pl.DataFrame({"call": found.work["call"].drop_nulls().unique().sort()}, schema={"call": pl.Int64})
    calls = calls.with_columns(tree.calls.select("name", "kind", "row")[calls["call"]])
    calls = calls.filter((pl.col("kind") == OP) & pl.col("name").cast(pl.String).is_in(CASTING))
    if not calls.height:
        return pl.DataFrame(schema={"call": pl.Int64, "cast": pl.String})
    types = trace.ops["input_types"].gather(calls["row"]).cast(pl.String)
    same = [text for text in types.unique() if _changes_type(text) is False]
    around = chains(tree, calls["call"].to_numpy(), tree.caller)
    kinds = pl.Series([_kind_of_cast(names) for names in around.names], dtype=pl.String)
    cast = kinds.gather(around.number)
    return calls.select("call", cast=cast.set(types.is_in(same).fill_null(value=False), None))


def _kind_of_cast(chain: tuple[str, ...]) -> str | None:
    if "aten::_to_copy" not in chain:
        return None
    around = next((name for name in chain if name not in CASTING), "")
    return "autocast" if around in AUTOCAST else "other"


def _changes_type(types: str | None) -> bool | None:
    """Whether a copy's destination and source differ in type; None where types were not recorded."""
    inputs = read_inputs("[]", types)
    return inputs.types[0] != inputs.types[1] if inputs and len(inputs.types) > 1 else None


def _traffic(trace: Trace, found: Attribution) -> pl.Series:
    """Bytes that each activity's op needs, on the op's first activity; null where shapes are missing."""
    tree = found.tree
    call = found.work["call"]
    if not trace.ops.height:
        return pl.Series([None] * len(call), dtype=pl.Int64)
    at = tree.calls.select(pl.when(pl.col("kind") == OP).then("row"))["row"].gather(call)
    inputs = pl.DataFrame([trace.ops[c].cast(pl.String).gather(at) for c in ("name", "input_dims", "input_types")])
    distinct = inputs.unique()
    sizes_of = [bytes_of(str(name), read_inputs(dims, types)) for name, dims, types in distinct.iter_rows()]
    known = distinct.with_columns(size=pl.Series(sizes_of, dtype=pl.Int64))
    sizes = inputs.join(known, on=inputs.columns, how="left", maintain_order="left", nulls_equal=True)["size"]
    again = call.is_duplicated() & ~call.is_first_distinct() & call.is_not_null()
    return sizes.set(again & sizes.is_not_null(), 0)


@once
def chain_links(trace: Trace, found: Attribution) -> pl.DataFrame:
    """The kernels of all chains with the number of their chain, `run`.

    On each stream, kernels of a chain follow each other without any other activity between them, and what comes
    before and after is heavy. What a library launches in one call with a heavy kernel, such as the transposes around a
    convolution, is part of that: no compiler fuses it.
    """
    heavy = pl.col("kernel") & pl.col("category").is_in(HEAVY)
    own = pl.col("op").is_not_null() & (pl.len().over("launch") == 1)  # not what a graph launches all at once
    heavy |= own & (heavy & own).any().over("call")
    light = pl.col("kernel") & pl.col("category").is_in(MEMORY_BOUND)
    stream = ["process", "device", "stream"]
    rows = (
        _told(found)
        .with_columns(
            size_bytes=_traffic(trace, found),
            role=pl.when(heavy).then(2).when(light).then(1).otherwise(0),
            step=pl.coalesce(pl.col("op").cast(pl.String), "category"),
        )
        .sort(*stream, "start_ns", "end_ns", maintain_order=True)
        .with_columns(new=(pl.col("role") != pl.col("role").shift()).fill_null(value=True) | ~_same(stream))
        .with_columns(run=pl.col("new").cum_sum())
    )
    runs = rows.group_by("run", maintain_order=True).agg(
        pl.col("role").first(), pl.col(*stream).first(), pl.len().alias("length")
    )
    beside = [pl.col("role").shift(step).fill_null(0) == 2 for step in (1, -1)]
    same = [(pl.col(s).eq_missing(pl.col(s).shift(step))) for s in stream for step in (1, -1)]
    kept = runs.filter((pl.col("role") == 1) & (pl.col("length") >= _SHORTEST) & pl.all_horizontal(*beside, *same))
    return rows.join(kept.select("run"), on="run", how="semi", maintain_order="left")


def _same(columns: list[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col(c).eq_missing(pl.col(c).shift()) for c in columns)


def _listed(links: pl.DataFrame, total: int) -> Iterator[Chain]:
    each = links.group_by("run", maintain_order=True).agg(
        "step",
        pl.col("dur_ns").sum(),
        pl.when(pl.col("size_bytes").is_not_null().all()).then(pl.col("size_bytes").sum()).alias("bytes"),
    )
    grouped = (
        each.with_columns(key=pl.col("step").list.join("\n"))
        .group_by("key")
        .agg(
            pl.col("step").first(),
            pl.len(),
            pl.col("dur_ns").sum(),
            pl.when(pl.col("bytes").is_not_null().all()).then(pl.col("bytes").sum()).alias("bytes"),
        )
        .sort("dur_ns", "key", descending=[True, False])
    )
    for _, steps, count, ns, size in grouped.iter_rows():
        yield Chain(tuple(steps), count, count * len(steps), ns, ns / total if total else 0.0, size)


def section(fusion: Fusion) -> Section:
    """The kinds of kernels, and the chains."""
    kinds = Table(
        title="Fusion evidence",
        columns=(
            Column("kind", Kind.TEXT),
            Column("kernels", Kind.COUNT),
            Column("time", Kind.TIME),
            Column("of activity time", Kind.SHARE),
        ),
        rows=tuple((e.kind, e.count, e.sum_ns, e.share) for e in fusion.evidence),
        note="Kinds overlap: the batched GEMMs of an unfused attention are in both rows.",
    )
    chained = Table(
        title="Chains of memory-bound kernels between two heavy ones",
        columns=(
            Column("steps", Kind.CODE),
            Column("chains", Kind.COUNT),
            Column("time", Kind.TIME),
            Column("of activity time", Kind.SHARE),
            Column("traffic", Kind.MEMORY),
        ),
        rows=tuple((_steps(c), c.count, c.sum_ns, c.share, c.size_bytes) for c in fusion.chains[:_LISTED]),
        note=(
            "Back to back on one stream, nothing else between them: what torch.compile could fuse. Their time is what "
            "fusing touches, not what it saves. Heavy are GEMM, attention, convolution, MoE and communication."
        ),
        total=len(fusion.chains),
    )
    return Section("fusion", "Fusion", (*_chain_stat(fusion), kinds, chained))


def _chain_stat(fusion: Fusion) -> Iterator[Stat]:
    if fusion.chain_count:
        text = (
            f"{plural(fusion.chain_count, 'chain')} of {fusion.chain_kernels:,} memory-bound kernels between heavy "
            f"ones take {duration(fusion.chain_ns)}, {percent(fusion.chain_ns / fusion.total_ns)} of activity time"
        )
        yield Stat("Fusion", text, brief=False)


def _steps(chain: Chain) -> str:
    """The steps in a line, a repeated one with its number."""
    words: list[str] = []
    counts: list[int] = []
    for step in chain.steps:
        word = step.removeprefix("aten::")
        if words and words[-1] == word:
            counts[-1] += 1
        else:
            words.append(word)
            counts.append(1)
    shown = [word if n == 1 else f"{word} x{n}" for word, n in zip(words, counts, strict=True)]
    if len(shown) > _LONGEST_SHOWN:
        shown = [*shown[: _LONGEST_SHOWN - 1], f"and {len(shown) - _LONGEST_SHOWN + 1} more"]
    return ", ".join(shown)


QUESTION: Question[Fusion] = Question(
    "fusion",
    lambda a: measure_fusion(a.trace, a.ask(ATTRIBUTION)),
    answer=Fusion,
    section=lambda a: section(a.ask(QUESTION)),
    on_screen=False,
)
