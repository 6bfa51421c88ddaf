"""What the devices worked on: by category and by kernel (docs/definitions.md)."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Block, Column, Kind, Section, Table
from analyze.metrics import op_categories
from analyze.metrics.foundations import TIMELINES
from analyze.metrics.question import Answers, Question
from analyze.timeline import DeviceTimeline, union

_BRIEF_CATEGORIES = 3
_KERNELS_LISTED = 20


class CategoryTime(Struct, frozen=True):
    """Activities of one category.

    Attributes:
        category: one of `kernels.categories.NAMES`.
        count: how many.
        sum_ns: their durations added up.
        exclusive_ns: instants at which only this category runs on its device.
        share: of the added-up time of all activities, 0..1.
    """

    category: str
    count: int
    sum_ns: int
    exclusive_ns: int
    share: float


class Kernel(Struct, frozen=True):
    """Activities of one name.

    Attributes:
        name: as recorded.
        category: what it computes.
        count: how many.
        sum_ns: their durations added up.
        p50_ns: median, nearest rank.
        max_ns: longest.
        share: of the added-up time of all activities, 0..1.
    """

    name: str
    category: str
    count: int
    sum_ns: int
    p50_ns: int
    max_ns: int
    share: float


def measure_categories(lines: list[DeviceTimeline]) -> tuple[CategoryTime, ...]:
    """Work by category over all devices, most time first."""
    if not lines:
        return ()
    everything = pl.concat([line.selected for line in lines])
    total = int(everything["dur_ns"].sum())
    alone: dict[str, int] = {}
    for line in lines:
        for category, ns in _exclusive_ns(line).items():
            alone[category] = alone.get(category, 0) + ns
    grouped = (
        everything.group_by(pl.col("category").cast(pl.String))
        .agg(count=pl.len(), sum_ns=pl.col("dur_ns").sum())
        .sort("sum_ns", "category", descending=[True, False])
    )
    return tuple(
        CategoryTime(name, count, ns, alone.get(name, 0), ns / total if total else 0.0)
        for name, count, ns in grouped.iter_rows()
    )


def measure_kernels(lines: list[DeviceTimeline]) -> tuple[Kernel, ...]:
    """Work by activity name over all devices, most time first."""
    if not lines:
        return ()
    everything = pl.concat([line.selected for line in lines])
    total = int(everything["dur_ns"].sum())
    grouped = (
        everything.group_by(pl.col("name").cast(pl.String).fill_null(""), pl.col("category").cast(pl.String))
        .agg(
            count=pl.len(),
            sum_ns=pl.col("dur_ns").sum(),
            p50_ns=pl.col("dur_ns").sort().get((pl.len() - 1) // 2),
            max_ns=pl.col("dur_ns").max(),
        )
        .sort("sum_ns", "name", "category", descending=[True, False, False])
    )
    return tuple(Kernel(**row, share=row["sum_ns"] / total if total else 0.0) for row in grouped.iter_rows(named=True))


def _exclusive_ns(line: DeviceTimeline) -> dict[str, int]:
    """Per category the instants at which no other category runs.

    One sweep over the unions of all categories: where exactly one is running, the sum of the numbers of the running
    ones is its number.
    """
    names, starts, ends, numbers = [], [], [], []
    for (name,), rows in line.owning.group_by(pl.col("category").cast(pl.String), maintain_order=True):
        runs = union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
        names.append(str(name))
        starts.append(runs.start_ns)
        ends.append(runs.end_ns)
        numbers.append(np.full(len(runs), len(names) - 1, dtype=np.int64))
    if not names:
        return {}
    times, number = np.concatenate(starts + ends), np.concatenate(numbers)
    sign = np.repeat(np.array([1, -1], dtype=np.int64), len(number))
    order = np.argsort(times, kind="stable")
    running = np.cumsum(sign[order])[:-1]
    which = np.cumsum((np.concatenate((number, number)) * sign)[order])[:-1]
    lengths = np.diff(times[order])
    alone = running == 1
    sums = np.zeros(len(names), dtype=np.int64)
    np.add.at(sums, which[alone], lengths[alone])
    return dict(zip(names, sums.tolist(), strict=True))


def section(categories: tuple[CategoryTime, ...], kernels: tuple[Kernel, ...], purpose: tuple[Block, ...]) -> Section:
    """What the GPU worked on: categories with bars, the same by purpose, and the kernels with most time."""
    by_category = Table(
        title="What the GPU worked on",
        columns=(
            Column("category", Kind.TEXT),
            Column("", Kind.BAR),
            Column("time", Kind.TIME),
            Column("of activity time", Kind.SHARE),
            Column("count", Kind.COUNT),
        ),
        rows=tuple((c.category, c.share, c.sum_ns, c.share, c.count) for c in categories),
        brief=_BRIEF_CATEGORIES,
        note="Times are added up: work that overlaps counts twice.",
    )
    by_name = Table(
        title="Activities with most time",
        columns=(
            Column("name", Kind.CODE),
            Column("category", Kind.TEXT),
            Column("count", Kind.COUNT),
            Column("time", Kind.TIME),
            Column("of activity time", Kind.SHARE),
        ),
        rows=tuple((k.name, k.category, k.count, k.sum_ns, k.share) for k in kernels[:_KERNELS_LISTED]),
        total=len(kernels),
    )
    return Section("work", "What the GPU worked on", (by_category, *purpose, by_name))


def _section(answers: Answers) -> Section:
    purposes = op_categories.blocks(answers.ask(op_categories.QUESTION))
    return section(answers.ask(CATEGORIES), answers.ask(KERNELS), purposes)


CATEGORIES = Question(
    "categories", lambda a: measure_categories(a.ask(TIMELINES)), answer=list[CategoryTime], section=_section
)
KERNELS = Question(
    "kernels",
    lambda a: measure_kernels(a.ask(TIMELINES)),
    answer=list[Kernel],
    shown=lambda kernels, definitions: kernels[: definitions.top],
)
