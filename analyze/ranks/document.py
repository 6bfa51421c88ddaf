"""The figures of a job as plain dictionaries: the contract of the JSON document, all times in ns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import asdict

from analyze.arrays import Int64
from analyze.ranks.joined import Joined
from analyze.ranks.kinds import KINDS, SAID_BY
from analyze.ranks.pipeline import Stage, measure_pipeline
from analyze.ranks.rounds import LeftOut
from analyze.ranks.standing import Standing
from analyze.ranks.waits import PARTS


def job_document(joined: Joined | None, standing: Sequence[Standing], left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Everything that was measured of a job; of no job at all the files that were left out."""
    out = [[one.path, one.reason] for one in left_out]
    if joined is None:
        return {
            "world_size": None, "ranks_present": [], "ranks_missing": None, "left_out": out, "matched_by": {},
            "common_window_ns": None, "clock_uncertainty_ns": None, "stragglers": [], "ranks": {}, "collectives": [],
            "waits_fit": True, "pipeline": [],
        }  # fmt: skip
    return {
        "world_size": joined.world,
        "ranks_present": joined.ranks,
        "ranks_missing": joined.ranks_missing,
        "left_out": out,
        "matched_by": {joined.groups[group].key: how for group, how in sorted(joined.how.items())},
        "common_window_ns": joined.window_ns,
        "clock_uncertainty_ns": joined.clocks.uncertainty_ns,
        "waits_fit": joined.waits.fits,
        "stragglers": [one.rank for one in straggler_order(standing)] if joined.whole else [],
        "ranks": {str(one.rank): _rank(joined, at, one) for at, one in enumerate(standing)},
        "collectives": list(_collectives(joined)),
        "pipeline": [_stage(one) for one in measure_pipeline(joined)],
    }


def _stage(one: Stage) -> dict[str, Any]:
    return {**asdict(one), "steps": [{**asdict(step), "bubble_ns": step.bubble_ns} for step in one.steps]}


def straggler_order(standing: Sequence[Standing]) -> list[Standing]:
    """Ranks by own lateness, then by the exposed wait that they cause, then by number."""
    return sorted(standing, key=lambda one: (-one.own_ns, -one.caused_exposed_wait_ns, one.rank))


def _rank(joined: Joined, at: int, one: Standing) -> dict[str, Any]:
    file, owned = joined.files[at].file, joined.owned[at]
    steps = joined.files[at].frames["step"]
    return {
        "path": file.path,
        "rank_from": file.rank_from,
        "clock_offset_ns": int(joined.clocks.offset_ns[at]),
        "clock_component": int(joined.clocks.component[at]),
        "window_ns": file.window_ns,
        "window_start_ns": int(file.window_start_ns or 0) - int(joined.clocks.offset_ns[at]),
        "computation_ns": file.computation_ns,
        "exposed_communication_ns": file.exposed_communication_ns,
        "exposed_copy_ns": file.exposed_copy_ns,
        "idle_ns": file.idle_ns,
        "communication_ns": file.communication_ns,
        "exposed_wait_ns": owned.wait_ns,
        "exposed_transfer_ns": owned.transfer_ns,
        "exposed_unsplit_ns": owned.unsplit_ns,
        "steps": dict(steps.select("name", "dur_ns").iter_rows()),
        "late_because_ns": one.late_because_ns,
        "collectives": one.collectives,
        "communication_sum_ns": one.communication_sum_ns,
        "wait_ns": one.wait_ns,
        "transfer_ns": one.transfer_ns,
        "unsplit_ns": one.unsplit_ns,
        "times_last": one.times_last,
        "times_last_decided": one.times_last_decided,
        "caused_wait_ns": one.caused_wait_ns,
        "caused_exposed_wait_ns": one.caused_exposed_wait_ns,
        "alone_ns": one.alone_ns,
        "own_ns": one.own_ns if joined.whole else None,
    }


def _collectives(joined: Joined) -> Iterator[dict[str, Any]]:
    entries, waits = joined.entries, joined.waits
    stop = np.r_[entries.begin[1:], len(entries.of_row)] if len(entries.begin) else entries.begin
    present = set(joined.ranks)
    for at, (begin, end) in enumerate(zip(entries.begin.tolist(), stop.tolist(), strict=True)):
        group = joined.groups[entries.group[at]]
        ranks = entries.rank[begin:end].tolist()
        size = int(joined.rates.size_bytes[at])
        found: dict[str, Any] = {
            "group": group.key,
            "dimension": group.dimension,
            "index": int(entries.index[at]),
            "kind": KINDS[entries.kind[at]],
            "kind_from": SAID_BY[entries.row_said_by[begin]],
            "description": group.description,
            "bytes": size if size >= 0 else None,
            "ranks": ranks,
            "missing": None if group.members is None else sorted(set(group.members) - present),
            "matched_by": joined.how[int(entries.group[at])],
            "split": bool(waits.split[at]),
            "start_ns": _by_rank(ranks, entries.start_ns[begin:end]),
            "duration_ns": _by_rank(ranks, entries.end_ns[begin:end] - entries.start_ns[begin:end]),
            "end_spread_ns": int(waits.spread_ns[at]),
        }
        if entries.mismatch[at]:
            found["mismatch"] = sorted({KINDS[kind] for kind in entries.row_kind[begin:end].tolist()})
        if waits.split[at]:
            found |= _split(joined, at, ranks, slice(begin, end))
        yield found


def _split(joined: Joined, at: int, ranks: list[int], rows: slice) -> dict[str, Any]:
    waits, late, rates = joined.waits, joined.lateness, joined.rates
    duration = joined.entries.end_ns[rows] - joined.entries.start_ns[rows]
    found = {
        "last": int(waits.last[at]),
        "last_arrival_ns": int(waits.arrival_ns[at]),
        "lead_ns": int(waits.lead_ns[at]),
        "wait_ns": _by_rank(ranks, waits.wait_ns[rows]),
        "early_end_ns": int(waits.early_ns[at]),
        "data_ns": int(waits.data_ns[at]),
        "transfer_ns": _by_rank(ranks, duration - waits.wait_ns[rows]),
        "exposed_wait_ns": _by_rank(ranks, joined.exposed_wait_ns[rows]),
        "decided": bool(waits.decided[at]),
        "before_ns": dict(zip(PARTS, late.before_ns[at].tolist(), strict=True)),
        "excess_ns": dict(zip(PARTS, late.excess_ns[at].tolist(), strict=True)),
        "inherited_ns": int(late.inherited_ns[at]) if joined.whole else None,
        "own_ns": int(late.own_ns[at]) if joined.whole else None,
    }
    if rates.busbw[at] >= 0:
        found |= {"algbw_bytes_per_s": int(rates.algbw[at]), "busbw_bytes_per_s": int(rates.busbw[at])}
    return found


def _by_rank(ranks: list[int], values: Int64) -> dict[str, int]:
    return {str(rank): value for rank, value in zip(ranks, values.tolist(), strict=True)}
