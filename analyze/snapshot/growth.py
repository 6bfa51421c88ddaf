"""Blocks that every step adds and nothing takes away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from analyze.notices import NotMeasured
from analyze.snapshot.ranges import Range, find_steps
from analyze.snapshot.replay import NEVER, AllocatorReplay
from analyze.snapshot.stacks import Stacks
from analyze.snapshot.tables import Events

_HOW = "put each iteration into record_function('step'), call prof.step(), and record at least two"


class Growing(Struct, frozen=True):
    """One place whose allocations of several steps are all still there at the end.

    Attributes:
        label: the innermost Python frame outside torch.
        size_bytes: requested bytes, of all steps together.
        count: how many allocations.
        bytes_per_step: what is left of each step, in order.
    """

    label: str
    size_bytes: int
    count: int
    bytes_per_step: tuple[int, ...]


class Growth(Struct, frozen=True):
    """What grows from step to step.

    Attributes:
        steps: names of the steps.
        growing: places with survivors of at least two steps, largest first.
        missing: why it could not be measured, None where it was.
    """

    steps: tuple[str, ...]
    growing: tuple[Growing, ...]
    missing: NotMeasured | None


def measure_growth(events: Events, replay: AllocatorReplay, ranges: Sequence[Range], stacks: Stacks) -> Growth:
    """Find allocations of two or more steps at one place that are still there at the end.

    What one step alone leaves behind (states of an optimizer, caches) does not grow.
    """
    steps = find_steps(ranges)
    if not steps or None in events.time_us:
        why = "the events have no times" if steps else "no range in the recording comes back, so there are no steps"
        return Growth((), (), NotMeasured("growth", why, _HOW))
    survivors = np.flatnonzero(replay.is_alloc & (replay.freed_at == NEVER) & ~replay.gone)
    times = np.array(events.time_us, np.int64)[survivors]
    step_of = np.searchsorted([step.start_us for step in steps], times, side="right") - 1
    inside = (step_of >= 0) & (times <= min(steps[-1].end_us, NEVER))
    left: dict[str, list[int]] = {}
    counts: dict[str, int] = {}
    for i, step in zip(survivors[inside].tolist(), step_of[inside].tolist(), strict=True):
        label = stacks.site(events.stack[i])
        left.setdefault(label, [0] * len(steps))[step] += events.size_bytes[i]
        counts[label] = counts.get(label, 0) + 1
    found = [
        Growing(label, sum(sizes), counts[label], tuple(sizes))
        for label, sizes in left.items()
        if sum(size > 0 for size in sizes) > 1
    ]
    return Growth(
        tuple(step.name for step in steps),
        tuple(sorted(found, key=lambda one: (-one.size_bytes, one.label))),
        None,
    )
