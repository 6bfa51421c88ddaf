"""What the terminal shows: the stage at work on standard error, erased at the end, and tables."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

PIPED_COLUMNS = 80


@contextmanager
def shown_progress(heading: str) -> Iterator[Callable[[str], None]]:
    """Show the heading and the stage; silent where standard error is not a terminal.

    Drawn only when the stage changes: a spinner's thread would take its share of the host while it is measured.

    Yields:
        A function to call with the name of each stage.
    """
    if not sys.stderr.isatty():
        yield lambda _stage: None
        return
    with _own_stderr() as stream:
        console = Console(file=stream, markup=False, highlight=False, emoji=False)
        with Live(Text(heading), console=console, auto_refresh=False, transient=True) as live:
            yield lambda stage: live.update(Text(f"{heading}: {stage}"), refresh=True)


@contextmanager
def _own_stderr() -> Iterator[TextIO]:
    # The profiled pass holds back what goes to descriptor 2; a copy of it keeps the stage out of that.
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (io.UnsupportedOperation, OSError):
        yield sys.stderr
        return
    with open(descriptor, "w", encoding=sys.stderr.encoding, errors="replace") as stream:
        yield stream


def print_table(table: Table) -> None:
    """Print a table on standard output, 80 columns wide where that is not a terminal."""
    width = None if sys.stdout.isatty() else PIPED_COLUMNS
    Console(width=width, markup=False, highlight=False, emoji=False).print(table)
