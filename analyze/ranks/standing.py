"""What each rank waits, and what it makes others wait."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from analyze.arrays import Int64, Ints
from analyze.ranks.joined import Joined
from analyze.ranks.waits import PARTS


class Standing(Struct, frozen=True):
    """One rank among the others. Times are ns.

    Attributes:
        rank: the rank.
        collectives: its kernels.
        communication_sum_ns: their durations added up.
        wait_ns: of that, waiting.
        transfer_ns: of that, transfer.
        unsplit_ns: of that, collectives that cannot be split.
        times_last: in how many collectives it came last.
        times_last_decided: in how many of them by more than the clocks' uncertainty.
        caused_wait_ns: what others waited where it came last.
        caused_exposed_wait_ns: of that, what no computation covered.
        alone_ns: how long after the second-last it came, added up over decided collectives.
        own_ns: of that, what it did not inherit from other ranks.
        own_common_ns: of that, in collectives whose last rank arrived in the time that all ranks have in common.
        late_because_ns: what it did longer than others before those collectives, by part; empty if in none.
    """

    rank: int
    collectives: int
    communication_sum_ns: int
    wait_ns: int
    transfer_ns: int
    unsplit_ns: int
    times_last: int
    times_last_decided: int
    caused_wait_ns: int
    caused_exposed_wait_ns: int
    alone_ns: int
    own_ns: int
    own_common_ns: int
    late_because_ns: dict[str, int] = field(default_factory=dict)


def standings(joined: Joined) -> tuple[Standing, ...]:
    """Every rank, in order."""
    entries, waits, late, clocks = joined.entries, joined.waits, joined.lateness, joined.clocks
    count = len(clocks.ranks)
    at_row = clocks.at(entries.rank)
    duration = entries.end_ns - entries.start_ns
    split_row = waits.split[entries.of_row]
    wait = waits.wait_ns
    decided = np.flatnonzero(waits.decided)
    last = clocks.at(waits.last)
    begin, end = joined.window
    common = decided[(waits.arrival_ns[decided] >= begin) & (waits.arrival_ns[decided] <= end)]

    def by_rank(place: Int64, values: Ints) -> list[int]:
        total = np.zeros(count, np.int64)
        np.add.at(total, place, values)
        sums: list[int] = total.tolist()
        return sums

    whole, exposed = _others(joined, wait), _others(joined, joined.exposed_wait_ns)
    columns: dict[str, list[int]] = {
        "collectives": np.bincount(at_row, minlength=count).tolist(),
        "communication_sum_ns": by_rank(at_row, duration),
        "wait_ns": by_rank(at_row, np.where(split_row, wait, 0)),
        "transfer_ns": by_rank(at_row, np.where(split_row, duration - wait, 0)),
        "unsplit_ns": by_rank(at_row, np.where(split_row, 0, duration)),
        "times_last": by_rank(last[waits.split], np.ones(int(waits.split.sum()), np.int64)),
        "times_last_decided": by_rank(last[decided], np.ones(len(decided), np.int64)),
        "caused_wait_ns": by_rank(last[waits.split], whole[waits.split]),
        "caused_exposed_wait_ns": by_rank(last[waits.split], exposed[waits.split]),
        "alone_ns": by_rank(last[decided], waits.lead_ns[decided]),
        "own_ns": by_rank(last[decided], late.own_ns[decided]),
        "own_common_ns": by_rank(last[common], late.own_ns[common]),
    }
    because = [by_rank(last[decided], late.excess_ns[decided, part]) for part in range(len(PARTS))]
    found = []
    for at, rank in enumerate(joined.ranks):
        some = columns["times_last_decided"][at] > 0
        found.append(
            Standing(
                rank=rank,
                **{name: values[at] for name, values in columns.items()},
                late_because_ns={name: because[i][at] for i, name in enumerate(PARTS)} if some else {},
            )
        )
    return tuple(found)


def _others(joined: Joined, values: Int64) -> Int64:
    """Of each entry the sum over the ranks that did not come last."""
    entries = joined.entries
    if not len(entries.begin):
        return values[:0]
    return np.add.reduceat(values, entries.begin) - values[joined.waits.last_row]
