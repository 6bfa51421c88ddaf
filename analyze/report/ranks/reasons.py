"""Why a rank is late, in the words of its own ledger."""

from __future__ import annotations

import numpy as np

from analyze.ranks import Joined, Standing
from analyze.ranks.matching import lower_median
from analyze.units import duration

_MOSTLY = 0.5  # of an excess: less has no single cause
_IDLE = {
    "host_data_loading": "inside DataLoader work",
    "host_sync": "while its host is inside a blocking call",
    "host_op": "while its host dispatches ops",
    "host_other": "while its host runs code outside ops",
    "host_runtime": "while its host is inside CUDA calls that launch nothing",
    "launch_call": "inside launch calls",
    "launch_delay": "between a launch and its start",
    "device_queue": "with work queued that had not started",
    "unlinked": "before work whose launch was not recorded",
    "profiler": "while the profiler works",
}
_PARTS = {
    "computation": "it computes {} longer than its peers",
    "idle": "it idles {} longer than its peers",
    "copy": "it copies {} longer than its peers",
    "transfer": "it moves data in other collectives {} longer than its peers",
    "unsplit": "it is in other collectives {} longer than its peers",
}


def reason(joined: Joined, one: Standing) -> str:
    """What a late rank did longer than the others before it came last, as a clause; empty where nothing stands out."""
    because = {part: ns for part, ns in one.late_because_ns.items() if part in _PARTS and ns > 0}
    if not because:
        return ""
    part, ns = max(because.items(), key=lambda item: item[1])
    clause = _PARTS[part].format(duration(ns))
    if part == "idle":
        cause = _most(one.late_idle_ns)
        return f"{clause}, most of it {_IDLE[cause]}" if cause else clause
    if part == "computation":
        category = _most(category_excess(joined, one.rank))
        return f"{clause}, most of it in {category} kernels" if category else clause
    return clause


def _most(amounts: dict[str, int]) -> str:
    """What at least half of the positive amounts is, empty where nothing is."""
    positive = {name: ns for name, ns in amounts.items() if ns > 0}
    name = max(positive, key=lambda key: positive[key], default="")
    return name if name and positive[name] >= _MOSTLY * sum(positive.values()) else ""


def category_excess(joined: Joined, rank: int) -> dict[str, int]:
    """How much more time of each kind of work a rank has than the lower median of the others, over the whole window."""
    found: dict[str, list[int]] = {}
    mine: dict[str, int] = {}
    for one in joined.files:
        rows = one.frames["category"].filter(one.frames["category"]["step"].is_null())
        for category, ns in rows.select("category", "exclusive_ns").iter_rows():
            if category in ("communication", "memcpy", "memset"):
                continue
            if one.file.rank == rank:
                mine[category] = ns
            else:
                found.setdefault(category, []).append(ns)
    others = len(joined.files) - 1
    if not others:
        return {}
    excess = {}
    for category, ns in mine.items():
        theirs = found.get(category, [])
        excess[category] = ns - lower_median(np.array([*theirs, *[0] * (others - len(theirs))]))
    return excess
