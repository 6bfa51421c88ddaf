"""The verdict where the device window is a small part of a lone step: it speaks of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyze.findings.states import State
from analyze.units import duration, percent

if TYPE_CHECKING:
    from analyze.metrics.lead import Lead

HOST_BOUND = "host-bound"
_AROUND = 0.1  # of the host time around the window: with that much behind it, it is not only before it


def lead_state(lead: Lead) -> State:
    """The host time around the window, as a state of the step."""
    return State(
        id="host-lead",
        label="Host time around the window",
        cause="the host working before or behind all device work",
        verdict=HOST_BOUND,
        ns=lead.around_ns,
    )


def lead_sentence(lead: Lead) -> str:
    """How small a part of the step the window is, and what the host does in the rest."""
    where = "around" if lead.tail_ns > _AROUND * lead.around_ns else "before"
    around = percent(lead.around_ns / lead.step_ns)
    return (
        f"The device window covers {duration(lead.window_ns)}, {percent(lead.window_ns / lead.step_ns)} of the step; "
        f"for {duration(lead.around_ns)}, {around}, the host works {where} it{place_text(lead)}."
    )


def place_text(lead: Lead) -> str:
    """Where the host is, as the end of a sentence, empty where no row covers most of it."""
    if not lead.place:
        return ", mostly outside the ops, ranges and frames that were recorded" if lead.unrecorded else ""
    inner, outer = lead.place[0], lead.place[-1]
    return f", mostly in {inner}" + (f" under {outer}" if outer != inner else "")
