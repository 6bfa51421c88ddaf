"""Summaries of all ranks become matched collectives, waits and lateness: the order of the steps, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from analyze.ranks.bandwidth import Rates, rate
from analyze.ranks.clocks import Clocks, align
from analyze.ranks.entries import Entries, entries_of
from analyze.ranks.events import OWNERS
from analyze.ranks.groups import Group, group_keys
from analyze.ranks.matching import Int64, Matched, match
from analyze.ranks.summary import Summary
from analyze.ranks.tables import EVENTS
from analyze.ranks.waits import (
    PARTS,
    Lateness,
    Owned,
    Waits,
    blocking_ends,
    explain,
    measure_waits,
    own_rank,
)
from analyze.schema import dtypes

_US = 1000
_WORDS = ("kind", "kind_from", "element_type")
_IDLE_OWNERS = len(OWNERS) - 3


@dataclass(frozen=True)
class Joined:
    """One round of one job. Arrays of entries are in order of group and index.

    Attributes:
        files: one summary per rank, in order of ranks.
        world: number of ranks of the job, None where not known.
        groups: process groups in order of their keys.
        matched: kernels with the collective that each is of.
        entries: the same as arrays.
        clocks: of the ranks.
        window: common window in common time; its end is not after its start where the windows have nothing in common.
        waits: of the collectives.
        lateness: of the last ranks.
        owned: by position of the rank.
        exposed_wait_ns: of each row.
        before_ns: of each row the owners of the time since its group was last in step, a column per `PARTS`.
        missing: of each entry the members that were not recorded, -1 where the members are not known.
        rates: sizes and bandwidths.
    """

    files: tuple[Summary, ...]
    world: int | None
    groups: list[Group]
    matched: Matched
    entries: Entries
    clocks: Clocks
    window: tuple[int, int]
    waits: Waits
    lateness: Lateness
    owned: tuple[Owned, ...]
    exposed_wait_ns: Int64
    before_ns: Int64
    missing: Int64
    rates: Rates

    @property
    def ranks(self) -> list[int]:
        """Ranks present."""
        ranks: list[int] = self.clocks.ranks.tolist()
        return ranks

    @property
    def ranks_missing(self) -> int | None:
        """Ranks of the job that were not recorded, None where its number of ranks is not known."""
        if self.world is None:
            return None
        return self.world - sum(1 for rank in self.ranks if rank < self.world)

    @property
    def whole(self) -> bool:
        """Every rank of the job is there: blame and savings can be stated."""
        return self.ranks_missing == 0

    @property
    def window_ns(self) -> int:
        """Length of the common window, 0 where there is none."""
        return max(self.window[1] - self.window[0], 0)


def join_ranks(files: Sequence[Summary], world_text: str) -> Joined:
    """Join the summaries of one round.

    Args:
        files: one per rank, in order of ranks, each with a window.
        world_text: number of ranks of the job as the files have it.
    """
    world = int(world_text) if world_text.isdecimal() and len(world_text) < 10 else None
    ranks = np.array([one.file.rank for one in files], np.int64)
    groups, position = group_keys({int(one.file.rank or 0): one.frames["group"] for one in files}, world)
    matched = match(_rows(files, position))
    entries = entries_of(matched)
    clocks = align(entries, ranks)
    window = _common_window(files, clocks)
    waits, bound = measure_waits(entries, clocks, common=window[1] > window[0])
    clocks = replace(clocks, uncertainty_ns=bound)
    owned, exposed, before, idle_before = _own(files, entries, waits, clocks, window[0])
    missing = _missing(groups, set(ranks.tolist()))[entries.group] if len(entries.begin) else entries.group
    return Joined(
        files=tuple(files),
        world=world,
        groups=groups,
        matched=matched,
        entries=entries,
        clocks=clocks,
        window=window,
        waits=waits,
        lateness=explain(entries, waits, before, idle_before),
        owned=owned,
        exposed_wait_ns=exposed,
        before_ns=before,
        missing=missing,
        rates=rate(entries, groups, waits.split, waits.data_ns, missing),
    )


def _rows(files: Sequence[Summary], position: dict[tuple[int, int], int]) -> pl.DataFrame:
    """The collectives of all ranks, with the job's groups."""
    types = {**dtypes(EVENTS), "group": pl.Int64, "rank": pl.Int64}
    del types["stream"]
    types |= dict.fromkeys(_WORDS, pl.Categorical)  # millions of rows: as small as they can be
    types |= {"source": pl.Int32, "target": pl.Int32}
    frames = []
    for one in files:
        rank = int(one.file.rank or 0)
        events = one.frames["event"]
        numbers = np.array([position[rank, number] for number in one.frames["group"]["group"]], np.int64)
        group = numbers[events["group"].to_numpy()] if len(numbers) else np.empty(0, np.int64)
        placed = events.with_columns(rank=pl.lit(rank, pl.Int64), group=pl.Series(group, dtype=pl.Int64))
        frames.append(placed.select(pl.col(name).cast(dtype) for name, dtype in types.items()))
    return pl.concat(frames) if frames else pl.DataFrame(schema=types)


def _common_window(files: Sequence[Summary], clocks: Clocks) -> tuple[int, int]:
    """Latest start to earliest end of the windows, in common time."""
    offset = clocks.offset_ns.tolist()
    starts = [int(one.file.window_start_ns or 0) - by for one, by in zip(files, offset, strict=True)]
    ends = [int(one.file.window_end_ns or 0) - by for one, by in zip(files, offset, strict=True)]
    return max(starts, default=0), min(ends, default=0)


def _missing(groups: list[Group], present: set[int]) -> Int64:
    """Of each group the members that were not recorded, -1 where the members are not known."""
    return np.array([-1 if g.members is None else len(set(g.members) - present) for g in groups], np.int64)


def _own(
    files: Sequence[Summary], entries: Entries, waits: Waits, clocks: Clocks, common_start_ns: int
) -> tuple[tuple[Owned, ...], Int64, Int64, npt.NDArray[np.int32]]:
    """Who owns each rank's window; by row the exposed wait, the owners before it, and parts of idle time in us."""
    count = len(entries.of_row)
    since = blocking_ends(entries, waits, common_start_ns)
    exposed, before = np.zeros(count, np.int64), np.zeros((count, len(PARTS)), np.int64)
    idle_before = np.zeros((count, _IDLE_OWNERS), np.int32)  # it only says which part is largest
    split = waits.split[entries.of_row]
    order = np.argsort(entries.rank, kind="stable")
    mine = np.split(order, np.searchsorted(entries.rank[order], clocks.ranks[1:]))
    owned = []
    for one, rows, offset in zip(files, mine, clocks.offset_ns.tolist(), strict=True):
        found = own_rank(
            one.frames["stretch"],
            entries.raw_start_ns[rows],
            entries.raw_end_ns[rows],
            waits.wait_ns[rows],
            split[rows],
            since[rows] + offset,
        )
        exposed[rows], before[rows], idle_before[rows] = (
            found.exposed_wait_ns,
            found.before_ns,
            found.idle_before_ns // _US,
        )
        owned.append(replace(found, before_ns=before[:0], idle_before_ns=before[:0], exposed_wait_ns=exposed[:0]))
    return tuple(owned), exposed, before, idle_before
