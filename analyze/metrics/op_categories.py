"""What the work was for: time by the purpose of the launching op, beside what the kernels compute."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Stat, Table
from analyze.kernels.categories import MEMBERS
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.question import Question
from analyze.notices import Notice
from analyze.timeline.attribution import Attribution
from analyze.units import duration, percent

_UNCLASSIFIED = 0.05  # of activity time: above it the table by kernel leaves too much open
_UNFUSED = 0.05  # of activity time: attention by op beyond its fused kernels that is worth a line
_NAMES_LISTED = 20


class OpCategory(Struct, frozen=True):
    """Activities whose launching ops serve one purpose.

    Attributes:
        category: one of `kernels.categories.NAMES`: what the op, its callers and the modules around it are for, or what
            the kernel computes where none of them shows it.
        count: how many activities.
        sum_ns: their durations added up.
        share: of the added-up time of all activities, 0..1.
        by_kernel_ns: the part whose kernels compute that category too.
        without_op_ns: the part whose ops say nothing, so that the kernel's category stands in.
    """

    category: str
    count: int
    sum_ns: int
    share: float
    by_kernel_ns: int
    without_op_ns: int


class OpGroup(Struct, frozen=True):
    """One of the few groups that a reader asks for first.

    Attributes:
        group: name.
        by_kernel: share of activity time by what the kernels compute, 0..1.
        by_op: share by what the launching ops are for, 0..1.
    """

    group: str
    by_kernel: float
    by_op: float


class Unclassified(Struct, frozen=True):
    """Activities of one name that no rule knows.

    Attributes:
        name: as recorded.
        count: how many.
        sum_ns: their durations added up.
        share: of the added-up time of all activities, 0..1.
    """

    name: str
    count: int
    sum_ns: int
    share: float


class OpCategories(Struct, frozen=True):
    """Work by purpose.

    Attributes:
        categories: by op, most time first.
        groups: the headline groups and the rest, in a fixed order; each column sums to 1.
        other: names that no rule knows, most time first.
        other_ns: their time.
        total_ns: durations of all activities added up.
    """

    categories: tuple[OpCategory, ...]
    groups: tuple[OpGroup, ...]
    other: tuple[Unclassified, ...]
    other_ns: int
    total_ns: int

    def notices(self) -> Iterator[Notice]:
        """A notice where the unclassified share is not small."""
        if self.total_ns and self.other_ns > _UNCLASSIFIED * self.total_ns:
            text = (
                f"{percent(self.other_ns / self.total_ns)} of activity time is in kernels of no known kind (`other`): "
                f"{len(self.other)} names, listed in the report."
            )
            yield Notice("unclassified-kernels", text, len(self.other))


def measure_op_categories(found: Attribution) -> OpCategories:
    """Work by purpose over all devices."""
    kernel = pl.col("category").cast(pl.String)
    work = found.work.select(
        "name", "dur_ns", kernel=kernel, op=pl.col("op_category").fill_null(kernel), said="op_category"
    )
    total = found.total_ns
    same, silent = pl.col("op") == pl.col("kernel"), pl.col("said").is_null()
    by_op = (
        work.group_by("op")
        .agg(
            pl.len(),
            pl.col("dur_ns").sum(),
            pl.col("dur_ns").filter(same).sum().alias("same"),
            pl.col("dur_ns").filter(silent).sum().alias("silent"),
        )
        .sort("dur_ns", "op", descending=[True, False])
    )
    unknown = (
        work.filter(pl.col("kernel") == "other")
        .group_by(pl.col("name").cast(pl.String).fill_null(""))
        .agg(pl.len(), pl.col("dur_ns").sum())
        .sort("dur_ns", "name", descending=[True, False])
    )
    whole = total or 1
    return OpCategories(
        tuple(OpCategory(op, n, ns, ns / whole, same, silent) for op, n, ns, same, silent in by_op.iter_rows()),
        _grouped(work, total) if total else (),
        tuple(Unclassified(name, n, ns, ns / whole) for name, n, ns in unknown.iter_rows()),
        int(unknown["dur_ns"].sum()),
        total,
    )


def _grouped(work: pl.DataFrame, total: int) -> tuple[OpGroup, ...]:
    sums = [dict(work.group_by(column).agg(pl.col("dur_ns").sum()).iter_rows()) for column in ("kernel", "op")]
    return tuple(
        OpGroup(group, *[sum(ns.get(name, 0) for name in members) / total for ns in sums])
        for group, members in MEMBERS.items()
    )


def blocks(purpose: OpCategories) -> tuple[Stat | Table, ...]:
    """Groups by kernel and by op, categories by op, and what no rule knows."""
    if not purpose.total_ns:
        return ()
    groups = Table(
        title="Groups, by kernel and by op",
        columns=(
            Column("group", Kind.TEXT),
            Column("by kernel, of activity time", Kind.SHARE),
            Column("by op, of activity time", Kind.SHARE),
        ),
        rows=tuple((g.group, g.by_kernel, g.by_op) for g in purpose.groups),
        note=(
            "'By kernel' goes by what the kernels compute, 'by op' by what the launching op, its callers and its "
            "modules are for. The batched GEMMs and softmax of an unfused attention are GEMM and the rest by kernel, "
            "and attention by op. Both columns describe the same time; never add them."
        ),
    )
    by_op = Table(
        title="What the work was for",
        columns=(
            Column("category by op", Kind.TEXT),
            Column("time", Kind.TIME),
            Column("of activity time", Kind.SHARE),
            Column("count", Kind.COUNT),
            Column("without an op", Kind.TIME),
        ),
        rows=tuple((c.category, c.sum_ns, c.share, c.count, c.without_op_ns) for c in purpose.categories),
        note="Activities without a recorded op (in CUDA graphs, for example) count under the category of their kernel.",
    )
    return (*_fused(purpose), groups, by_op, *_other(purpose))


def _fused(purpose: OpCategories) -> Iterator[Stat]:
    """Attention: fused by kernel beside all that serves it."""
    attention = next((g for g in purpose.groups if g.group == "attention" and (g.by_op or g.by_kernel)), None)
    if attention is not None:
        fused = percent(attention.by_kernel)
        text = f"{percent(attention.by_op)} of activity time; fused attention kernels take {fused}"
        yield Stat("Attention", text, brief=attention.by_op - attention.by_kernel > _UNFUSED)


def _other(purpose: OpCategories) -> Iterator[Table]:
    if purpose.other:
        yield Table(
            title=f"Unclassified (other): {duration(purpose.other_ns)}",
            columns=(
                Column("name", Kind.CODE),
                Column("time", Kind.TIME),
                Column("of activity time", Kind.SHARE),
                Column("count", Kind.COUNT),
            ),
            rows=tuple((u.name, u.sum_ns, u.share, u.count) for u in purpose.other[:_NAMES_LISTED]),
            total=len(purpose.other),
        )


QUESTION: Question[OpCategories] = Question(
    "op_categories",
    lambda a: measure_op_categories(a.ask(ATTRIBUTION)),
    answer=OpCategories,
    notices=lambda a: a.ask(QUESTION).notices(),
)
