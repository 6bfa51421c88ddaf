"""Two traces on one page: their ledgers on one scale, their steps side by side, and both scenes for the script."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from analyze.inert import printable
from analyze.report.html.scene import build_scene
from analyze.report.html.strip import StepColumn, step_columns
from analyze.report.html.view import BreakdownView, breakdown_view
from analyze.report.report import Report


class SideView(Struct, frozen=True):
    """One side: its name, its ledger, and how long its window is beside the longer one, in permille."""

    letter: str
    name: str
    ledger: BreakdownView | None
    width: float
    steps: tuple[StepColumn, ...]


class PairView(Struct, frozen=True):
    """Both sides, the baseline first."""

    sides: tuple[SideView, SideView]


def pair_view(a: Report, b: Report) -> PairView:
    """The ledgers and steps of both sides."""
    wholes = [breakdown_view(one.page.whole) if one.page.whole else None for one in (a, b)]
    longest = max((whole.total_ns for whole in wholes if whole), default=0) or 1
    sides = [
        SideView(
            letter,
            printable(report.trace.name),
            whole,
            1000 * whole.total_ns / longest if whole else 0,
            step_columns(report.measures),
        )
        for letter, report, whole in zip("AB", (a, b), wholes, strict=True)
    ]
    return PairView((sides[0], sides[1]))


def pair_scene(a: Report, b: Report) -> dict[str, Any] | None:
    """Both scenes, None where one of them has nothing to draw."""
    scenes = [build_scene(report) for report in (a, b)]
    if scenes[0] is None or scenes[1] is None:
        return None
    return {"pair": [scene.content for scene in scenes if scene], "labels": ["A", "B"]}
