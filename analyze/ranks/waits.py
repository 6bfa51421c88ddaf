"""Waiting and transfer of each kernel, and who owns each rank's window (ranks.md, section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from analyze.ranks.clocks import LEAST_UNCERTAINTY_NS, Clocks
from analyze.ranks.entries import Bool, Entries, lower_medians
from analyze.ranks.events import OWNERS
from analyze.ranks.matching import Int64, lower_median
from analyze.timeline import Intervals, intersect, join, subtract, union

PARTS = ("computation", "transfer", "unsplit", "wait", "copy", "idle")
_US = 1000
EARLY_SHARE = 0.05  # of symmetric collectives that end before their last arrival: more, and clocks or matches are wrong
_COMPUTATION, _COMMUNICATION, _COPY = (OWNERS.index(name) for name in ("computation", "communication", "copy"))


@dataclass(frozen=True)
class Waits:
    """Arrivals and waits; times are common. Arrays of entries hold nothing to use where `split` is false.

    Attributes:
        start_ns: start of each row.
        end_ns: end of each row.
        split: entries in which waiting and data are told apart.
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

    start_ns: Int64
    end_ns: Int64
    split: Bool
    last: Int64
    last_row: Int64
    arrival_ns: Int64
    lead_ns: Int64
    decided: Bool
    data_ns: Int64
    spread_ns: Int64
    early_ns: Int64
    wait_ns: Int64
    fits: bool


@dataclass(frozen=True)
class Owned:
    """Who owns a rank's window.

    Attributes:
        transfer_ns: exposed transfer.
        unsplit_ns: exposed communication that cannot be told apart.
        wait_ns: exposed wait.
        exposed_wait_ns: of the waiting of each of the rank's kernels, what no computation covers.
        before_ns: for each of them the owners of the time since its group was last in step, a column per `PARTS`.
        idle_before_ns: the same of idle time by its parts, a column per idle owner.
    """

    transfer_ns: int
    unsplit_ns: int
    wait_ns: int
    exposed_wait_ns: Int64
    before_ns: Int64
    idle_before_ns: Int64


def uncertainty(entries: Entries, spread_ns: Int64, split: Bool) -> int:
    """Within what the clocks agree: lower median of end spreads, of those collectives that end together by nature."""
    for chosen in (split & (entries.level == 0), split):
        if chosen.any():
            return max(LEAST_UNCERTAINTY_NS, lower_median(spread_ns[chosen]))
    return LEAST_UNCERTAINTY_NS


def measure_waits(entries: Entries, clocks: Clocks, *, common: bool) -> tuple[Waits, int]:
    """The waits of all kernels, and the clocks' uncertainty.

    Args:
        entries: the matched collectives.
        clocks: of the ranks.
        common: the ranks' windows have time in common; without it nothing is split.
    """
    offset = clocks.offset_ns[clocks.at(entries.rank)]
    start, end = entries.raw_start_ns - offset, entries.raw_end_ns - offset
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
        start_ns=start,
        end_ns=end,
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
    computes = entries.rows["computes_at_end"].to_numpy().astype(np.int64)
    holds = waits.split & (entries.highest(computes) == 0)
    group = entries.group[entries.of_row]
    order = np.argsort(entries.rank, kind="stable")  # entries are in order of their groups
    holding = holds[entries.of_row[order]]
    place = np.where(holding, np.arange(len(order)), -1)
    before = np.r_[-1, np.maximum.accumulate(place)[:-1]] if len(order) else place
    key = np.stack((entries.rank[order], group[order]))
    same = (before >= 0) & (key[:, np.maximum(before, 0)] == key).all(axis=0)
    found = np.empty(len(order), np.int64)
    ends = waits.end_ns[order]
    found[order] = np.where(same, ends[np.maximum(before, 0)], common_start_ns)
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
        split: whether it can be told from transfer.
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
    idle = until - since_ns - sum(parts)
    idle_parts = [owned(owner == code).covered_within(since_ns, until) for code in range(_COPY + 1, len(OWNERS))]
    return Owned(
        transfer_ns=transfer.total_ns,
        unsplit_ns=unsplit.total_ns,
        wait_ns=wait.total_ns,
        exposed_wait_ns=exposed.covered_within(start_ns, arrived),
        before_ns=np.stack([*parts, idle], axis=1),
        idle_before_ns=np.stack(idle_parts, axis=1),
    )


@dataclass(frozen=True)
class Lateness:
    """Why the last rank of each entry came last (ranks.md, section 6).

    Attributes:
        before_ns: the last rank's owners since its group was last in step, a column per `PARTS`.
        excess_ns: how much of each it had more than the other ranks' lower median.
        idle_excess_ns: the same of idle time by its parts.
        inherited_ns: of the lead, what it had itself waited for others.
        own_ns: the rest.
    """

    before_ns: Int64
    excess_ns: Int64
    idle_excess_ns: Int64
    inherited_ns: Int64
    own_ns: Int64


def explain(entries: Entries, waits: Waits, before_ns: Int64, idle_before_us: npt.NDArray[np.int32]) -> Lateness:
    """Compare the last rank of each entry with the others.

    Args:
        entries: the matched collectives.
        waits: their waits.
        before_ns: by row, a column per `PARTS`.
        idle_before_us: by row, a column per idle owner, in us: it only says which part is largest.
    """
    other = np.ones(len(entries.of_row), bool)
    other[waits.last_row] = False
    segment, entry_count = entries.of_row[other], len(entries.begin)

    def excess(values: npt.NDArray[np.integer[Any]]) -> Int64:
        columns = [
            values[waits.last_row, at].astype(np.int64)
            - lower_medians(values[other, at].astype(np.int64), segment, entry_count)
            for at in range(values.shape[1])
        ]
        return np.stack(columns, axis=1)

    more = excess(before_ns)
    inherited = np.minimum(waits.lead_ns, np.maximum(more[:, PARTS.index("wait")], 0))
    return Lateness(before_ns[waits.last_row], more, excess(idle_before_us) * _US, inherited, waits.lead_ns - inherited)
