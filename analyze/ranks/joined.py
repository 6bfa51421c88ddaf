"""Summaries of all ranks become matched collectives, waits and lateness: the order of the steps, and no more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analyze.arrays import Int64, Ints
from analyze.ranks.bandwidth import Rates, message_bytes, rate
from analyze.ranks.clocks import Clocks, align
from analyze.ranks.entries import Entries, entries_of
from analyze.ranks.groups import Group, group_keys
from analyze.ranks.kinds import KINDS, SAID_BY
from analyze.ranks.matching import match
from analyze.ranks.summary import Summary
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

_MOST_INT32 = 2**31 - 1
_AT_ONCE = 64  # files whose events are made ready together
_SIGNATURE = ("kind", "in_elements", "out_elements", "element_type")
_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {  # millions of rows: as small as they can be
    "rank": pl.Int32, "group": pl.Int32, "seq": pl.Int64, "kind": pl.UInt8, "kind_from": pl.UInt8, "source": pl.Int32,
    "target": pl.Int32, "size_bytes": pl.Int64, "signature": pl.UInt64, "start_ns": pl.Int64, "end_ns": pl.Int64,
    "event": pl.UInt32, "computes_at_end": pl.UInt8,
}  # fmt: skip


class Joined(Struct, frozen=True):
    """One round of one job. Arrays of entries are in order of group and index.

    Attributes:
        files: one summary per rank, in order of ranks.
        world: number of ranks of the job, None where not known.
        groups: process groups in order of their keys.
        how: by position of the group how its kernels were matched: seq, order or ends.
        entries: kernels with the collective that each is of.
        clocks: of the ranks.
        window: common window in common time; its end is not after its start where the windows have nothing in common.
        waits: of the collectives.
        lateness: of the last ranks.
        owned: by position of the rank.
        exposed_wait_ns: of each row.
        since_ns: of each row the end of its group's last collective before it that held all ranks.
        before_ns: per entry of `PARTS`, of each row the time since then that it owns.
        missing: of each entry the members that were not recorded, -1 where the members are not known.
        rates: sizes and bandwidths.
    """

    files: tuple[Summary, ...]
    world: int | None
    groups: list[Group]
    how: dict[int, str]
    entries: Entries
    clocks: Clocks
    window: tuple[int, int]
    waits: Waits
    lateness: Lateness
    owned: tuple[Owned, ...]
    exposed_wait_ns: Int64
    since_ns: Int64
    before_ns: tuple[Ints, ...]
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
    entries, how = entries_of(matched), matched.how
    del matched
    clocks = align(entries, ranks)
    entries = entries.at_common_time(clocks.offset_ns[clocks.at(entries.rank)])
    window = _common_window(files, clocks)
    waits, bound = measure_waits(entries, common=window[1] > window[0])
    clocks = replace(clocks, uncertainty_ns=bound)
    since = blocking_ends(entries, waits, window[0])
    owned, exposed, before = _own(files, entries, waits, clocks, since)
    missing = _missing(groups, set(ranks.tolist()))[entries.group] if len(entries.begin) else entries.group
    return Joined(
        files=tuple(files),
        world=world,
        groups=groups,
        how=how,
        entries=entries,
        clocks=clocks,
        window=window,
        waits=waits,
        lateness=explain(entries, waits, before),
        owned=owned,
        exposed_wait_ns=exposed,
        since_ns=since,
        before_ns=before,
        missing=missing,
        rates=rate(entries, groups, waits.split, waits.data_ns, missing),
    )


def _rows(files: Sequence[Summary], position: dict[tuple[int, int], int]) -> pl.DataFrame:
    """The collectives of all ranks, with the job's groups."""
    kind = pl.col("kind").cast(pl.Enum(KINDS)).to_physical()
    said_by = pl.col("kind_from").cast(pl.Enum(SAID_BY)).to_physical()
    signature = pl.struct(_SIGNATURE).hash()
    frames = [pl.DataFrame(schema=_COLUMNS)]
    for first in range(0, len(files), _AT_ONCE):
        events = pl.concat([_placed(one, position) for one in files[first : first + _AT_ONCE]])
        made = events.with_columns(message_bytes(events), signature=signature, kind=kind, kind_from=said_by)
        frames.append(made.select(pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items()))
    return pl.concat(frames)


def _placed(one: Summary, position: dict[tuple[int, int], int]) -> pl.DataFrame:
    """The collectives of one rank, with the job's groups."""
    rank, events = int(one.file.rank or 0), one.frames["event"]
    numbers = np.array([position[rank, number] for number in one.frames["group"]["group"]], np.int64)
    group = numbers[events["group"].to_numpy()] if len(numbers) else np.empty(0, np.int64)
    return events.with_columns(pl.Series("group", group, dtype=pl.Int64), rank=pl.lit(rank, pl.Int32))


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
    files: Sequence[Summary], entries: Entries, waits: Waits, clocks: Clocks, since_ns: Int64
) -> tuple[tuple[Owned, ...], Int64, tuple[Ints, ...]]:
    """Who owns each rank's window; by row the exposed wait, and per part the time before it."""
    count = len(entries.of_row)
    exposed = np.zeros(count, np.int64)
    before: list[Ints] = [np.zeros(count, np.int32) for _ in PARTS]
    order = np.argsort(entries.rank, kind="stable").astype(np.int32)
    mine = np.split(order, np.searchsorted(entries.rank[order], clocks.ranks[1:].astype(entries.rank.dtype)))
    owned = []
    for one, rows, offset in zip(files, mine, clocks.offset_ns.tolist(), strict=True):
        found = own_rank(
            one.frames["stretch"],
            entries.start_ns[rows] + offset,
            entries.end_ns[rows] + offset,
            waits.wait_ns[rows],
            waits.split[entries.of_row[rows]],
            since_ns[rows] + offset,
        )
        exposed[rows] = found.exposed_wait_ns
        for part, values in enumerate(found.before_ns):
            if before[part].dtype == np.int32 and values.max(initial=0) > _MOST_INT32:
                before[part] = before[part].astype(np.int64)
            before[part][rows] = values
        owned.append(replace(found, before_ns=(), exposed_wait_ns=exposed[:0]))
    return tuple(owned), exposed, tuple(before)
