"""Colours and patterns of the page: one table for the drawings of Python and for the canvas of the browser."""

from __future__ import annotations

from msgspec import Struct

from analyze import palette
from analyze.findings.states import STATES
from analyze.kernels.categories import CATEGORIES, REST

TILE = 8  # side of a pattern's tile in pixels

GROUP_COLOURS = {
    "GEMM": palette.BLUE,
    "attention": palette.PURPLE,
    "elementwise": palette.SKY,
    "normalization": palette.GREEN,
    "convolution": palette.VERMILION,
    "communication": palette.ORANGE,
    "copies": palette.YELLOW,
    REST: palette.GREY,
}
CATEGORY_COLOURS = {category.name: GROUP_COLOURS[category.group] for category in CATEGORIES}
BUSY_COLOURS = {"computation": palette.SKY, "communication": palette.ORANGE, "copy": palette.YELLOW}
SERIES_COLOURS = (palette.SKY, palette.ORANGE, palette.GREEN, palette.PURPLE, palette.YELLOW, palette.VERMILION)

# Idle time is grey with a pattern, so that it reads without colour and in print. Paths of one tile of `TILE` pixels.
PATTERNS = {
    "input-wait": "M-1 9L9 -1M-1 1L1 -1M7 9L9 7",
    "sync": "M0 0L8 8M8 0L0 8",
    "launch-bound": "M1 1h2v2h-2zM5 5h2v2h-2z",
    "pause": "M0 2H8M0 6H8",
    "allocator": "M2 0V8M6 0V8",
    "compilation": "M0 4H8M4 0V8",
    "first-use": "M-1 -1L9 9M7 -1L9 1M-1 7L1 9",
    "capture": "M0 6L2 2L4 6L6 2L8 6",
    "kernel-gap": "M3 3h2v2h-2z",
    "queued": "M1 4a3 3 0 1 0 6 0a3 3 0 1 0 -6 0",
    "unlinked": "",
    "profiler": "M0 0h4v4h-4zM4 4h4v4h-4z",
}
FILLED = ("launch-bound", "kernel-gap", "profiler")  # their paths are filled, the others' stroked


class Look(Struct, frozen=True):
    """How a part of a whole is drawn.

    Attributes:
        fill: value of an SVG fill.
        state: id of the state with that pattern, empty for plain colours.
    """

    fill: str
    state: str = ""


_BY_LABEL = {state.label: state for state in STATES}


def look_of(label: str, turn: int) -> Look:
    """The look of a part, by its label where that is a state's.

    Args:
        label: of the part.
        turn: its place among the parts, for those that are no states.
    """
    state = _BY_LABEL.get(label)
    if state is None:
        return Look(SERIES_COLOURS[turn % len(SERIES_COLOURS)])
    return Look(f"url(#idle-{state.id})", state.id) if state.idle else Look(BUSY_COLOURS[state.id])
