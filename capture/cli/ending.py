"""How a command ends: one sentence and an exit code for everything that can go wrong."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from capture.errors import CaptureError

EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130
"""What a shell gives a program that Ctrl-C ended."""


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
        click.echo("Interrupted: nothing half-written is left; recordings that were finished are kept.", err=True)
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
