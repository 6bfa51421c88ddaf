"""Pipeline stages: what each computes, and what it waits for its neighbours (ranks.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyze.ranks.joined import Joined
from analyze.ranks.kinds import KINDS, RECV, Bool

_P2P = ("send", "recv", "sendrecv")


@dataclass(frozen=True, slots=True)
class Stage:
    """One rank's place in its pipeline.

    Attributes:
        rank: the rank.
        group: the pipeline.
        stage: its place, counted from 0.
        stages: how many there are.
        busy_ns: computation in the window.
        wait_ns: exposed waiting for sends and receives.
        idle_ns: idle time in the window.
        window_ns: the window.
        receives: receives in each step, where all steps have as many; None otherwise.
        split: its sends and receives could be matched in pairs.
    """

    rank: int
    group: str
    stage: int
    stages: int
    busy_ns: int
    wait_ns: int
    idle_ns: int
    window_ns: int
    receives: int | None
    split: bool

    @property
    def bubble_share(self) -> float | None:
        """Waiting for neighbours and idle time, of the window; None where waiting is not known."""
        if not self.split or not self.window_ns:
            return None
        return (self.wait_ns + self.idle_ns) / self.window_ns

    @property
    def ideal_share(self) -> float | None:
        """The bubble of a pipeline of equal stages with so many microbatches."""
        if not self.receives:
            return None
        return (self.stages - 1) / (self.receives + self.stages - 1)


def measure_pipeline(joined: Joined) -> tuple[Stage, ...]:
    """The stages of all pipeline groups, in order of group and stage; empty where there is none."""
    entries, waits = joined.entries, joined.waits
    found = []
    p2p = np.isin(entries.kind, [KINDS.index(kind) for kind in _P2P])
    for place, group in enumerate(joined.groups):
        if group.dimension != "pp" or group.members is None:
            continue
        mine = entries.group == place
        if not mine.any() or not p2p[mine].all():
            continue
        of_group = mine[entries.of_row]
        for at, rank in enumerate(joined.ranks):
            rows = of_group & (entries.rank == rank)
            if rank not in group.members or not rows.any():
                continue
            file = joined.files[at].file
            split = waits.split[entries.of_row[rows]]
            found.append(
                Stage(
                    rank=rank,
                    group=group.key,
                    stage=group.members.index(rank),
                    stages=len(group.members),
                    busy_ns=file.computation_ns,
                    wait_ns=int(joined.exposed_wait_ns[rows].sum()),
                    idle_ns=file.idle_ns,
                    window_ns=file.window_ns,
                    receives=_receives(joined, at, rows),
                    split=bool(split.all()),
                )
            )
    return tuple(sorted(found, key=lambda one: (one.group, one.stage)))


def _receives(joined: Joined, at: int, rows: Bool) -> int | None:
    """Receives per step, where every step has as many and there are at least two steps."""
    steps = joined.files[at].frames["step"]
    start = joined.entries.start_ns[rows & (joined.entries.row_kind == RECV)]
    if steps.height < 2 or not len(start):
        return None
    begin = steps["start_ns"].to_numpy() - joined.clocks.offset_ns[at]
    counts = np.bincount(np.maximum(np.searchsorted(begin, start, side="right") - 1, 0), minlength=len(begin))
    return int(counts[0]) if (counts == counts[0]).all() and counts[0] else None
