"""The steps side by side: one column each, as high as its share of the longest, with its states stacked."""

from __future__ import annotations

from msgspec import Struct

from analyze.findings.states import window_states
from analyze.inert import printable
from analyze.metrics import Measures
from analyze.report.html.looks import Look, look_of
from analyze.units import duration

HEIGHT = 60
_SHOWN = 200


class Piece(Struct, frozen=True):
    """One state of a step: its label and time, and where it is drawn."""

    label: str
    time: str
    top: float
    height: float
    look: Look


class StepColumn(Struct, frozen=True):
    """One step.

    Attributes:
        name: as recorded.
        label: its number where it has one.
        time: what it launched of the headline device's window.
        window_ns: the same in nanoseconds.
        pieces: its states, from the top.
    """

    name: str
    label: str
    time: str
    window_ns: int
    pieces: tuple[Piece, ...]


def step_columns(measures: Measures) -> tuple[StepColumn, ...]:
    """A column per step of the headline device, the first ones where there are very many; empty for one step."""
    ledgers = measures.step_ledgers[:_SHOWN]
    longest = max((ledger.window_ns for ledger in ledgers), default=0)
    if len(ledgers) < 2 or not longest:
        return ()
    found = []
    for ledger in ledgers:
        top, pieces = HEIGHT * (1 - ledger.window_ns / longest), []
        for turn, state in enumerate(window_states(ledger)):
            if state.ns:
                height = HEIGHT * state.ns / longest
                pieces.append(Piece(state.label, duration(state.ns), top, height, look_of(state.label, turn)))
                top += height
        name = printable(ledger.name)
        found.append(
            StepColumn(name, name.rpartition("#")[2], duration(ledger.window_ns), ledger.window_ns, tuple(pieces))
        )
    return tuple(found)
