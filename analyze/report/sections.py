"""The sections of a report on a trace: one question each. A section that raises is left out, and listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from analyze.blocks import Section
from analyze.findings import Diagnosis
from analyze.guard import Guard, present
from analyze.metrics import QUESTIONS, DeviceTime, Measures
from analyze.ranks.alone import alone_section
from analyze.report import advice

_Made = Callable[[], Section | None]


def sections_of(
    guard: Guard, measures: Measures, device: DeviceTime | None, diagnosis: Diagnosis, *, one_screen: bool = False
) -> tuple[Section, ...]:
    """The sections in printing order.

    Args:
        guard: makes them.
        measures: what was measured.
        device: the headline device, None without one.
        diagnosis: what to do first.
        one_screen: leave out what one screen does not show.
    """
    made = (
        guard.make(f"section {name}", how)
        for name, how in _sections(measures, device, diagnosis, one_screen=one_screen)
    )
    return tuple(section for section in made if present(section) and section is not None)


def _sections(
    measures: Measures, device: DeviceTime | None, diagnosis: Diagnosis, *, one_screen: bool
) -> Iterator[tuple[str, _Made]]:
    """Name and maker of each section; a maker gives None where there is nothing to say."""
    for question in QUESTIONS:
        shown = question.on_screen or not one_screen or device is None
        if question.section and shown and (device or question.without_device):
            yield question.key, partial(question.section, measures)
        if device and question is Measures.trust:
            yield "findings", partial(advice.section, diagnosis)
        if device and question is Measures.overlap:
            yield "collectives", partial(alone_section, measures.trace, device)
