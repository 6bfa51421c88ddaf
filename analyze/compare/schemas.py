"""The contracts of comparisons as JSON Schemas, derived from the types that they are made of."""

from __future__ import annotations

from typing import Any

from analyze.compare.changes import FigureGroup, Side
from analyze.compare.content_changes import Structure
from analyze.compare.gates import GateResult
from analyze.compare.lineup import Row
from analyze.notices import Notice
from analyze.report.plain import contract

_FRAME: dict[str, Any] = {
    "tool": dict[str, str],
    "notices": list[Notice],
    "sections": list[dict[str, Any]],
    "gates": list[GateResult],
}
_OPTIONAL = ("gates",)  # there where some were judged
_PAIR: dict[str, Any] = {
    **_FRAME,
    "a": Side,
    "b": Side,
    "per_step": bool,
    "same_file": bool,
    "equal": bool,
    "groups": list[FigureGroup],
    "structure": Structure,
    "verdict": dict[str, str],
}
_LINEUP: dict[str, Any] = {**_FRAME, "inputs": list[Side], "per_step": bool, "rows": list[Row]}


def pair_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a comparison of two reports."""
    return contract("comparison", _PAIR, _OPTIONAL)


def lineup_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of several reports side by side."""
    return contract("comparison of several reports", _LINEUP, _OPTIONAL)
