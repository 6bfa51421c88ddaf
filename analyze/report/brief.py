"""The least that a person reads of a report: the verdict, the findings' ids, the gates."""

from __future__ import annotations

from analyze.inert import printable
from analyze.report.report import Document

_SENTENCES = 2


def brief(document: Document) -> str:
    """Two lines of verdict, one with the findings of a trace, one per gate."""
    page = document.page
    first, *more = page.sentences[:_SENTENCES]
    lines = [f"{page.headline.upper()}  {first}", *more]
    if page.findings is not None:
        lines.append(f"Findings: {', '.join(page.findings) or 'none'}")
    return "".join(f"{printable(line)}\n" for line in (*lines, *page.gates))
