"""What the allocator cannot see: the device's memory as `capture` noted it in run.json beside the snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

_RUN_NAME = "run.json"
_MOST_BYTES = 1 << 22


class RecordedBeside(Struct, frozen=True):
    """What was noted when the snapshot was taken.

    Attributes:
        events: events that the device had recorded.
        max_entries: events that the allocator was asked to keep, None where not noted.
        device_free_bytes: free on the device, other processes counted; None where not noted.
        device_total_bytes: of the device; None where not noted.
        peak_requested_bytes: the allocator's own statistic since the recording began; None where not noted.
    """

    events: int
    max_entries: int | None
    device_free_bytes: int | None
    device_total_bytes: int | None
    peak_requested_bytes: int | None


def recorded_beside(path: str | Path) -> RecordedBeside | None:
    """The notes of the run that made a snapshot, None where there are none or they are another file's."""
    place = Path(path)
    beside = place.parent / _RUN_NAME
    try:
        if str(path) == "-" or not beside.is_file() or beside.stat().st_size > _MOST_BYTES:
            return None
        document = orjson.loads(beside.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    noted = document.get("snapshot") if isinstance(document, dict) else None
    if not isinstance(noted, dict) or noted.get("file") != place.name:
        return None
    return RecordedBeside(
        events=_whole(noted, "events") or 0,
        max_entries=_whole(noted, "max_entries"),
        device_free_bytes=_whole(noted, "device_free_bytes"),
        device_total_bytes=_whole(noted, "device_total_bytes"),
        peak_requested_bytes=_whole(noted, "peak_requested_bytes"),
    )


def _whole(noted: dict[str, Any], key: str) -> int | None:
    value = noted.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None
