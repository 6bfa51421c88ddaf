"""Standard output, standard error and the terminal, in whatever state they are: full, closed, narrow, not UTF-8."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

from analyze.errors import OutputError
from analyze.inert import lines

DEFAULT_WIDTH = 80
LEAST_WIDTH = 20  # below it the terminal wraps lines: nothing is drawn narrower
_STREAMS = (0, 1, 2)


def prepare_streams() -> None:
    """Make sure that no file gets the number of a closed stream, and that no character stops a message."""
    for number in _STREAMS:
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace" if stream is sys.stderr else "replace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def say(text: str) -> None:
    """Print a message on standard error; one that is full or closed changes nothing."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{lines(text)}\n")
        sys.stderr.flush()


def put(text: str, in_ascii: Callable[[str], str]) -> None:
    """Print a report on standard output.

    Args:
        text: the report.
        in_ascii: the same in ASCII, for an output that is not UTF-8.

    Raises:
        OutputError: standard output is closed, or full.
    """
    if sys.stdout is None:
        raise OutputError("Standard output is closed.", "Pass -o FILE, or --quiet >/dev/null.")
    try:
        sys.stdout.write(text if takes_utf8() else in_ascii(text))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has seen enough; a failed gate is one all the same
        abandon_output()
    except OSError as error:
        raise output_lost(error) from error


def output_lost(error: OSError) -> OutputError:
    """The error for a standard output that takes no more."""
    abandon_output()
    return OutputError(f"Standard output cannot be written: {error.strerror or error}.", "Pass -o FILE.")


def abandon_output() -> None:
    """Let what is left of standard output go, so that the interpreter does not try again at its end."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def takes_utf8() -> bool:
    """Whether standard output holds every character."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "").replace("_", "") == "utf8"


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def terminal_width(most: int) -> int:
    """Columns to fill: COLUMNS where it is set, else those of the terminal; 80 where neither says."""
    with suppress(ValueError):
        asked = int(os.environ.get("COLUMNS", ""))
        if asked > 0:
            return max(min(asked, most), LEAST_WIDTH)
    columns = 0
    if is_terminal():
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(sys.stdout.fileno()).columns
    return max(min(columns or DEFAULT_WIDTH, most), LEAST_WIDTH)
