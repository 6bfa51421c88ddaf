"""Whether a file holds a document that an earlier run wrote, without reading the figures in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from analyze.errors import UnreadableError
from analyze.report.about import TOOL
from analyze.trace.stream import head, is_stream

LIMIT_BYTES = 1 << 26  # the largest report seen has 2 MB; a file beyond this is a trace or no report
_HEAD_BYTES = 1 << 12
_SNAPSHOT_KEY = re.compile(rb'\s*\{\s*"(?:segments|device_traces)"')
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


def is_report(stored: Stored) -> bool:
    """Whether it is one of the documents that `to_json` writes: what `capture` notes has neither of the two keys."""
    return {"sections", "notices"} <= stored.parts.keys()


def _read(path: Path) -> bytes | None:
    """The bytes of a small plain file, or of a pipe, that begin as a JSON object."""
    try:
        stream = is_stream(path)
        if not stream and (not path.is_file() or path.stat().st_size > LIMIT_BYTES):
            return None
        first = head(path, _HEAD_BYTES)
        if not first.lstrip().startswith(b"{") or any(b'"%b"' % key.encode() in first for key in _TRACE_KEYS[:2]):
            return None
        if stream and _SNAPSHOT_KEY.match(first):
            return None
        whole = head(path, LIMIT_BYTES + 1)
        return whole if len(whole) <= LIMIT_BYTES else None
    except (OSError, UnreadableError):
        return None


def _is_ours(found: Mapping[str, msgspec.Raw]) -> bool:
    try:
        tool = msgspec.json.decode(found["tool"], type=dict[str, Any])
    except (KeyError, msgspec.DecodeError):
        return False
    return tool.get("name") == TOOL and "schema_version" in found
