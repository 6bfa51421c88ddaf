"""The command line of capture: parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence

from capture.cli.ending import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from capture.cli.ending import EXIT_UNUSABLE as EXIT_UNUSABLE
from capture.cli.model import capture as capture
from capture.cli.script import run_script as run_script


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the command `capture`; ends the process with 0, 2 or 130, or as the script ended."""
    import sys

    given = list(sys.argv[1:] if args is None else args)
    if given[:1] == ["run"]:
        run_script.main(given[1:], prog_name="capture run")
    else:
        capture.main(given, prog_name="capture")
