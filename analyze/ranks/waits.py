"""Waiting and transfer of each kernel, and who owns each rank's window (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Bool, Int64, Ints
from analyze.ranks.clocks import LEAST_UNCERTAINTY_NS
from analyze.ranks.entries import Entries, lower_medians
from analyze.ranks.matching import lower_median
from analyze.ranks.tables import OWNERS
from analyze.timeline import Intervals, intersect, join, subtract, union

PARTS = ("computation", "transfer", "unsplit", "wait", "copy", "idle")
EARLY_SHARE = 0.05  # of symmetric collectives that end before their last arrival: more, and clocks or matches are wrong
_COMPUTATION, _COMMUNICATION, _COPY = (OWNERS.index(name) for name in ("computation", "communication", "copy"))


class Waits(Struct, frozen=True):
    """Arrivals and waits; times are common. Arrays of entries hold nothing to use where `split` is false.

    Attributes:
        split: entries that are split into waiting and data.
        last: rank that arrived last.
        last_row: its row.
        arrival_ns: when.
        lead_ns: how long after the second-last.
        decided: the lead is above the clocks' uncertainty.
        data_ns: from the last arrival to the last end.
        spread_ns: between the first and the last end; of all entries.
        early_ns: how long before the last arrival some rank ended.
        wait_ns: waiting of each row, 0 where not split.
        fits: hardly any collective ends before its last arrival.
    """

    split: Bool
    last: Ints
    last_row: Int64
    arrival_ns: Int64
    lead_ns: Int64
    decided: Bool
    data_ns: Int64
    spread_ns: Int64
    early_ns: Int64
    wait_ns: Int64
    fits: bool


class Owned(Struct, frozen=True):
    """Who owns a rank's window.

    Attributes:
        transfer_ns: exposed transfer.
        unsplit_ns: exposed communication that cannot be split.
        wait_ns: exposed wait.
        exposed_wait_ns: of the waiting of each of the rank's kernels, what no computation covers.
        before_ns: per entry of `PARTS`, for each of them the time since its group was last in step that it owns.
    """

    transfer_ns: int
    unsplit_ns: int
    wait_ns: int
    exposed_wait_ns: Int64
    before_ns: tuple[Int64, ...]


def uncertainty(entries: Entries, spread_ns: Int64, split: Bool) -> int:
    """Within what the clocks agree: lower median of end spreads, of those collectives that end together by nature."""
    for chosen in (split & (entries.level == 0), split):
        if chosen.any():
            return max(LEAST_UNCERTAINTY_NS, lower_median(spread_ns[chosen]))
    return LEAST_UNCERTAINTY_NS


def measure_waits(entries: Entries, *, common: bool) -> tuple[Waits, int]:
    """The waits of all kernels, and the clocks' uncertainty.

    Args:
        entries: the matched collectives in common time.
        common: the ranks' windows have time in common; without it nothing is split.
    """
    start, end = entries.start_ns, entries.end_ns
    split = entries.can_split & common
    spread = entries.highest(end) - entries.lowest(end)
    bound = uncertainty(entries, spread, split)
    arrival = entries.highest(start)
    late = np.flatnonzero(start == arrival[entries.of_row])
    which, first = np.unique(entries.of_row[late], return_index=True)
    assert len(which) == len(arrival), "every collective has a last rank"
    last_row = late[first]
    others = start.copy()
    others[last_row] = np.iinfo(np.int64).min
    second = entries.highest(others)
    lead = np.where(entries.count > 1, arrival - np.where(entries.count > 1, second, arrival), 0)
    early = np.maximum(arrival - entries.lowest(end), 0)
    wait = np.maximum(np.minimum(arrival[entries.of_row], end) - start, 0)
    symmetric = split & ~entries.pair
    waits = Waits(
        split=split,
        last=entries.rank[last_row] if len(last_row) else last_row,
        last_row=last_row,
        arrival_ns=arrival,
        lead_ns=lead,
        decided=split & (lead > bound),
        data_ns=entries.highest(end) - arrival,
        spread_ns=spread,
        early_ns=early,
        wait_ns=np.where(split[entries.of_row], wait, 0),
        fits=bool((early[symmetric] > bound).sum() <= EARLY_SHARE * symmetric.sum()),
    )
    return waits, bound


def blocking_ends(entries: Entries, waits: Waits, common_start_ns: int) -> Int64:
    """For each row the end, on its rank, of its group's last collective before it that held all ranks.

    That is one that is split, and on every rank the instant before its end is not owned by computation. The start of
    the common window where there is none.
    """
    computes = np.zeros(len(entries.begin), bool)
    computes[entries.of_row[entries.computes_at_end]] = True
    holds = waits.split & ~computes
    group = entries.group.astype(np.int32)
    order = np.argsort(entries.rank, kind="stable").astype(np.int32)  # entries are in order of their groups
    of_row = entries.of_row[order]
    place = np.where(holds[of_row], np.arange(len(order), dtype=np.int32), np.int32(-1))
    before = np.maximum.accumulate(place)
    before = np.r_[np.int32(-1), before[:-1]] if len(order) else place
    at = np.maximum(before, 0)
    same = (before >= 0) & (group[of_row[at]] == group[of_row])
    same &= entries.rank[order[at]] == entries.rank[order]
    found = np.empty(len(order), np.int64)
    found[order] = np.where(same, entries.end_ns[order[at]], common_start_ns)
    return found


def own_rank(
    stretches: pl.DataFrame, start_ns: Int64, end_ns: Int64, wait_ns: Int64, split: Bool, since_ns: Int64
) -> Owned:
    """Who owns the window of one rank. All times are of one clock.

    Args:
        stretches: the device's owners, schema `tables.STRETCHES`.
        start_ns: starts of its collectives.
        end_ns: their ends.
        wait_ns: their waiting.
        split: whether the collective is split into waiting and transfer.
        since_ns: for each the instant from which its lateness counts.
    """
    owner, begin, stop = (stretches[name].to_numpy() for name in ("owner", "start_ns", "end_ns"))

    def owned(chosen: Bool) -> Intervals:
        return union(begin[chosen], stop[chosen])

    computation, exposed, copy = (owned(owner == code) for code in (_COMPUTATION, _COMMUNICATION, _COPY))
    arrived = start_ns + wait_ns
    transfer = intersect(union(arrived[split], end_ns[split]), exposed)
    unsplit = subtract(intersect(union(start_ns[~split], end_ns[~split]), exposed), transfer)
    wait = subtract(intersect(union(start_ns[split], arrived[split]), exposed), join(transfer, unsplit))
    rest = subtract(exposed, join(transfer, unsplit, wait))  # of collectives that the summary left out
    unsplit = join(unsplit, rest)
    until = np.maximum(start_ns, since_ns)
    parts = [part.covered_within(since_ns, until) for part in (computation, transfer, unsplit, wait, copy)]
    return Owned(
        transfer_ns=transfer.total_ns,
        unsplit_ns=unsplit.total_ns,
        wait_ns=wait.total_ns,
        exposed_wait_ns=exposed.covered_within(start_ns, arrived),
        before_ns=(*parts, until - since_ns - sum(parts)),
    )


class Lateness(Struct, frozen=True):
    """Why the last rank of each entry came last (docs/ranks.md).

    Attributes:
        before_ns: the last rank's owners since its group was last in step, a column per `PARTS`.
        excess_ns: how much of each it had more than the other ranks' lower median.
        inherited_ns: of the lead, what it had itself waited for others.
        own_ns: the rest.
    """

    before_ns: Int64
    excess_ns: Int64
    inherited_ns: Int64
    own_ns: Int64


def explain(entries: Entries, waits: Waits, before_ns: Sequence[Ints]) -> Lateness:
    """Compare the last rank of each entry with the others.

    Args:
        entries: the matched collectives.
        waits: their waits.
        before_ns: per entry of `PARTS`, by row.
    """
    other = np.ones(len(entries.of_row), bool)
    other[waits.last_row] = False
    segment, count = entries.of_row[other], len(entries.begin)
    mine = np.zeros((count, len(PARTS)), np.int64)
    more = np.zeros_like(mine)
    for at, values in enumerate(before_ns):
        mine[:, at] = values[waits.last_row]
        more[:, at] = lower_medians(values[other], segment, count)
    more = mine - more
    inherited = np.minimum(waits.lead_ns, np.maximum(more[:, PARTS.index("wait")], 0))
    return Lateness(mine, more, inherited, waits.lead_ns - inherited)
