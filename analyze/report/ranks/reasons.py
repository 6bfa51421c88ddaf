"""Why a rank is late, in the words of its own ledger."""

from __future__ import annotations

from analyze.ranks import Joined, Standing
from analyze.ranks.why import extra_work, idling
from analyze.units import duration

_IDLE = {
    "host_data_loading": "while its host waits for the DataLoader",
    "host_sync": "while its host is inside a blocking call",
    "host_op": "while its host dispatches ops",
    "host_other": "while its host runs code outside ops",
    "host_runtime": "while its host is inside CUDA calls that launch nothing",
    "launch_call": "while its host is inside launch calls",
    "launch_delay": "between the launch of work and its start",
    "device_queue": "while work is queued and does not start",
    "unlinked": "before work whose launch was not recorded",
    "profiler": "while the profiler does work of its own",
}
_PARTS = {
    "computation": "it computes {} longer than its peers on average",
    "idle": "it idles {} longer than its peers on average",
    "copy": "it copies {} longer than its peers on average",
    "transfer": "it moves data in other collectives {} longer than its peers on average",
    "unsplit": "it is in other collectives {} longer than its peers on average",
}


def reason(joined: Joined, one: Standing) -> str:
    """What a late rank did longer than the others before it came last, as a clause; empty where nothing stands out."""
    because = {part: ns for part, ns in one.late_because_ns.items() if part in _PARTS and ns > 0}
    if not because:
        return ""
    part, ns = max(because.items(), key=lambda item: item[1])
    clause = _PARTS[part].format(duration(ns // one.times_last_decided))
    if part == "idle":
        return clause + _idle(joined, one.rank)
    return clause + _work(joined, one.rank) if part == "computation" else clause


def _idle(joined: Joined, rank: int) -> str:
    found = idling(joined, rank)
    if found is None:
        return ""
    place = f", mostly in {found.place}" if found.place else ""
    return f", most of it {_IDLE[found.cause]}{place}"


def _work(joined: Joined, rank: int) -> str:
    found = extra_work(joined, rank)
    if found is None or found.ns <= 0:
        return ""
    op = f", most of that launched by {found.op}" if found.op else ""
    return f"; over the whole recording, its {found.category} kernels run {duration(found.ns)} longer than theirs{op}"
