"""What could be removed from a run, and where it stands: the common shape of all what-ifs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.gpus import Abilities, Gpu
from analyze.metrics.causes import Delays
from analyze.metrics.whatif.dispatch import Dispatch, dispatch_of
from analyze.metrics.whatif.sdpa import MathAttention
from analyze.settings import Definitions
from analyze.timeline import Change, Host, Intervals, Schedule, build_schedule, intersect, spans, subtract, union
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import OP
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW

_PLACES = 8
INBOUND = r"HtoD|HostToDevice"


class Place(Struct, frozen=True):
    """Where a cost arises.

    Attributes:
        name: API call, kernel, op or range.
        where: the Python frame or the op around it, empty where neither was recorded.
        count: how many.
        time_ns: their time added up.
        at_ns: start of the longest one, on the file's own clock.
    """

    name: str
    where: str
    count: int
    time_ns: int
    at_ns: int


class Loading(Struct, frozen=True):
    """Waits for a loader's worker processes.

    Attributes:
        waits: how many.
        long: of them, those over ten times the median, where they take most of the time; else 0.
        long_ns: their time added up.
        pinning: calls that allocate or register pinned memory on a thread that launches nothing, where they fill most
            of the waits; `where` is the thread.
    """

    waits: int
    long: int
    long_ns: int
    pinning: Place | None


class Scenario(Struct, frozen=True):
    """A cost and its removal.

    Attributes:
        change: what is removed.
        count: how many calls, activities or stretches of host time.
        time_ns: their time added up.
        places: where they are, most time first.
        note: what the new times rest on, where they are not zero.
        precision: what products would run in, where that is the change; `NOTHING_FASTER` where the GPU has nothing.
        units: the matrix units that they would run on, empty where the GPU has none or its kind is not known.
        steps: names of the steps in which it arises, in order; empty outside steps.
        origin: what most of it comes from, where the records say: compilation, recompilation,
            empty_cache, an op.
        loading: of input, how the workers of the loader are waited for; None where it is loaded on the thread itself.
        kind: of collectives, the kind with most time.
        dispatch: what of it is compiled or in a graph, None where nothing of the run is or nobody asks.
        hidable_ns: of copies to the device, how much of their time computation could hide; None for other costs.
        sdpa: of attention, what PyTorch's own function was given where it ran unfused, None where it did not.
    """

    change: Change
    count: int
    time_ns: int
    places: tuple[Place, ...]
    note: str = ""
    precision: str = ""
    units: str = ""
    steps: tuple[str, ...] = ()
    origin: str = ""
    loading: Loading | None = None
    kind: str = ""
    dispatch: Dispatch | None = None
    hidable_ns: int | None = None
    sdpa: MathAttention | None = None


class WhatIfInputs(Struct, frozen=True, dict=True):
    """Everything that scenarios are made from.

    Attributes:
        delays: what keeps the host from launching.
        work: the selected activities with op and purpose; `at` is their row among all timed ones.
        gpu: model of the headline device, None when it is not known.
        abilities: what that device can multiply with, None when it is not known.
        definitions: limits.
        within: host interval of the selection, None for everything.
        final: row of `host.waits` with the profiler's own synchronisation, None without one.
    """

    delays: Delays
    work: Attribution
    gpu: Gpu | None
    abilities: Abilities | None
    definitions: Definitions
    within: tuple[int, int] | None
    final: int | None

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self.delays.trace

    @property
    def host(self) -> Host:
        """Its host side."""
        return self.delays.host

    @cached_property
    def schedule(self) -> Schedule:
        """Who waits for whom, over all timed activities."""
        return build_schedule(self.trace, self.host)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The selected activities with `at`, names and categories as text."""
        return self.work.work.with_columns(pl.col("name", "category", "kind", "op").cast(pl.String))

    @cached_property
    def waits(self) -> pl.DataFrame:
        """The blocking calls with `row`, `trigger` (op around) and `waits_for` (copy, op or explicit)."""
        calls, blocking = self.schedule.calls, self.host.waits.with_row_index("row")
        at = np.flatnonzero(calls.blocking != NO_ROW)
        awaited = np.full(blocking.height, NO_ROW)
        awaited[calls.blocking[at]] = np.where(
            calls.awaited[at] != NO_ROW, calls.awaited[at], self._launched_before(at)
        )
        copies = self.schedule.activities.select(
            inbound=(pl.col("kind").cast(pl.String) == "memcpy") & pl.col("name").cast(pl.String).str.contains(INBOUND)
        )["inbound"]
        inbound = np.append(copies.fill_null(value=False).to_numpy(), False)[awaited]
        trigger = self.trace.timed_ops.names(blocking["thread"], blocking["start_ns"] + blocking["dur_ns"] // 2)
        name = pl.col("name").cast(pl.String)
        inside = (pl.col("trigger") != "") | name.str.contains("(?i)memcpy")
        kind = pl.when("inbound").then(pl.lit("copy")).when(inside).then(pl.lit("op")).otherwise(pl.lit("explicit"))
        return (
            blocking.with_columns(name=name, trigger=trigger.cast(pl.String).fill_null(""), inbound=inbound)
            .with_columns(waits_for=kind)
            .filter(pl.col("why").is_in(("blocking", "copy")))
            .filter(pl.col("row") != (NO_ROW if self.final is None else self.final))
        )

    def begun_within(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that begin in the selection."""
        return rows.filter(pl.col("start_ns").is_between(*self.within)) if self.within else rows

    def _launched_before(self, at: Int64) -> Int64:
        """The activity that was launched right before each call: a wait that found it done was meant for it."""
        launch = self.schedule.work.launch
        activity = np.full(len(self.schedule.calls) + 1, NO_ROW)
        activity[launch[launch != NO_ROW]] = np.flatnonzero(launch != NO_ROW)
        before: Int64 = activity[self.schedule.calls.before[at]]
        return before

    def steps_of(self, time_ns: pl.Series) -> tuple[str, ...]:
        """Names of the steps in which some instants lie, in order."""
        steps = self.trace.steps
        if not steps.height:
            return ()
        starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
        time = time_ns.to_numpy()
        at = np.searchsorted(starts, time, side="right") - 1
        inside = (at >= 0) & (time < ends[np.maximum(at, 0)])
        return tuple(steps["name"].cast(pl.String)[row] for row in np.unique(at[inside]).tolist())

    @cached_property
    def selected(self) -> Intervals | None:
        """The selection on the host, None for everything."""
        return union(np.array([self.within[0]]), np.array([self.within[1]])) if self.within else None

    def host_change(self, by_thread: dict[int, Intervals]) -> Change:
        """Host time that vanishes from the threads that launch or block, inside the selection.

        Calls that waited for the device without a name that says so vanish with the time that they lie in.
        """
        chains: dict[int, list[Intervals]] = {}
        waits = self.host.waits.with_row_index("row").filter(pl.col("why").is_in(("free", "queue")))
        at_once: dict[int, int] = {}
        for thread, gone in by_thread.items():
            if thread in self.schedule.threads and len(gone):
                inside = gone if self.selected is None else intersect(gone, self.selected)
                chains.setdefault(self.schedule.threads[thread], []).append(inside)
                mine = waits.filter(pl.col("thread") == thread)
                start, dur = mine["start_ns"].to_numpy(), mine["dur_ns"].to_numpy()
                lies = inside.covered_within(start, start + dur) == dur
                at_once |= dict.fromkeys(mine.filter(pl.Series(lies, dtype=pl.Boolean))["row"].to_list(), 0)
        return Change(host={c: union(*_ends(sets)) for c, sets in chains.items()}, at_once=at_once)

    def dispatch(self, rows: pl.DataFrame, weight: pl.Series) -> Dispatch | None:
        """What of some activities is compiled or in a graph, each by its weight."""
        return dispatch_of(self.trace, self.work, rows["at"], weight)

    def shortened(self, rows: pl.DataFrame, new_ns: Int64 | None = None) -> Change:
        """Activities with new durations, none at all where not given."""
        new = np.zeros(rows.height, np.int64) if new_ns is None else new_ns
        return Change(durations=dict(zip(rows["at"].to_list(), new.tolist(), strict=True)))

    def without(self, rows: pl.DataFrame) -> Change:
        """Activities gone, with the gap before each and the ops that launched nothing else.

        First use inside those ops stays: what takes their place loads its own modules.
        """
        change = self.shortened(rows) | Change(gaps=dict.fromkeys(rows["at"].to_list(), 0))
        tree = self.work.tree
        all_of, gone_of = (_launched(r["call"], len(tree)) for r in (self.work.work, rows))
        gone = tree.subtree_sum(gone_of)
        idle = np.flatnonzero((tree.kind == OP) & (gone > 0) & (gone == tree.subtree_sum(all_of)))
        calls = tree.calls[idle]
        first_use = spans(self.delays.first_use)
        by_thread = {
            int(key[0]): subtract(union(part["start_ns"].to_numpy(), part["end_ns"].to_numpy()), first_use)
            for key, part in calls.partition_by("thread", as_dict=True).items()
        }
        return change | self.host_change(by_thread)


Builder = Callable[[WhatIfInputs], Scenario | None]


def _launched(calls: pl.Series, total: int) -> Int64:
    """How many activities each call launched."""
    return np.bincount(calls.drop_nulls().to_numpy().astype(np.int64), minlength=total)


def _ends(sets: list[Intervals]) -> tuple[Int64, Int64]:
    return np.concatenate([s.start_ns for s in sets]), np.concatenate([s.end_ns for s in sets])


def places(rows: pl.DataFrame) -> tuple[Place, ...]:
    """The worst places of rows with `name`, `where`, `time_ns` and `start_ns`."""
    grouped = (
        rows.group_by(pl.col("name").cast(pl.String).fill_null(""), pl.col("where").cast(pl.String).fill_null(""))
        .agg(
            count=pl.len(),
            time_ns=pl.col("time_ns").sum(),
            at_ns=pl.col("start_ns").sort_by("time_ns", "start_ns", descending=[True, False]).first(),
        )
        .sort("time_ns", "count", "at_ns", "name", "where", descending=[True, True, False, False, False])
        .head(_PLACES)
    )
    return tuple(Place(**row) for row in grouped.iter_rows(named=True))


def of_activities(rows: pl.DataFrame, change: Change, note: str = "") -> Scenario | None:
    """The scenario of some activities, None without any."""
    if not rows.height:
        return None
    where = places(rows.select("name", "start_ns", time_ns="dur_ns", where="op"))
    return Scenario(change, rows.height, int(rows["dur_ns"].sum()), where, note)
