"""Whether a file holds a document that an earlier run wrote: told without reading the figures in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from analyze.report.report import TOOL

LIMIT_BYTES = 1 << 26  # the largest report seen has 2 MB; a file beyond this is a trace or no report
_TRACE_KEYS = ("traceEvents", "schemaVersion", "deviceProperties")


class Stored(NamedTuple):
    """A JSON document of this program: its text, and its parts by name."""

    data: bytes
    parts: Mapping[str, msgspec.Raw]


def read_stored(path: str | Path) -> Stored | None:
    """The document in a file, None for files that are something else: a trace, perhaps."""
    data = _read(Path(path))
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return None  # no JSON object: the trace reader says what it is
    if any(key in found for key in _TRACE_KEYS) or not _is_ours(found):
        return None
    return Stored(data, found)


def _read(path: Path) -> bytes | None:
    """The bytes of a small plain file that begins as a JSON object."""
    try:
        if not path.is_file() or path.stat().st_size > LIMIT_BYTES:
            return None
        with path.open("rb") as file:
            head = file.read(1 << 12)
            if not head.lstrip().startswith(b"{") or b'"traceEvents"' in head or b'"schemaVersion"' in head:
                return None
            return head + file.read(LIMIT_BYTES)
    except OSError:
        return None


def _is_ours(found: Mapping[str, msgspec.Raw]) -> bool:
    try:
        tool = msgspec.json.decode(found["tool"], type=dict[str, Any])
    except (KeyError, msgspec.DecodeError):
        return False
    return tool.get("name") == TOOL and "schema_version" in found
