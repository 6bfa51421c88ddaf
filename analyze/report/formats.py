"""The formats of a report, each declared once: its name, the suffixes that ask for it, and what draws it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from analyze.errors import OutputError

if TYPE_CHECKING:
    from analyze.report.report import Document


class Format(Struct, frozen=True):
    """One format.

    Attributes:
        name: as `--report` takes it.
        suffixes: of file names that ask for it.
        render: the text of a document; it imports its renderer when it is called, since rich alone takes as long as
            a small trace.
    """

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Document], str]


def _terminal(document: Document) -> str:
    from analyze.report import to_terminal

    return to_terminal.render(document.page)


def _markdown(document: Document) -> str:
    from analyze.report import to_markdown

    return to_markdown.render(document.page)


def _html(document: Document) -> str:
    from analyze.report.html.render import render

    return render(document)


def _json(document: Document) -> str:
    from analyze.report import to_json

    return to_json.render(document)


FORMATS = (
    Format("terminal", (".txt",), _terminal),
    Format("md", (".md", ".markdown"), _markdown),
    Format("html", (".html", ".htm"), _html),
    Format("json", (".json",), _json),
)
NAMES = tuple(one.name for one in FORMATS)
SUFFIXES = tuple(suffix for one in FORMATS for suffix in one.suffixes)


def find_format(name: str) -> Format:
    """The format of a name.

    Raises:
        OutputError: there is none of that name.
    """
    for one in FORMATS:
        if one.name == name:
            return one
    raise OutputError(f"There is no report format {name!r}.", f"Formats: {', '.join(NAMES)}.")


def format_of(path: str | Path) -> Format:
    """The format that a file name asks for.

    Raises:
        OutputError: the suffix belongs to no format.
    """
    suffix = Path(path).suffix.lower()
    for one in FORMATS:
        if suffix in one.suffixes:
            return one
    raise OutputError(f"{path}: no report format has this suffix.", f"Use one of {', '.join(SUFFIXES)}.")
