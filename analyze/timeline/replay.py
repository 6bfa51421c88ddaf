"""Replay a recorded run with some of its cost removed: how long would the device have taken?

Every call and activity happens as soon as what it waits for allows, with the recorded delays between them. Unchanged,
that gives back the recorded times. What the file does not hold keeps its recorded length: work of other ranks, of
threads that work side by side, of libraries that wait without an API call.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct, field

from analyze.arrays import Bool, Int64
from analyze.timeline.intervals import NOTHING, Intervals, join
from analyze.timeline.schedule import Schedule
from analyze.trace.nesting import NO_ROW

_NEVER = -(2**60)


class Change(Struct, frozen=True):
    """What is removed from a run. Changes can be joined.

    Attributes:
        host: host time that vanishes, by chain of threads.
        at_once: rows of `Host.waits` that return at once, with what remains of each, in nanoseconds.
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


class Run(Struct, frozen=True):
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
    """Replays one schedule.

    A call that waited for no activity follows the call before it on its chain at a known distance. So the nodes are
    the other calls, which anchor those that follow, and the activities.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    @cached_property
    def _anchors(self) -> Int64:
        """The calls that begin a chain or waited for an activity."""
        calls = self.schedule.calls
        return np.flatnonzero((calls.before == NO_ROW) | (calls.awaited != NO_ROW))

    @cached_property
    def _anchor(self) -> Int64:
        """Per call the anchor at or before it on its chain, by its row in `_anchors`."""
        return np.searchsorted(self._anchors, np.arange(len(self.schedule.calls)), side="right") - 1

    @cached_property
    def _order(self) -> Int64:
        """Anchors and activities in order of recorded time; anchors come before activities."""
        calls, work = self.schedule.calls, self.schedule.work
        time = np.concatenate((calls.time_ns[self._anchors], work.start_ns))
        launching = (calls.blocking[self._anchors] == NO_ROW).astype(np.int64)
        kind = np.concatenate((launching, np.full(len(work), 2)))
        return np.lexsort((np.arange(len(time)), kind, time))

    @cached_property
    def _sources(self) -> list[list[int]]:
        """Per node, in order, the up to three nodes that it follows, `NO_ROW` for none."""
        calls, work, order = self.schedule.calls, self.schedule.work, self._order
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        activity, call = place[len(self._anchors) :], place[self._anchor]
        host = (_of(call, calls.before, NO_ROW), _of(activity, calls.awaited, NO_ROW), np.full(len(calls), NO_ROW))
        device = (
            _of(activity, work.before, NO_ROW),
            _of(call, work.launch, NO_ROW),
            _of(activity, work.across, NO_ROW),
        )
        pairs = zip(host, device, strict=True)
        return [np.concatenate((a[self._anchors], b))[order].tolist() for a, b in pairs]

    def run(self, change: Change | None = None, *, explained_only: bool = False) -> Run:
        """The times under a change.

        Args:
            change: what is removed; nothing where None.
            explained_only: delays for which the file holds no reason are removed too: how far the result then is
                from the record shows how much of the run the graph explains.
        """
        wanted = change or Change()
        dur: Int64 = _least(self.schedule.work.dur_ns, wanted.durations)
        host, since = self._host_delays(wanted, dur)
        device = self._device_delays(wanted, dur, since, explained_only=explained_only)
        delays = [np.concatenate(pair)[self._order].tolist() for pair in zip(host, device, strict=True)]
        start = np.empty(len(self._order), np.int64)
        start[self._order] = _evaluate(self._sources, delays)
        start = start[len(self._anchors) :]
        return Run(start, start + dur)

    def _host_delays(self, change: Change, dur: Int64) -> tuple[tuple[Int64, ...], Int64]:
        """Per anchor the delays after its sources, and per call how long after its anchor it comes."""
        calls = self.schedule.calls
        between = calls.idle_to_ns - calls.idle_from_ns
        rest, awaited = calls.rest_ns.copy(), calls.awaited.copy()
        for chain, gone in change.host.items():
            mine = calls.chain == chain
            between[mine] -= gone.covered_within(calls.idle_from_ns[mine], calls.idle_to_ns[mine])
        if change.at_once:
            hit = np.flatnonzero(np.isin(calls.blocking, list(change.at_once)))
            lasted = calls.time_ns[hit] - calls.idle_to_ns[hit]
            awaited[hit] = NO_ROW
            rest[hit] = np.minimum(lasted, [change.at_once[row] for row in calls.blocking[hit].tolist()])
        own = between + np.maximum(rest, 0)
        steps = own.copy()
        steps[self._anchors] = 0
        reached = np.cumsum(steps)
        since = reached - reached[self._anchors][self._anchor]
        origin = np.where(calls.before == NO_ROW, calls.idle_from_ns, _of(since, calls.before, 0))
        after = _of(dur, awaited, _NEVER) + np.where(awaited == NO_ROW, 0, rest)
        at = self._anchors
        return ((origin + own)[at], after[at], np.full(len(at), _NEVER)), since

    def _device_delays(
        self, change: Change, dur: Int64, since: Int64, *, explained_only: bool
    ) -> tuple[Int64, Int64, Int64]:
        """Per activity its delay after the one before on its stream, its launch's anchor, the one of another stream."""
        work = self.schedule.work
        unexplained = work.unexplained_ns if explained_only else np.zeros_like(work.unexplained_ns)
        gap = _least(work.gap_ns - np.where(work.by_launch, 0, unexplained), change.gaps)
        latency = self._latency(change) - np.where(work.by_launch, unexplained, 0)
        alone = (work.before == NO_ROW) & (work.launch == NO_ROW)
        follows = _of(dur, work.before, _NEVER) + np.where(work.before == NO_ROW, 0, gap)
        return (
            np.where(alone, work.start_ns, follows),
            np.where(work.launch == NO_ROW, _NEVER, latency + _of(since, work.launch, 0)),
            _of(dur, work.across, _NEVER) + np.where(work.across == NO_ROW, 0, work.across_ns),
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


def _of(values: Int64, rows: Int64, none: int) -> Int64:
    """The value of each row, something else for none."""
    found: Int64 = np.append(values, none)[rows]
    return found


def _least(amounts: Int64, shorter: dict[int, int]) -> Int64:
    """The amounts, some of them shortened."""
    found: Int64 = amounts.copy()
    rows = np.fromiter(shorter, np.int64, len(shorter))
    found[rows] = np.minimum(found[rows], np.fromiter(shorter.values(), np.int64, len(shorter)))
    return found


def _evaluate(sources: list[list[int]], delays: list[list[int]]) -> list[int]:
    """The earliest time of each node; every source is an earlier node, or none (-1), whose time is 0."""
    times = [0] * (len(sources[0]) + 1)
    (p, q, r), (x, y, z) = sources, delays
    for i, (a, d, b, e, c, f) in enumerate(zip(p, x, q, y, r, z, strict=True)):
        t = times[a] + d
        u = times[b] + e
        if u > t:  # noqa: PLR1730 - this loop is the whole cost, and max() doubles it
            t = u
        u = times[c] + f
        times[i] = u if u > t else t
    return times[:-1]
