"""How long the lists of a page are, and which of them one screen shows."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from analyze.blocks import Block, Page, Section, Table
from analyze.report.report import Document

OPS = "host"
LISTS = ("host", "idle", "work")
"""Sections whose tables are lists of ops, gaps and kernels."""


def lists_on_screen(page: Page) -> set[str]:
    """Ids of the sections with a list that a page shows on one screen."""
    return {
        section.id
        for section in page.sections
        if section.id in LISTS
        and any(isinstance(block, Table) and _is_list(block) and block.brief for block in section.blocks)
    }


def at_most(page: Page, rows: int) -> Page:
    """The page with lists of at most so many rows, on one screen too where they are on it."""
    return replace(page, sections=tuple(_shortened(section, rows) for section in page.sections))


def in_full(document: Document) -> Any:
    """The document, with a page that a terminal shows whole rather than on one screen."""
    return replace(document, page=replace(document.page, full=True))  # type: ignore[type-var]


def _shortened(section: Section, rows: int) -> Section:
    if section.id not in LISTS:
        return section
    return replace(section, blocks=tuple(_cut(block, rows) for block in section.blocks))


def _cut(block: Block, rows: int) -> Block:
    if not isinstance(block, Table) or not _is_list(block):
        return block
    total = max(block.total, len(block.rows))
    return replace(block, rows=block.rows[:rows], brief=rows if block.brief else 0, total=total)


def _is_list(table: Table) -> bool:
    """Whether a table lists the first of many: those know how many there are."""
    return table.total > 0
