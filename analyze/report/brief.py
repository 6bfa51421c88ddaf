"""The least that a person reads of a report: the verdict, the findings' ids, the gates."""

from __future__ import annotations

from collections.abc import Iterator

from analyze.blocks import Advice, Page
from analyze.inert import printable
from analyze.report.report import Document

_SENTENCES = 2


def brief(document: Document) -> str:
    """Two lines of verdict, one with the findings of a trace, one per gate."""
    page = document.page
    first, *more = page.sentences[:_SENTENCES]
    lines = [f"{page.headline.upper()}  {first}", *more, *_findings(page), *page.gates]
    return "".join(f"{printable(line)}\n" for line in lines)


def _findings(page: Page) -> Iterator[str]:
    for advice in (block for section in page.sections for block in section.blocks if isinstance(block, Advice)):
        yield f"Findings: {', '.join(suggestion.id for suggestion in advice.suggestions) or 'none'}"
