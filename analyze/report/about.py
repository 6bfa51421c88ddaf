"""What every document says about the program that made it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

SCHEMA_VERSION = "1.1"
TOOL = "gpuledger"


def program_version() -> str:
    """Version of the installed program, "unknown" when it runs from a bare checkout."""
    try:
        return version(TOOL)
    except PackageNotFoundError:
        return "unknown"


def made_by(version: str) -> dict[str, Any]:
    """The keys that every JSON document begins with.

    Args:
        version: version of the program that measured.
    """
    return {"schema_version": SCHEMA_VERSION, "tool": {"name": TOOL, "version": version}}
