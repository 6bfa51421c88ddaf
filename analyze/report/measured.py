"""The measures of a trace by the keys under which scripts read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from analyze.guard import AbsentError, present
from analyze.metrics import Measures
from analyze.metrics.step_ledgers import StepWork
from analyze.report.plain import plain

MEASURED: dict[str, Callable[[Measures, int], Any]] = {
    "devices": lambda m, _: m.devices,
    "overlap": lambda m, _: m.overlaps,
    "launches": lambda m, _: m.launches,
    "blocking_calls": lambda m, _: m.stalls,
    "categories": lambda m, _: m.categories,
    "kernels": lambda m, top: m.kernels[:top],
    "activity_times": lambda m, _: _activity_times(m),
    "op_categories": lambda m, _: m.purpose,
    "modules": lambda m, _: m.modules,
    "precision": lambda m, _: m.precision,
    "roofline": lambda m, _: m.roofline,
    "fusion": lambda m, _: m.fusion,
    "ops": lambda m, _: m.host,
    "memory": lambda m, _: m.memory,
    "gaps": lambda m, _: m.gaps,
    "steps": lambda m, _: m.steps,
    "trust": lambda m, _: m.trust,
    "step_ledgers": lambda m, _: m.by_step.ledgers,
    "lead": lambda m, _: m.lead,
}


def measured(measures: Measures, top: int) -> Iterator[tuple[str, Any]]:
    """Every measure under its key; one that could not be made for an internal error has no key."""
    for key, read in MEASURED.items():
        try:
            value = read(measures, top)
        except AbsentError:
            continue
        if present(value):
            yield key, plain(value)


def _activity_times(measures: Measures) -> list[dict[str, Any]]:
    """Every activity name in short: a later comparison has to know that a kernel is not there."""
    in_steps = {(work.name, work.category): work for work in measures.by_step.work}
    found = []
    for kernel in measures.kernels:
        inside = in_steps.get((kernel.name, kernel.category), StepWork(kernel.name, kernel.category, 0, 0))
        found.append(
            {
                "name": kernel.name,
                "category": kernel.category,
                "count": kernel.count,
                "sum_ns": kernel.sum_ns,
                "step_count": inside.count,
                "step_sum_ns": inside.sum_ns,
            }
        )
    return found
