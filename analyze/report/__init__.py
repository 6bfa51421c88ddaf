"""Measures and judgements become a document, and the document becomes text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyze.report.build import build_report, program_version
    from analyze.report.files import render, write
    from analyze.report.report import Report

__all__ = ["Report", "build_report", "program_version", "render", "write"]

_LATE = {
    "Report": "analyze.report.report",
    "build_report": "analyze.report.build",
    "program_version": "analyze.report.build",
    "render": "analyze.report.files",
    "write": "analyze.report.files",
}


def __getattr__(name: str) -> Any:
    """Import the heavy names when they are used: the command line checks its options without Polars."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)
