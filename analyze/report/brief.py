"""The least that a person reads of a report: the verdict, the findings' ids, the gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyze.inert import printable
from analyze.report.report import Report

if TYPE_CHECKING:
    from analyze.report.to_json import AnyReport

_SENTENCES = 2


def brief(report: AnyReport) -> str:
    """Two lines of verdict, one with the findings of a trace, one per gate."""
    page = report.page
    first, *more = page.sentences[:_SENTENCES]
    lines = [f"{page.headline.upper()}  {first}", *more]
    if isinstance(report, Report):
        lines.append(f"Findings: {', '.join(finding.id for finding in report.diagnosis.findings) or 'none'}")
    return "".join(f"{printable(line)}\n" for line in (*lines, *page.gates))
