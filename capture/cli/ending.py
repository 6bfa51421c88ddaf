"""How a command ends: one sentence and an exit code for everything that can go wrong."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from capture import output
from capture.errors import CaptureError

EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130
"""What a shell gives a program that Ctrl-C ended."""

INTERRUPTED = "Interrupted: nothing half-written is left; recordings that were finished are kept."
PATIENCE_S = 2.0
"""How long Ctrl-C waits for Python to unwind: an operator of torch cannot be interrupted, and may take minutes."""


@contextmanager
def ending_promptly() -> Iterator[None]:
    """Let Ctrl-C end the process within two seconds, even where the main thread is inside of an operator."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    ended = threading.Event()
    # Python's own handler runs only between two steps of the main thread; the signal's number arrives here at once.
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_end_after_interrupt, args=(reader, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        os.close(writer)
        watcher.join()
        os.close(reader)


def _end_after_interrupt(reader: int, ended: threading.Event) -> None:
    while number := os.read(reader, 1):
        if number[0] == signal.SIGINT and not ended.wait(PATIENCE_S):
            output.abandon()
            os.write(2, (INTERRUPTED + "\n").encode())
            os._exit(EXIT_INTERRUPTED)


@contextmanager
def explained(*, debug: bool) -> Iterator[None]:
    """End the process with 2 or 130 and a sentence where the inside fails; with a traceback where asked for."""
    try:
        yield
    except CaptureError as error:
        if debug:
            traceback.print_exc()
        fail(error.message, error.hint)
    except KeyboardInterrupt:
        click.echo(INTERRUPTED, err=True)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - exit code 1 would read as a failed gate
        if debug:
            traceback.print_exc()
        fail(
            f"Internal error, please report it: {type(error).__name__}: {error}",
            "Add --debug for the traceback.",
        )


@contextmanager
def naming_missing_packages() -> Iterator[None]:
    """Say which package to install where an import inside fails.

    Raises:
        CaptureError: A package that capture needs is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "capture"):
            raise
        raise CaptureError(
            f"capture needs {package}, which is not installed.", "pip install 'gpuledger[capture]'"
        ) from error


def fail(message: str, hint: str) -> NoReturn:
    """Print the sentence and end with 2."""
    click.echo(f"Error: {message}", err=True)
    if hint:
        click.echo(f"Hint: {hint}", err=True)
    sys.exit(EXIT_UNUSABLE)
