"""Which formats there are, and which one a file name asks for."""

from __future__ import annotations

from pathlib import Path

from analyze.errors import OutputError

SUFFIXES = {".txt": "terminal", ".md": "md", ".markdown": "md", ".json": "json"}
HTML_LATER = "HTML reports are not available yet; use md, json or terminal."


def format_of(path: str | Path) -> str:
    """The format that a file name asks for.

    Raises:
        OutputError: the suffix belongs to no format.
    """
    suffix = Path(path).suffix.lower()
    if suffix in (".html", ".htm"):
        raise OutputError(HTML_LATER)
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: the suffix names no report format.", f"Use one of {', '.join(SUFFIXES)}.")
    return SUFFIXES[suffix]
