"""The pictures of a report: ledger bar, timeline and roofline, each as one SVG text per theme."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from analyze.findings.states import STATES
from analyze.guard import Guard
from analyze.inert import printable
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.html import looks
from analyze.report.html.roofline import roofline_view
from analyze.report.html.view import breakdown_view
from analyze.report.report import Report
from analyze.report.svg.thumbnail import COLUMNS, LANE, thumbnail
from analyze.report.templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

THEMES = {
    "light": {"page": "#ffffff", "ink": "#1b1f24", "quiet": "#57606a", "line": "#d5d9de", "tile": "#d4d7dc",
              "tile_ink": "#4a5058", "mark": "#0b5cad", "memory": "#a63a00"},
    "dark": {"page": "#0d1117", "ink": "#e6e9ed", "quiet": "#a3acb7", "line": "#363d46", "tile": "#4a515a",
             "tile_ink": "#c3cad3", "mark": "#7cc0ff", "memory": "#ff9c66"},
}  # fmt: skip


def pictures(report: Report) -> Iterator[tuple[str, str, str]]:
    """Name, theme and text of each picture that the report has the figures for."""
    measures, guard = report.measures, Guard()
    views: dict[str, Any] = {
        "ledger": None if report.page.whole is None else breakdown_view(report.page.whole),
        "timeline": guard.make_or("timeline", lambda: thumbnail(measures), None),
        "roofline": guard.make_or("roofline", lambda: roofline_view(measures), None),
    }
    about = {
        "headline": printable(report.page.headline),
        "states": [state for state in STATES if state.idle],
        "generator": f"{TOOL} {program_version()}, report schema {SCHEMA_VERSION}",
    }
    for name, view in views.items():
        if view is not None:
            template = _environment().get_template(f"{name}.svg.j2")
            for theme, colours in THEMES.items():
                yield name, theme, template.render(view=view, theme=colours, **about) + "\n"


@cache
def _environment() -> Environment:
    return environment("analyze.report.svg", looks=looks, lane=LANE, columns=COLUMNS)
