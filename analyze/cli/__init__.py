"""The command line: parse, call, write, exit code. No arithmetic and no frames."""

from analyze.cli.main import cli, main

__all__ = ["cli", "main"]
