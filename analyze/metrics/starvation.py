"""Steps at whose input the device stands idle while the host waits for the loader's workers."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.metrics.device_time import MAIN_TIMELINE
from analyze.metrics.foundations import HOST
from analyze.metrics.question import Question
from analyze.metrics.whatif.loading import FROM_WORKERS, PINNING
from analyze.timeline import DeviceTimeline, Host, intersect, spans, subtract
from analyze.timeline.intervals import NOTHING, Intervals
from analyze.trace import Trace, matching, timed_rows

_STARVED = 0.1  # of a step: idle time inside the wait for workers from which on it counts


class Starvation(Struct, frozen=True):
    """What the loader's workers deliver against what the steps take.

    Attributes:
        steps: recorded steps on the threads that wait.
        starved: of them, those in which the device idles for a tenth of the step inside such waits.
        idle_ns: idle time inside the waits of starved steps.
        wall_ns: time of the starved steps.
    """

    steps: int = 0
    starved: int = 0
    idle_ns: int = 0
    wall_ns: int = 0

    @property
    def share(self) -> float:
        """Starved steps of all, 0..1."""
        return self.starved / self.steps if self.steps else 0.0

    @property
    def times(self) -> float:
        """How many times as fast batches would have to come for the device not to wait; infinite for no other time."""
        work = self.wall_ns - self.idle_ns
        return self.wall_ns / work if work > 0 else float("inf")


def measure_starvation(trace: Trace, host: Host, line: DeviceTimeline | None) -> Starvation:
    """The starved steps of a device, nothing where the loader has no workers.

    A wait that another thread fills by pinning memory is not the workers'.
    """
    loading = timed_rows(host.loading)
    waits = loading.filter(matching(loading["name"], FROM_WORKERS))
    steps = trace.steps.filter(pl.col("thread").is_in(waits["thread"].unique().implode()))
    if line is None or not waits.height or not steps.height:
        return Starvation()
    waited = intersect(subtract(spans(waits), _pinning(trace, waits)), line.gaps)
    start, wall = steps["start_ns"].to_numpy(), steps["wall_ns"].to_numpy()
    idle = waited.covered_within(start, start + wall)
    hit = idle >= np.maximum(_STARVED * wall, 1)
    return Starvation(steps.height, int(hit.sum()), int(idle[hit].sum()), int(wall[hit].sum()))


def _pinning(trace: Trace, waits: pl.DataFrame) -> Intervals:
    """Instants at which threads that do not wait for workers pin memory."""
    calls = timed_rows(trace.runtime)
    others = ~pl.col("thread").is_in(waits["thread"].unique().implode())
    rows = calls.filter(matching(calls["name"], PINNING) & others)
    return spans(rows) if rows.height else NOTHING


QUESTION = Question("starvation", lambda a: measure_starvation(a.trace, a.ask(HOST), a.ask(MAIN_TIMELINE)))
