"""Which kernels of different ranks are one collective (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Array, Int64, Ints
from analyze.ranks.kinds import RECV, SEND

ENDS_TOGETHER_NS = 1_000_000  # a matched collective ends within this on all ranks; measured: 1 to 332 us
BELIEVED = 0.9  # of the collectives of several ranks have to fit for the order to be believed
_DIRECT = 2_000_000  # pairs of events up to which shifts are counted one by one
KEPT = ("rank", "kind", "kind_from", "size_bytes", "start_ns", "end_ns", "event", "computes_at_end")


class Matched(Struct, frozen=True):
    """The kernels of all ranks with the collective that each is of.

    Attributes:
        columns: of `KEPT`, in order of entry and rank.
        entry: number of each row's collective.
        group: by entry, the position in the job's groups.
        index: by entry, its number in its group.
        how: by position of the group: seq, order or ends.
    """

    columns: dict[str, Array]
    entry: Ints
    group: Int64
    index: Int64
    how: dict[int, str]


def match(rows: pl.DataFrame) -> Matched:
    """Match the kernels of all ranks, group by group.

    Args:
        rows: columns as `joined` makes them, of all ranks, in order of rank, start, end and event; times with their
            base. The frame is used up: millions of rows are held once.
    """
    group = rows["group"].to_numpy()
    whole = rows.group_by("group").agg(pl.col("seq").null_count() == 0)
    numbered = sorted(group for group, known in whole.iter_rows() if known)
    how = dict.fromkeys(numbered, "seq")
    slot: Ints
    others = sorted(set(whole["group"]) - set(numbered))
    if others:
        slot, index = np.zeros(len(group), np.int64), np.zeros(len(group), np.int64)
        at = np.flatnonzero(np.isin(group, numbered))
        slot[at], index[at] = _by_seq(rows[at]), rows["seq"].gather(at).to_numpy()
        for one in others:
            at = np.flatnonzero(group == one)
            slot[at], how[one] = _unnumbered(rows[at])
            index[at] = slot[at]
    else:
        slot, index = _by_seq(rows), rows["seq"].to_numpy()
    rows = rows.select("group", *KEPT)
    order = np.lexsort((slot, group))  # stable: the ranks of each collective stay in order
    entry, first = _runs(group[order], slot[order])
    begin = order[first]
    group, index = group[begin].astype(np.int64), index[begin].astype(np.int64)
    del slot
    columns = {name: rows.drop_in_place(name).to_numpy()[order] for name in KEPT}
    return Matched(columns, entry, group, index, how)


def _runs(*columns: Ints) -> tuple[Ints, Int64]:
    """Number of the run of equal rows that each row is of, and the first row of each run."""
    changes = np.zeros(len(columns[0]), bool)
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    changes[:1] = True
    return np.cumsum(changes, dtype=np.int32) - np.int32(1), np.flatnonzero(changes)


def _by_seq(rows: pl.DataFrame) -> Ints:
    """By number; sends and receives of one number by their two ranks; what repeats on a rank by its order."""
    kind = rows["kind"].to_numpy()
    p2p = (kind == SEND) | (kind == RECV)
    keys = [rows["group"].to_numpy(), rows["seq"].to_numpy()]
    if p2p.any():
        pair = rows.select(
            pl.min_horizontal("source", "target").alias("low"), pl.max_horizontal("source", "target").alias("high")
        ).fill_null(-1)
        keys += [p2p.astype(np.int64), *(np.where(p2p, pair[name].to_numpy(), -1) for name in ("low", "high"))]
    order = np.lexsort(keys[::-1])  # stable: in each run rows are in order of rank and event
    run, _ = _runs(*(key[order] for key in keys))
    of_rank, first = _runs(run, rows["rank"].to_numpy()[order])
    found = np.empty(len(run), np.int32)
    if len(first) == len(run):
        found[order] = run
        return found
    again = np.arange(len(run)) - first[of_rank]
    apart = np.lexsort((again, run))
    found[order[apart]], _ = _runs(run[apart], again[apart])
    return found


def _unnumbered(rows: pl.DataFrame) -> tuple[Int64, str]:
    """The place of each row's collective in its group, and how it was found: by order, else by ends."""
    signature = pl.col("signature").rank("dense").cast(pl.Int64)
    ordered = rows.with_row_index("at").with_columns(signature=signature).sort("rank", "start_ns", "end_ns", "event")
    slot = _by_order(ordered)
    name = "order"
    if slot is None:
        slot, name = _by_ends(ordered), "ends"
    found = np.empty(rows.height, np.int64)
    found[ordered["at"].to_numpy()] = slot - slot.min()
    return found, name


def _by_order(rows: pl.DataFrame) -> Int64 | None:
    """Places by order, each rank shifted against the one with most events; None where that is not believed."""
    rank, signature, end = (rows[name].to_numpy() for name in ("rank", "signature", "end_ns"))
    ranks, begin, count = np.unique(rank, return_index=True, return_counts=True)
    reference = int(np.argmax(count))  # of equals the first, which is the lowest rank
    base = slice(begin[reference], begin[reference] + count[reference])
    slot, difference = np.empty(len(rank), np.int64), np.zeros(len(ranks), np.int64)
    for at in range(len(ranks)):
        mine = slice(begin[at], begin[at] + count[at])
        shift = 0 if at == reference else _shift(signature[base], end[base], signature[mine], end[mine])
        slot[mine] = np.arange(count[at]) + shift
        ours, theirs = _overlap(count[reference], count[at], shift)
        if len(ours):
            difference[at] = lower_median(end[mine][theirs] - end[base][ours])
    shifted = end - np.repeat(difference, count)
    return slot if _believed(slot, signature, shifted) else None


def _overlap(ours: int, theirs: int, shift: int) -> tuple[Int64, Int64]:
    """Positions of the events of two lists that are paired when the second is shifted against the first."""
    theirs_at = np.arange(max(0, -shift), min(theirs, ours - shift))
    return theirs_at + shift, theirs_at


def _shift(ours: Int64, our_end: Int64, theirs: Int64, their_end: Int64) -> int:
    """The shift with fewest unequal signatures, then least median distance of ends, then least shift."""
    shifts = np.arange(-(len(theirs) - 1), len(ours))
    paired = np.minimum(len(theirs), len(ours) - shifts) - np.maximum(0, -shifts)
    unequal = len(ours) + len(theirs) - paired - _equal(ours, theirs)
    best = shifts[unequal == unequal.min()]

    def distance(shift: int) -> tuple[int, int, int]:
        a, b = _overlap(len(ours), len(theirs), shift)
        return lower_median(np.abs(their_end[b] - our_end[a])), abs(shift), shift

    candidates: list[int] = best.tolist()
    return min(candidates, key=distance)


def _equal(ours: Int64, theirs: Int64) -> Int64:
    """For each shift, in order, how many of the paired events have one signature."""
    size = len(ours) + len(theirs) - 1
    found = np.zeros(size, np.int64)
    direct = len(ours) * len(theirs) <= _DIRECT
    for value in np.intersect1d(ours, theirs):
        a, b = (ours == value).astype(float), (theirs == value)[::-1].astype(float)
        if direct:
            both = np.convolve(a, b)
        else:
            both = np.fft.irfft(np.fft.rfft(a, 2 * size) * np.fft.rfft(b, 2 * size), 2 * size)[:size]
        found += np.rint(both).astype(np.int64)
    return found


def _believed(slot: Int64, signature: Int64, end: Int64) -> bool:
    """Whether nearly all collectives of several ranks have one signature and end together."""
    order = np.argsort(slot, kind="stable")
    slot, signature, end = slot[order], signature[order], end[order]
    begin = np.flatnonzero(np.r_[True, slot[1:] != slot[:-1]])
    several = np.diff(np.r_[begin, len(slot)]) > 1
    alike = np.minimum.reduceat(signature, begin) == np.maximum.reduceat(signature, begin)
    spread = np.maximum.reduceat(end, begin) - np.minimum.reduceat(end, begin)
    fit = (alike & (spread <= ENDS_TOGETHER_NS))[several]
    return bool(fit.sum() >= BELIEVED * len(fit))


def _by_ends(rows: pl.DataFrame) -> Int64:
    """Places by ends: what ends together, is of one kind, and of different ranks, is one collective."""
    ordered = rows.with_row_index("place").sort("end_ns", "rank", "start_ns", "event")
    slot = np.empty(rows.height, np.int64)
    slot[ordered["place"].to_numpy()] = list(_clusters(ordered.select("rank", "kind", "end_ns")))
    return slot


def _clusters(rows: pl.DataFrame) -> Iterator[int]:
    number, ranks, first, of = -1, set[int](), 0, -1
    for rank, kind, end in rows.iter_rows():
        if number < 0 or rank in ranks or kind != of or end - first > ENDS_TOGETHER_NS:
            number, ranks, first, of = number + 1, set(), end, kind
        ranks.add(rank)
        yield number


def lower_median(values: Int64) -> int:
    """The middle value, of an even number the lower one."""
    at = (len(values) - 1) // 2
    return int(np.partition(values, at)[at])
