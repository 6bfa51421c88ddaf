"""What every document says about the program that made it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

SCHEMA_VERSION = "2.0"
READ = ("1", "2")  # major versions: what 1.x calls otherwise, no comparison reads
TOOL = "gpuledger"


def program_version() -> str:
    """Version of the installed program, "unknown" when it runs from a bare checkout."""
    try:
        return version(TOOL)
    except PackageNotFoundError:
        return "unknown"
