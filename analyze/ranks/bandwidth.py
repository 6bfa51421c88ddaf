"""Algorithm and bus bandwidth, from data time only (docs/ranks.md).

Source of the factors: NVIDIA/nccl-tests, GetBw of each collective.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Bool, Int64
from analyze.metrics.collectives import element_bytes
from analyze.ranks.entries import Entries
from analyze.ranks.groups import Group
from analyze.ranks.kinds import KINDS

LATENCY_NS = 10_000  # data time below this measures latency
_SECOND_NS = 10**9
_MOST_BYTES = 2**62 // _SECOND_NS
_RING = ("all_gather", "gather", "reduce_scatter", "scatter", "all_to_all")
_OUTPUT = ("all_gather", "gather")


class Rates(Struct, frozen=True):
    """Sizes and rates; arrays of entries with -1 where not known.

    Attributes:
        size_bytes: the message's size as bandwidth is computed from; of uneven all-to-alls the largest of all ranks.
        mean_bytes: the mean over ranks.
        algbw: bytes per second.
        busbw: bytes per second.
    """

    size_bytes: Int64
    mean_bytes: Int64
    algbw: Int64
    busbw: Int64


def factor(kind: str, ranks: int) -> tuple[int, int]:
    """What bus bandwidth is of algorithm bandwidth, as a fraction."""
    if kind == "all_reduce":
        return 2 * (ranks - 1), ranks
    return (ranks - 1, ranks) if kind in _RING else (1, 1)


def message_bytes(events: pl.DataFrame) -> pl.Series:
    """Size of each event's message as bandwidth is computed from it, -1 where not known."""
    each = element_bytes(events["element_type"])
    elements = pl.when(pl.col("kind").is_in(_OUTPUT)).then("out_elements").otherwise("in_elements")
    known = elements.is_between(0, _MOST_BYTES, closed="left")
    size = pl.when(known).then(elements * pl.col("each")).otherwise(-1).fill_null(-1)
    return events.with_columns(each=each).select(size_bytes=size.cast(pl.Int64))["size_bytes"]


def sizes(entries: Entries) -> tuple[Int64, Int64]:
    """Size of each entry's message, and its mean over the ranks; -1 where not known."""
    size = entries.row_bytes
    if not len(entries.begin):
        return size[:0], size[:0]
    whole = entries.lowest(size) >= 0
    mean = np.where(whole, np.add.reduceat(size, entries.begin) // entries.count, -1)
    return np.where(whole, entries.highest(size), -1), mean


def rate(entries: Entries, groups: list[Group], split: Bool, data_ns: Int64, missing: Int64) -> Rates:
    """Bandwidth of each collective that is split, of whose group all ranks are there, and whose size is known."""
    size, mean = sizes(entries)
    algbw, busbw = np.full(len(size), -1, np.int64), np.full(len(size), -1, np.int64)
    for at in np.flatnonzero(split & (missing == 0) & (size >= 0) & (data_ns > 0)).tolist():
        amount, time = int(size[at]) * _SECOND_NS, int(data_ns[at])
        up, down = factor(KINDS[entries.kind[at]], len(groups[entries.group[at]].members or ()))
        algbw[at], busbw[at] = amount // time, amount * up // (time * down)
    return Rates(size, mean, algbw, busbw)


def size_bucket(size: int) -> int:
    """The power of two at or below a size, 0 for none."""
    return 1 << (size.bit_length() - 1) if size > 0 else 0
