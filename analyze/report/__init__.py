"""Measures and judgements become a document, and the document becomes text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.report.about import program_version
    from analyze.report.build import build_report
    from analyze.report.files import render, write
    from analyze.report.report import Report

__all__ = ["Report", "build_report", "program_version", "render", "write"]

_LATE = {  # the command line checks its options without Polars
    "Report": "analyze.report.report",
    "build_report": "analyze.report.build",
    "program_version": "analyze.report.about",
    "render": "analyze.report.files",
    "write": "analyze.report.files",
}
__getattr__ = lazy_names(__name__, _LATE)
