"""The pictures of a report into a folder."""

from __future__ import annotations

from pathlib import Path

from analyze.errors import OutputError
from analyze.report.files import refuse_no_folder, refuse_others, write_text
from analyze.report.report import Report
from analyze.report.svg.pictures import THEMES, pictures

NAMES = ("ledger", "timeline", "roofline")


def check_folder(folder: str | Path, *, force: bool = False) -> None:
    """Refuse a folder for pictures before a long file is read.

    Raises:
        OutputError: it is a file, or holds pictures of these names that are not from here.
    """
    refuse_no_folder(folder)
    for name in NAMES:
        for theme in THEMES:
            refuse_others(Path(folder) / f"{name}-{theme}.svg", force=force)


def write_pictures(report: Report, folder: str | Path, *, force: bool = False) -> list[str]:
    """Write each picture as NAME-light.svg and NAME-dark.svg.

    Args:
        report: the report; a picture for which it has no figures is left out.
        folder: where to; it is made where it is missing.
        force: replace any file.

    Returns:
        The names of the pictures that were written.

    Raises:
        OutputError: a file there is not from here, or the folder cannot be written.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}.", "Check the folder.") from error
    written: dict[str, None] = {}
    for name, theme, text in pictures(report):
        write_text(text, place / f"{name}-{theme}.svg", force=force)
        written[name] = None
    return list(written)
