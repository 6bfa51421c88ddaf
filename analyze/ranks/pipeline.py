"""Pipeline stages step by step: what each computes, and what it waits for its neighbours (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from analyze.arrays import Bool, Int64
from analyze.ranks.groups import Group
from analyze.ranks.joined import Joined
from analyze.ranks.kinds import KINDS, RECV
from analyze.ranks.tables import IDLE_OWNERS, OWNERS
from analyze.timeline import Intervals, intersect, union

_P2P = [KINDS.index(kind) for kind in ("send", "recv", "sendrecv")]
_COMPUTATION, _COMMUNICATION = OWNERS.index("computation"), OWNERS.index("communication")
WINDOW = "window"  # in place of steps where the ranks share none


class StageStep(Struct, frozen=True):
    """One step of one stage. Times are ns inside the host's range of the step.

    Attributes:
        name: the step, or `WINDOW`.
        length_ns: length of the step on this rank.
        busy_ns: computation.
        wait_ns: exposed waiting for sends and receives, None where it cannot be split from transfer.
        idle_ns: nothing runs, before the first and behind the last activity of the recording too.
    """

    name: str
    length_ns: int
    busy_ns: int
    wait_ns: int | None
    idle_ns: int

    @property
    def bubble_ns(self) -> int | None:
        """Waiting for neighbours and idle time, None where waiting is not known."""
        return None if self.wait_ns is None else self.wait_ns + self.idle_ns


class Stage(Struct, frozen=True):
    """One rank's place in its pipeline.

    Attributes:
        rank: the rank.
        group: the pipeline.
        stage: its place, counted from 0.
        stages: how many there are.
        steps: the steps that all ranks recorded, or the window.
        microbatches: receives of the last stage in each step, where all steps have as many; None otherwise.
    """

    rank: int
    group: str
    stage: int
    stages: int
    steps: tuple[StageStep, ...]
    microbatches: int | None

    @property
    def all_steps(self) -> StageStep:
        """All steps added up."""
        waits = [one.wait_ns for one in self.steps if one.wait_ns is not None]
        return StageStep(
            name=f"{len(self.steps)} steps",
            length_ns=sum(one.length_ns for one in self.steps),
            busy_ns=sum(one.busy_ns for one in self.steps),
            wait_ns=sum(waits) if len(waits) == len(self.steps) else None,
            idle_ns=sum(one.idle_ns for one in self.steps),
        )

    @property
    def ideal_share(self) -> float | None:
        """The bubble of a pipeline of equal stages with so many microbatches, of a step; None where not countable."""
        if not self.microbatches:
            return None
        return (self.stages - 1) / (self.microbatches + self.stages - 1)


def measure_pipeline(joined: Joined) -> tuple[Stage, ...]:
    """The stages of all pipeline groups, in order of group and stage; empty where there is none."""
    found: list[Stage] = []
    p2p = np.isin(joined.entries.kind, _P2P)
    for place, group in enumerate(joined.groups):
        mine = joined.entries.group == place
        if group.dimension == "pp" and group.members is not None and mine.any() and p2p[mine].all():
            found += _stages(joined, group, mine)
    return tuple(sorted(found, key=lambda one: (one.group, one.stage)))


def _stages(joined: Joined, group: Group, mine: Bool) -> list[Stage]:
    members = group.members or ()
    shared = _shared_steps(joined)
    rows = {rank: np.flatnonzero(mine[joined.entries.of_row] & (joined.entries.rank == rank)) for rank in members}
    last = members[-1]
    microbatches = _receives(joined, last, rows[last], shared) if last in joined.ranks else None
    return [
        Stage(
            rank=rank,
            group=group.key,
            stage=stage,
            stages=len(members),
            steps=_steps(joined, rank, rows[rank], shared),
            microbatches=microbatches,
        )
        for stage, rank in enumerate(members)
        if rank in joined.ranks and len(rows[rank])
    ]


def _shared_steps(joined: Joined) -> list[str]:
    """Names of the steps that all ranks recorded."""
    names = [one.frames["step"]["name"].to_list() for one in joined.files]
    common = set(names[0]).intersection(*names[1:]) if names else set()
    return [name for name in names[0] if name in common] if names else []


def _spans(joined: Joined, rank: int, shared: Sequence[str]) -> tuple[list[str], Int64, Int64]:
    """The steps of a rank on its own clock; its window where there is none."""
    one = joined.files[joined.ranks.index(rank)]
    steps = {name: (start, start + dur) for name, start, dur in one.frames["step"].iter_rows()}
    if not shared:
        window = one.file.window_start_ns or 0, one.file.window_end_ns or 0
        return [WINDOW], np.array([window[0]]), np.array([window[1]])
    return list(shared), np.array([steps[name][0] for name in shared]), np.array([steps[name][1] for name in shared])


def _steps(joined: Joined, rank: int, rows: Int64, shared: Sequence[str]) -> tuple[StageStep, ...]:
    at = joined.ranks.index(rank)
    names, low, high = _spans(joined, rank, shared)
    stretches = joined.files[at].frames["stretch"]
    owner, begin, end = (stretches[name].to_numpy() for name in ("owner", "start_ns", "end_ns"))

    def owned(chosen: Bool) -> Intervals:
        return union(begin[chosen], end[chosen])

    start = joined.entries.start_ns[rows] + joined.clocks.offset_ns[at]
    waiting = intersect(union(start, start + joined.waits.wait_ns[rows]), owned(owner == _COMMUNICATION))
    known = bool(joined.waits.split[joined.entries.of_row[rows]].all())
    parts = [
        intervals.covered_within(low, high).tolist()
        for intervals in (owned(owner == _COMPUTATION), waiting, owned(owner < IDLE_OWNERS.start))
    ]
    return tuple(
        StageStep(name, int(b - a), busy, wait if known else None, int(b - a) - anything)
        for name, a, b, busy, wait, anything in zip(names, low, high, *parts, strict=True)
    )


def _receives(joined: Joined, rank: int, rows: Int64, shared: Sequence[str]) -> int | None:
    """Receives of a rank per step, where there are two steps or more and every one has as many."""
    if len(shared) < 2:
        return None
    _, begin, _ = _spans(joined, rank, shared)
    received = rows[joined.entries.row_kind[rows] == RECV]
    start = joined.entries.start_ns[received] + joined.clocks.offset_ns[joined.ranks.index(rank)]
    place = np.searchsorted(begin, start, side="right") - 1
    counts = np.bincount(place[place >= 0], minlength=len(begin))
    return int(counts[0]) if counts[0] and (counts == counts[0]).all() else None
