"""What the window would lose if a cost were gone: replays of the recorded run, alone and together."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Bool, Int64
from analyze.guard import require
from analyze.metrics.blocking_calls import FINAL_SYNC
from analyze.metrics.device_time import MAIN_TIMELINE
from analyze.metrics.foundations import ATTRIBUTION, DELAYS, HOST
from analyze.metrics.precision import ABILITIES, GPU
from analyze.metrics.question import Answers, Question
from analyze.metrics.whatif import attention, collective_changes, copy_changes, device_changes, host_changes
from analyze.metrics.whatif.scenario import Builder, Place, Scenario, WhatIfInputs, places
from analyze.timeline import Change, DeviceTimeline, Replay, Run

_GAPS_TOLD = 5

BUILDERS: dict[str, Builder] = {
    "input": host_changes.input_work,
    "python": host_changes.python_work,
    "copies": lambda inputs: host_changes.waits(inputs, "copy"),
    "waits": lambda inputs: host_changes.waits(inputs, "op"),
    "explicit-waits": lambda inputs: host_changes.waits(inputs, "explicit"),
    "launches": device_changes.launches,
    "allocations": host_changes.allocations,
    "first-use": host_changes.first_use,
    "profiler": host_changes.profiler_time,
    "fp32-products": device_changes.fp32_products,
    "fp32-convolutions": device_changes.fp32_convolutions,
    "asked-precision": device_changes.asked_precision,
    "attention": attention.unfused_attention,
    "chains": device_changes.fusible_chains,
    "casts": device_changes.autocast_casts,
    "inbound-copies": copy_changes.inbound_copies,
    "copies-inside": copy_changes.copies_inside,
    "layout": copy_changes.layout_changes,
    "communication": collective_changes.communication,
    "collective-latency": collective_changes.collective_latency,
    "collective-waits": collective_changes.collective_waits,
    "dropout": device_changes.dropout,
    "short-kernels": device_changes.short_kernels,
}


class ShrunkGap(Struct, frozen=True):
    """A gap of the record that a replay shortens.

    Attributes:
        start_ns: its start on the file's own clock.
        length_ns: its length.
        saved_ns: how much of it the replay does without.
        next: name of the activity that ended it.
    """

    start_ns: int
    length_ns: int
    saved_ns: int
    next: str


class Savings:
    """Replays on the headline device. Without a device nothing can be saved.

    Attributes:
        window_ns: the recorded window.
    """

    def __init__(self, inputs: WhatIfInputs | None, line: DeviceTimeline | None) -> None:
        self._inputs = inputs
        self._line = line
        self.window_ns = line.window_ns if line else 0
        self._scenarios: dict[str, Scenario | None] = {}
        self._windows: dict[tuple[str, ...], int] = {}

    def scenario(self, name: str) -> Scenario | None:
        """The cost and its removal, None where the run has none of it."""
        if name not in self._scenarios:
            self._scenarios[name] = BUILDERS[name](self._inputs) if self._inputs else None
        return self._scenarios[name]

    def most_ns(self, *names: str) -> int:
        """What removing some costs can save at most: all that it removes."""
        if self._inputs is None:
            return 0
        work, blocking = self._inputs.schedule.work, self._inputs.host.waits["dur_ns"]
        most = 0
        for name in names:
            change = found.change if (found := self.scenario(name)) else Change()
            most += sum(gone.total_ns for gone in change.host.values())
            most += int(blocking.gather(list(change.at_once)).sum())
            most += _removed(work.dur_ns, change.durations) + _removed(work.gap_ns, change.gaps)
        return most

    def busy_ns(self, *names: str) -> int:
        """How much less the headline device would work, added up over its activities."""
        if self._inputs is None:
            return 0
        work, new = self._inputs.schedule.work, self._joined(names).durations
        return _removed(np.where(self._mine, work.dur_ns, 0), new)

    def saved_ns(self, *names: str, after: tuple[str, ...] = ()) -> int:
        """What removing some costs together takes off the window, others being gone already; not below 0."""
        return max(self._window(after) - self._window((*after, *names)), 0)

    def _window(self, names: tuple[str, ...]) -> int:
        if self._inputs is None:
            return 0
        key = tuple(sorted({name for name in names if self.scenario(name)}))
        if key not in self._windows:
            change = self._joined(key)
            run = self._replay.run(change) if change != Change() else self._recorded
            self._windows[key] = run.window_ns(self._mine)
        return self._windows[key]

    def _joined(self, names: tuple[str, ...]) -> Change:
        change = Change()
        for name in names:
            scenario = self.scenario(name)
            change = change | scenario.change if scenario else change
        return change

    @cached_property
    def deviation(self) -> float:
        """How far the unchanged run is from the record where the file holds no reason for a delay, share of window."""
        if self._inputs is None or not self.window_ns:
            return 0.0
        explained = self._replay.run(explained_only=True).window_ns(self._mine)
        return abs(self.window_ns - explained) / self.window_ns

    @cached_property
    def _replay(self) -> Replay:
        assert self._inputs is not None
        return Replay(self._inputs.schedule)

    @cached_property
    def _recorded(self) -> Run:
        """The unchanged run, which is the record (tests/timeline/test_replay.py)."""
        assert self._inputs is not None
        work = self._inputs.schedule.work
        return Run(work.start_ns, work.start_ns + work.dur_ns)

    @cached_property
    def _mine(self) -> Bool:
        """The activities that the window is about."""
        assert self._inputs is not None
        assert self._line is not None
        rows = self._inputs.rows
        process = pl.col("process").cast(pl.String).fill_null("") == self._line.process
        own = rows.filter(process & (pl.col("device") == self._line.device) & (pl.col("dur_ns") > 0))
        mask = np.zeros(len(self._inputs.schedule.work), dtype=np.bool_)
        mask[own["at"].to_numpy()] = True
        return mask

    def gaps(self, *names: str) -> tuple[ShrunkGap, ...]:
        """The recorded gaps that a removal shortens most, most first."""
        if self._inputs is None or self._line is None:
            return ()
        mine = np.flatnonzero(self._mine)
        before = self._recorded
        idle, saved = self._shortened(names)
        most = [i for i in np.argsort(-saved, kind="stable")[:_GAPS_TOLD].tolist() if saved[i] > 0]
        names_of = self._inputs.schedule.activities["name"].cast(pl.String)
        return tuple(
            ShrunkGap(
                int(before.start_ns[mine[i]] - idle[i]),
                int(idle[i]),
                int(saved[i]),
                names_of[int(mine[i])] or "",
            )
            for i in most
        )

    def places(self, *names: str) -> tuple[Place, ...]:
        """What the gaps stand before that a removal shortens: activity and op, with what each is shortened by."""
        if self._inputs is None or self._line is None:
            return ()
        mine = np.flatnonzero(self._mine)
        idle, saved = self._shortened(names)
        found = pl.DataFrame({"at": mine, "time_ns": saved, "start_ns": self._recorded.start_ns[mine] - idle})
        named = self._inputs.rows.select(pl.col("at").cast(pl.Int64), "name", where="op")
        return places(found.filter(pl.col("time_ns") > 0).join(named, on="at"))

    def _shortened(self, names: tuple[str, ...]) -> tuple[Int64, Int64]:
        """The idle time before each activity of the window as recorded, and what a removal takes off it."""
        mine = np.flatnonzero(self._mine)
        idle = []
        for run in (self._recorded, self._replay.run(self._joined(names))):
            start, reach = run.start_ns[mine], np.maximum.accumulate(run.end_ns[mine])
            idle.append(np.maximum(start - np.concatenate((start[:1], reach[:-1])), 0))
        return idle[0], idle[0] - idle[1]


def _removed(amounts: Int64, shorter: dict[int, int]) -> int:
    """What some amounts lose when they are shortened."""
    rows = np.fromiter(shorter, np.int64, len(shorter))
    return int(np.maximum(amounts[rows] - np.fromiter(shorter.values(), np.int64, len(shorter)), 0).sum())


def _measure(answers: Answers) -> Savings:
    inputs = WhatIfInputs(
        answers.ask(DELAYS),
        answers.ask(ATTRIBUTION),
        answers.ask(GPU),
        answers.ask(ABILITIES),
        answers.definitions,
        answers.selection.host_interval,
        answers.ask(FINAL_SYNC),
    )
    require(answers.ask(HOST), inputs.delays, inputs.work, inputs.gpu, inputs.abilities, inputs.final)
    line = answers.ask(MAIN_TIMELINE)
    return Savings(inputs, line) if line else Savings(None, None)


QUESTION = Question("savings", _measure)
