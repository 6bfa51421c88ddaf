"""Reports into files: the format by suffix, whole or not at all, never over somebody else's file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from analyze.errors import OutputError
from analyze.report.formats import HTML_LATER, format_of
from analyze.report.report import TOOL
from analyze.report.text import printable

if TYPE_CHECKING:
    from analyze.report.to_json import AnyReport

_FORMATS = ("terminal", "md", "json")
_MARK_BYTES = 1 << 14


def render(report: AnyReport, format: str) -> str:  # noqa: A002 - the option's own name
    """The report in a format: terminal, md or json.

    Raises:
        OutputError: no such format.
    """
    match format:  # each renderer is imported when it is used: rich alone takes as long as a small trace
        case "terminal":
            from analyze.report import to_terminal

            return to_terminal.render(report.page)
        case "md":
            from analyze.report import to_markdown

            return to_markdown.render(report.page)
        case "json":
            from analyze.report import to_json

            return to_json.render(report)
        case "html":
            raise OutputError(HTML_LATER)
    raise OutputError(f"There is no report format {format!r}.", f"Formats: {', '.join(_FORMATS)}.")


def write(report: AnyReport, path: str | Path, *, force: bool = False) -> None:
    """Write the report, in the format that the suffix names (.txt, .md, .json).

    Args:
        report: the document.
        path: where to; a file there is replaced when this program made it.
        force: replace any file.

    Raises:
        OutputError: unknown suffix, somebody else's file, or no way to write there.
    """
    form = format_of(path)
    text = render(report, form)
    if form == "terminal":  # on a screen the footer is left out; in a file it tells who made it, and from what
        text += f"\n{printable(report.page.footer)}\n"
    write_text(text, path, force=force)


def write_text(text: str, path: str | Path, *, force: bool = False) -> None:
    """Write a text whole or not at all, over nothing that this program did not make.

    Raises:
        OutputError: somebody else's file, or no way to write there.
    """
    place = Path(path)
    if place.exists() and not force and not _made_by_us(place):
        raise OutputError(f"{path} exists and is no report of {TOOL}.", "Choose another name, or pass --force.")
    try:
        handle, half = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(half).chmod(0o644)
            Path(half).replace(place)
        except BaseException:
            Path(half).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.", "Check the folder.") from error


def _made_by_us(place: Path) -> bool:
    """Whether the file carries the program's name where reports have it: in its last or first lines."""
    try:
        if not place.is_file():
            return False
        with place.open("rb") as file:
            first = file.read(_MARK_BYTES)
            file.seek(max(place.stat().st_size - _MARK_BYTES, 0))
            last = file.read()
    except OSError:
        return False
    return not first or TOOL.encode() in first + last
