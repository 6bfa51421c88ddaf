"""How documents show themselves in a notebook: one line as text, the whole report as Markdown and as HTML."""

from __future__ import annotations

import re
from typing import Protocol

from analyze.blocks import Page

_ALERT = re.compile(r"(?m)^> \[!\w+\]\n")  # GitHub draws these as boxes; others show them as text


class Paged(Protocol):
    """A document, as far as a notebook draws it."""

    @property
    def page(self) -> Page:
        """What text formats draw."""
        ...


def markdown(document: Paged) -> str:
    """The document as Markdown that any notebook draws."""
    from analyze.report.to_markdown import render

    return _ALERT.sub("", render(document.page))


def html(document: Paged) -> str:
    """The same as HTML; names from the file are escaped in the Markdown already."""
    return to_html(markdown(document))


def to_html(text: str) -> str:
    """Markdown of this program as HTML, tables and folded parts included."""
    from markdown_it import MarkdownIt

    return f"<div class='gpuledger'>\n{MarkdownIt('commonmark', {'html': True}).enable('table').render(text)}</div>"


class Shown:
    """A document that a notebook draws, and whose `repr` is one line."""

    def __repr__(self: Paged) -> str:
        """What it is of, and the verdict."""
        page = self.page
        return f"<{type(self).__name__}: {page.name}, {page.headline}: {page.sentences[0]}>".replace("\n", " ")

    def _repr_markdown_(self: Paged) -> str:
        return markdown(self)

    def _repr_html_(self: Paged) -> str:
        return html(self)
