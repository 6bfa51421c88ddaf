"""Collectives of one kind, group size, dimension and message size together: how long they wait, how fast data moves."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from analyze.arrays import Int64
from analyze.ranks.bandwidth import LATENCY_NS, size_bucket
from analyze.ranks.joined import Joined
from analyze.ranks.kinds import KINDS
from analyze.ranks.matching import lower_median

PAIR = "send_recv"  # a send and its recv, whichever rank has the lower number
_UNEVEN = 1.05  # largest over mean size of an all-to-all: below it the ranks send alike


class Traffic(Struct, frozen=True):
    """Collectives that are alike.

    Attributes:
        kind: all_reduce, all_gather ...; `PAIR` for a send and its recv, "mismatch" where ranks disagree.
        ranks: members of the group, None where not known.
        dimension: parallel dimension of the group.
        bucket_bytes: message size, the power of two below it; None where not recorded.
        count: how many collectives.
        split: how many of them are split into waiting and data.
        wait_ns: waiting of all ranks.
        exposed_wait_ns: of that, what no computation covers.
        unsplit_ns: kernels of all ranks that cannot be split into waiting and data.
        data_p50_ns: lower median of the data time, None where none is split or ranks are missing.
        busbw_p50: lower median of the bus bandwidth in bytes per s, None where it cannot be known.
        uneven: largest over mean size of the median all-to-all, None where even or not known.
    """

    kind: str
    ranks: int | None
    dimension: str
    bucket_bytes: int | None
    count: int
    split: int
    wait_ns: int
    exposed_wait_ns: int
    unsplit_ns: int
    data_p50_ns: int | None
    busbw_p50: int | None
    uneven: float | None


def measure_traffic(joined: Joined) -> tuple[Traffic, ...]:
    """All collectives by kind, group size, dimension and message size; most waiting first."""
    entries, waits = joined.entries, joined.waits
    if not len(entries.begin):
        return ()
    duration = entries.end_ns - entries.start_ns
    wait = np.add.reduceat(waits.wait_ns, entries.begin)
    exposed = np.add.reduceat(np.where(waits.split[entries.of_row], joined.exposed_wait_ns, 0), entries.begin)
    unsplit = np.where(waits.split, 0, np.add.reduceat(duration, entries.begin))
    places: dict[tuple[str, int | None, str, int | None], list[int]] = {}
    for at, size in enumerate(joined.rates.size_bytes.tolist()):
        group = joined.groups[entries.group[at]]
        members = len(group.members) if group.members else None
        bucket = size_bucket(size) if size >= 0 else None
        kind = "mismatch" if entries.mismatch[at] else PAIR if entries.pair[at] else KINDS[entries.kind[at]]
        places.setdefault((kind, members, group.dimension, bucket), []).append(at)
    found = []
    for (kind, members, dimension, bucket), listed in places.items():
        at_these = np.array(listed)
        whole = at_these[waits.split[at_these] & (joined.missing[at_these] == 0)]
        fast = whole[(waits.data_ns[whole] >= LATENCY_NS) & (joined.rates.busbw[whole] >= 0)]
        found.append(
            Traffic(
                kind=kind,
                ranks=members,
                dimension=dimension,
                bucket_bytes=bucket,
                count=len(listed),
                split=int(waits.split[at_these].sum()),
                wait_ns=int(wait[at_these].sum()),
                exposed_wait_ns=int(exposed[at_these].sum()),
                unsplit_ns=int(unsplit[at_these].sum()),
                data_p50_ns=lower_median(waits.data_ns[whole]) if len(whole) else None,
                busbw_p50=lower_median(joined.rates.busbw[fast]) if len(fast) else None,
                uneven=_uneven(joined, at_these) if kind == "all_to_all" else None,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.wait_ns, -one.unsplit_ns, one.kind, one.dimension)))


def _uneven(joined: Joined, at: Int64) -> float | None:
    size, mean = joined.rates.size_bytes[at], joined.rates.mean_bytes[at]
    known = mean > 0
    if not known.any():
        return None
    ratio = float(np.median(size[known] / mean[known]))
    return ratio if ratio >= _UNEVEN else None
