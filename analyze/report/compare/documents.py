"""Comparisons of reports as JSON documents, and their contracts."""

from __future__ import annotations

from typing import Any

from analyze.notes import Notice
from analyze.report.compare.changes import Group, Side
from analyze.report.compare.pair import Comparison
from analyze.report.compare.several import Lineup, Row
from analyze.report.compare.structure import Structure
from analyze.report.plain import contract, plain, plain_section
from analyze.report.report import SCHEMA_VERSION, TOOL

_FRAME: dict[str, Any] = {"tool": dict[str, str], "notices": list[Notice], "sections": list[dict[str, Any]]}
_PAIR: dict[str, Any] = {
    **_FRAME,
    "a": Side,
    "b": Side,
    "per_step": bool,
    "same_file": bool,
    "equal": bool,
    "groups": list[Group],
    "structure": Structure,
    "verdict": dict[str, str],
}
_LINEUP: dict[str, Any] = {**_FRAME, "inputs": list[Side], "per_step": bool, "rows": list[Row]}


def pair_document(comparison: Comparison) -> dict[str, Any]:
    """A comparison of two reports."""
    page = comparison.page
    return {
        **_frame(comparison),
        **plain(comparison.changes),
        "verdict": {"id": page.verdict, "headline": page.headline, "sentence": page.sentences[0]},
    }


def lineup_document(lineup: Lineup) -> dict[str, Any]:
    """Several reports side by side."""
    return {
        **_frame(lineup),
        "inputs": plain(lineup.sides),
        "per_step": lineup.per_step,
        "rows": plain(lineup.rows),
        "notices": plain(lineup.notices),
    }


def pair_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of `pair_document`."""
    return contract("comparison", _PAIR)


def lineup_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of `lineup_document`."""
    return contract("comparison of several reports", _LINEUP)


def _frame(found: Comparison | Lineup) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": TOOL, "version": found.version},
        "sections": [plain_section(section) for section in found.page.sections],
    }
