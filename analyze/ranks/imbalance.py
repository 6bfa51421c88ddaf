"""Whether ranks do the same work: steps, and kinds of work, each as its largest over its lower median."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.ranks.joined import Joined
from analyze.ranks.matching import lower_median

FLAGGED = 0.05  # largest over lower median less 1: below it ranks differ as steps do
_SIGNIFICANT = 0.01  # of the mean window: smaller kinds of work are not compared


class StepSpread(Struct, frozen=True):
    """One profiler step on all ranks, as the hosts ran it.

    Attributes:
        name: the step.
        least_ns: shortest on any rank.
        median_ns: lower median.
        most_ns: longest.
        longest: rank on which it was longest.
        skew_ns: between the first and the last rank's start, in common time.
    """

    name: str
    least_ns: int
    median_ns: int
    most_ns: int
    longest: int
    skew_ns: int


class CategorySpread(Struct, frozen=True):
    """One kind of work on all ranks.

    Attributes:
        category: what the kernels compute.
        median_ns: lower median over ranks, of the whole window.
        most_ns: most on any rank.
        rank: that rank.
        spread: most over lower median, less 1.
        steps: steps in which that rank has most of it.
        of_steps: steps in which it was compared.
    """

    category: str
    median_ns: int
    most_ns: int
    rank: int
    spread: float
    steps: int
    of_steps: int

    @property
    def flagged(self) -> bool:
        """It is uneven, and always on the same rank."""
        return self.spread >= FLAGGED and (self.of_steps == 0 or self.steps * 2 > self.of_steps)


def measure_steps(joined: Joined) -> tuple[StepSpread, ...]:
    """The steps that all ranks recorded."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    for one, offset in zip(joined.files, joined.clocks.offset_ns.tolist(), strict=True):
        for name, start, dur in one.frames["step"].iter_rows():
            found.setdefault(name, []).append((int(one.file.rank or 0), start - offset, dur))
    spreads = []
    for name, rows in found.items():
        if len(rows) == len(joined.files):
            rank, start, dur = (np.array(column) for column in zip(*rows, strict=True))
            spreads.append(
                StepSpread(
                    name=name,
                    least_ns=int(dur.min()),
                    median_ns=lower_median(dur),
                    most_ns=int(dur.max()),
                    longest=int(rank[dur.argmax()]),
                    skew_ns=int(start.max() - start.min()),
                )
            )
    return tuple(spreads)


def measure_categories(joined: Joined) -> tuple[CategorySpread, ...]:
    """Kinds of work over the ranks, most uneven first; collectives are not among them: their time is mostly waiting."""
    frames = [
        one.frames["category"].with_columns(rank=pl.lit(int(one.file.rank or 0), pl.Int64)) for one in joined.files
    ]
    if not frames:
        return ()
    rows = pl.concat(frames).filter(pl.col("category") != "communication")
    window = sum(one.file.window_ns for one in joined.files) // max(len(joined.files), 1)
    steps = rows.filter(pl.col("step").is_not_null())
    found = []
    for (category,), mine in rows.filter(pl.col("step").is_null()).group_by("category"):
        value = _over_ranks(mine.select("rank", "exclusive_ns").iter_rows(), joined.ranks)
        median, most = lower_median(value), int(value.max())
        if most < _SIGNIFICANT * window or not median:
            continue
        rank = joined.ranks[int(value.argmax())]
        leading, compared = _leads(steps.filter(pl.col("category") == category), rank, joined.ranks)
        found.append(CategorySpread(str(category), median, most, rank, most / median - 1, leading, compared))
    return tuple(sorted(found, key=lambda one: (-one.spread, one.category)))


def _over_ranks(rows: object, ranks: Sequence[int]) -> Int64:
    known: dict[int, int] = dict(rows)  # type: ignore[call-overload]
    return np.array([known.get(rank) or 0 for rank in ranks], np.int64)


def _leads(rows: pl.DataFrame, rank: int, ranks: Sequence[int]) -> tuple[int, int]:
    """In how many steps a rank has most, of how many."""
    leaders: Counter[bool] = Counter()
    for _, mine in rows.group_by("step"):
        value = _over_ranks(mine.select("rank", "sum_ns").iter_rows(), ranks)
        leaders[ranks[int(value.argmax())] == rank] += 1
    return leaders[True], leaders.total()


def computation_spread(joined: Joined) -> float | None:
    """Most computation of any rank over the lower median of all, less 1; None without computation."""
    value = np.array([one.file.computation_ns for one in joined.files], np.int64)
    median = lower_median(value) if len(value) else 0
    return int(value.max()) / median - 1 if median else None
