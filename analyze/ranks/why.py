"""Why a rank comes late: what most of its extra idle time is, and in which work its extra computation lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.ranks.entries import lower_medians
from analyze.ranks.joined import Joined
from analyze.ranks.matching import lower_median
from analyze.ranks.tables import IDLE_OWNERS, OWNERS
from analyze.timeline import union

MOSTLY = 0.5  # of an amount: less does not speak for all
MOST_PEERS = 64  # ranks that a late one is compared with here
_PLACES = ("frame", "op")


class Idling(Struct, frozen=True):
    """What most of a late rank's extra idle time is.

    Attributes:
        cause: part of idle time, see `tables.OWNERS`.
        place: the frame, else the op, in which its host is for most of that; empty where none stands out.
    """

    cause: str
    place: str


class ExtraWork(Struct, frozen=True):
    """Work that a late rank does longer than its peers, over its whole window.

    Attributes:
        category: what its kernels compute.
        ns: how much longer they run than the lower median of the others, their durations added up.
        op: the op that launches most of that, empty where none stands out.
    """

    category: str
    ns: int
    op: str


def idling(joined: Joined, rank: int) -> Idling | None:
    """Of what kind the idle time is that a rank has more than others before the collectives in which it is late.

    Other ranks are compared by their lower median, collective by collective, as everywhere; 64 of them at most.
    None where the rank is late nowhere, or no kind is at least half of what it has more.
    """
    entries, waits = joined.entries, joined.waits
    late = np.flatnonzero(waits.decided & (waits.last == rank))
    if not len(late):
        return None
    count = entries.count[late]
    rows = np.repeat(entries.begin[late] - np.cumsum(count) + count, count) + np.arange(count.sum())
    segment = np.repeat(np.arange(len(late)), count)
    of_rank = entries.rank[rows]
    peers = [other for other in np.unique(of_rank).tolist() if other != rank][:MOST_PEERS]
    chosen = np.isin(of_rank, [rank, *peers])
    rows, segment, of_rank = rows[chosen], segment[chosen], of_rank[chosen]
    idle = np.zeros((len(rows), len(IDLE_OWNERS)), np.int64)
    for one in (rank, *peers):
        mine = of_rank == one
        idle[mine] = _idle_before(joined, one, rows[mine])
    other = of_rank != rank
    more = {
        OWNERS[code]: int((idle[~other, at] - lower_medians(idle[other, at], segment[other], len(late))).sum())
        for at, code in enumerate(IDLE_OWNERS)
    }
    cause = mostly(more)
    if not cause:
        return None
    of_peers = {peer: rows[of_rank == peer] for peer in peers}
    return Idling(cause, _place(joined, rank, cause, more[cause], rows[~other], of_peers))


def mostly(amounts: dict[str, int], *, least_of: int = 0) -> str:
    """What at least half of the positive amounts is, and of another amount; empty where nothing is."""
    positive = {name: ns for name, ns in amounts.items() if ns > 0}
    name = max(positive, key=lambda key: (positive[key], key), default="")
    return name if name and positive[name] >= MOSTLY * max(sum(positive.values()), least_of) else ""


def _before(joined: Joined, rank: int, rows: Int64) -> tuple[Int64, Int64]:
    """From when to when a rank's lateness in some of its rows counts, on its own clock."""
    offset = int(joined.clocks.offset_ns[joined.ranks.index(rank)])
    since = joined.since_ns[rows] + offset
    return since, np.maximum(joined.entries.start_ns[rows] + offset, since)


def _idle_before(joined: Joined, rank: int, rows: Int64) -> Int64:
    """Idle time before some rows of a rank, a column per idle owner."""
    since, until = _before(joined, rank, rows)
    stretches = joined.files[joined.ranks.index(rank)].frames["stretch"]
    owner, begin, end = (stretches[name].to_numpy() for name in ("owner", "start_ns", "end_ns"))
    parts = [union(begin[owner == code], end[owner == code]).covered_within(since, until) for code in IDLE_OWNERS]
    return np.stack(parts, axis=1)


def _place(joined: Joined, rank: int, cause: str, more_ns: int, rows: Int64, of_peers: dict[int, Int64]) -> str:
    """Where a rank's host is for at least half of the idle time of one cause that it has more than its peers."""
    for kind in _PLACES:
        mine = _by_place(joined, rank, cause, kind, rows)
        theirs = [_by_place(joined, peer, cause, kind, of_peer, set(mine)) for peer, of_peer in of_peers.items()]
        found = mostly({name: ns - lower_median(_column(theirs, name)) for name, ns in mine.items()}, least_of=more_ns)
        if found:
            return found
    return ""


def _by_place(
    joined: Joined, rank: int, cause: str, kind: str, rows: Int64, names: set[str] | None = None
) -> dict[str, int]:
    """Idle time of one cause before some rows of a rank, by frame or op; of the names given, or of all."""
    since, until = _before(joined, rank, rows)
    pauses = joined.files[joined.ranks.index(rank)].frames["pause"].drop_nulls(kind)
    pauses = pauses.filter(pl.col("owner") == OWNERS.index(cause))
    if names is not None:
        pauses = pauses.filter(pl.col(kind).is_in(sorted(names)))
    found = {}
    for (name,), mine in pauses.group_by(kind, maintain_order=True):
        spans = union(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy())
        found[str(name)] = int(spans.covered_within(since, until).sum())
    return found


def _column(found: Sequence[dict[str, int]], name: str) -> Int64:
    return np.array([one.get(name, 0) for one in found], np.int64)


def extra_work(joined: Joined, rank: int) -> ExtraWork | None:
    """In which kind of work most of what a rank computes longer than the others lies; None where none stands out."""
    at = joined.ranks.index(rank)
    others = [one.frames["work"] for place, one in enumerate(joined.files) if place != at]
    if not others:
        return None
    by_category = _more(joined.files[at].frames["work"], others, "category")
    category = mostly(by_category)
    if not category:
        return None
    same = pl.col("category") == category
    by_op = _more(joined.files[at].frames["work"].filter(same), [one.filter(same) for one in others], "op")
    return ExtraWork(category, by_category[category], mostly(by_op))


def _more(mine: pl.DataFrame, others: Iterable[pl.DataFrame], key: str) -> dict[str, int]:
    """How much more a rank has of each kind than the lower median of the others."""
    columns = [dict(_summed(other, key)) for other in others]
    return {name: ns - lower_median(_column(columns, name)) for name, ns in _summed(mine, key)}


def _summed(rows: pl.DataFrame, key: str) -> list[tuple[str, int]]:
    return [(str(name), int(ns)) for name, ns in rows.drop_nulls(key).group_by(key).agg(pl.col("ns").sum()).iter_rows()]
