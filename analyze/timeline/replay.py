"""Replay a recorded run with some of its cost removed: how long would the device have taken?

Every call and activity happens as soon as what it waits for allows, with the recorded delays between them. Unchanged,
that gives back the recorded times. What the file does not hold keeps its recorded length: work of other ranks, of
threads that work side by side, of libraries that wait without an API call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from analyze.timeline.intervals import NOTHING, Int64, Intervals, join
from analyze.timeline.schedule import NONE, Bool, Schedule

_NEVER = -(2**60)


@dataclass(frozen=True)
class Change:
    """What is removed from a run. Changes can be joined.

    Attributes:
        host: host time that vanishes, by chain of threads.
        at_once: rows of `Host.blocking` that return at once, with what remains of each, in nanoseconds.
        durations: new durations by activity.
        gaps: activities whose gap after the one before them is at most this long.
    """

    host: dict[int, Intervals] = field(default_factory=dict)
    at_once: dict[int, int] = field(default_factory=dict)
    durations: dict[int, int] = field(default_factory=dict)
    gaps: dict[int, int] = field(default_factory=dict)

    def __or__(self, other: Change) -> Change:
        """Both changes at once; where both shorten the same thing, the shorter holds."""

        def least(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
            return {**a, **{key: min(value, a.get(key, value)) for key, value in b.items()}}

        chains = self.host.keys() | other.host.keys()
        return Change(
            {c: join(self.host.get(c, NOTHING), other.host.get(c, NOTHING)) for c in chains},
            least(self.at_once, other.at_once),
            least(self.durations, other.durations),
            least(self.gaps, other.gaps),
        )


@dataclass(frozen=True)
class Run:
    """Times of a replayed run.

    Attributes:
        start_ns: start per activity, in the order of `Schedule.work`.
        end_ns: end per activity.
    """

    start_ns: Int64
    end_ns: Int64

    def window_ns(self, activities: Bool) -> int:
        """First start to last end of some activities."""
        if not activities.any():
            return 0
        return int(self.end_ns[activities].max() - self.start_ns[activities].min())


class Replay:
    """Replays one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    @cached_property
    def _order(self) -> tuple[Int64, Int64, Int64]:
        """Nodes in order of recorded time (calls come before activities), and where each call and activity stands."""
        calls, work = self.schedule.calls, self.schedule.work
        time = np.concatenate((calls.time_ns, work.start_ns))
        kind = np.concatenate(((calls.blocking == NONE).astype(np.int64), np.full(len(work), 2)))
        order = np.lexsort((np.arange(len(time)), kind, time))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return order, place[: len(calls)], place[len(calls) :]

    def run(self, change: Change | None = None, *, explained_only: bool = False) -> Run:
        """The times under a change.

        Args:
            change: what is removed; nothing where None.
            explained_only: delays for which the file holds no reason are removed too: how far the result then is
                from the record tells how much of the run the graph explains.
        """
        order, _, work_place = self._order
        wanted = change or Change()
        host, device = self._host_edges(wanted), self._device_edges(wanted, explained_only=explained_only)
        edges = [np.concatenate(pair)[order].tolist() for pair in zip(host, device, strict=True)]
        times = _evaluate(edges)
        start = np.array(times, dtype=np.int64)[work_place] if len(work_place) else np.empty(0, np.int64)
        return Run(start, start + self._durations(wanted))

    def _durations(self, change: Change) -> Int64:
        """Duration per activity."""
        dur: Int64 = self.schedule.work.dur_ns.copy()
        for at, ns in change.durations.items():
            dur[at] = min(dur[at], ns)
        return dur

    def _host_edges(self, change: Change) -> tuple[Int64, ...]:
        """Per call: the call before and what lies between, the activity awaited and what lies between, nothing."""
        calls, (_, place, work_place) = self.schedule.calls, self._order
        between = calls.idle_to_ns - calls.idle_from_ns
        rest, awaited = calls.rest_ns.copy(), calls.awaited.copy()
        for chain, gone in change.host.items():
            mine = calls.chain == chain
            between[mine] -= gone.covered_within(calls.idle_from_ns[mine], calls.idle_to_ns[mine])
        if change.at_once:
            hit = np.flatnonzero(np.isin(calls.blocking, list(change.at_once)))
            lasted = calls.time_ns[hit] - calls.idle_to_ns[hit]
            awaited[hit] = NONE
            rest[hit] = np.minimum(lasted, [change.at_once[row] for row in calls.blocking[hit].tolist()])
        origin = np.where(calls.before == NONE, calls.idle_to_ns, 0)
        after = self._durations(change)
        return (
            _places(place, calls.before),
            origin + between + rest,
            _places(work_place, awaited),
            _from(after, awaited) + np.where(awaited == NONE, 0, rest),
            np.full(len(calls), NONE),
            np.full(len(calls), _NEVER),
        )

    def _device_edges(self, change: Change, *, explained_only: bool) -> tuple[Int64, ...]:
        """Per activity: the one before on its stream, its launch, the one of another stream; each with its delay."""
        work, (_, call_place, place) = self.schedule.work, self._order
        dur = self._durations(change)
        unexplained = work.unexplained_ns if explained_only else np.zeros_like(work.unexplained_ns)
        gap = work.gap_ns - np.where(work.by_launch, 0, unexplained)
        latency = self._latency(change) - np.where(work.by_launch, unexplained, 0)
        for at, ns in change.gaps.items():
            gap[at] = min(gap[at], ns)
        alone = (work.before == NONE) & (work.launch == NONE)
        return (
            _places(place, work.before),
            np.where(alone, work.start_ns, _from(dur, work.before) + np.where(work.before == NONE, 0, gap)),
            _places(call_place, work.launch),
            np.where(work.launch == NONE, _NEVER, latency),
            _places(place, work.across),
            _from(dur, work.across) + np.where(work.across == NONE, 0, work.across_ns),
        )

    def _latency(self, change: Change) -> Int64:
        """Per activity the delay behind its launch: a long launch call that vanishes holds up its own work no more."""
        work, calls = self.schedule.work, self.schedule.calls
        latency: Int64 = work.latency_ns.copy()
        late = np.flatnonzero(work.by_launch)
        for chain, gone in change.host.items():
            mine = late[calls.chain[work.launch[late]] == chain]
            inside = gone.covered_within(calls.time_ns[work.launch[mine]], work.call_end_ns[mine])
            latency[mine] -= np.minimum(inside, np.maximum(latency[mine] - self.schedule.latency_ns, 0))
        return latency


def _places(place: Int64, rows: Int64) -> Int64:
    """Where rows stand among the nodes, `NONE` for none."""
    return np.append(place, NONE)[rows]


def _from(amount: Int64, rows: Int64) -> Int64:
    """An amount of each row, `_NEVER` for none."""
    return np.append(amount, _NEVER)[rows]


def _evaluate(edges: Sequence[list[int]]) -> list[int]:
    """The earliest time of each node; every edge leads to an earlier node, or to none (-1), whose time is 0."""
    times = [0] * (len(edges[0]) + 1)
    for i, (a, x, b, y, c, z) in enumerate(zip(*edges, strict=True)):
        t = times[a] + x
        u = times[b] + y
        if u > t:  # noqa: PLR1730 - this loop is the whole cost, and max() doubles it
            t = u
        u = times[c] + z
        times[i] = u if u > t else t
    return times[:-1]
