"""The run.json of a recording as one side of a comparison: its latency, and nothing that needs the trace."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import fields

from analyze.compare.comparable import Comparable, Judged, RecordedRun, SourceInfo, read_comparable
from analyze.report.about import SCHEMA_VERSION, TOOL
from analyze.report.stored import Stored, read_stored
from analyze.trace.recorded import Recorded, read_recorded
from analyze.trace.stream import name_of

RUN, TRACE = "run.json", "trace.json.gz"
NO_TRACE = "no-trace"


def recorded_file(path: str) -> str:
    """Of a folder that `capture` made its trace, else its run.json; any other path as it is."""
    folder = Path(path)
    if not os.path.isfile(folder / RUN):  # names that are too long are no files
        return path
    return str(folder / (TRACE if os.path.isfile(folder / TRACE) else RUN))


def read_side(path: str | Path) -> Comparable | None:
    """The report or the run.json in a file, None for files that are something else: a trace, perhaps.

    Raises:
        NotAReportError: as `read_comparable`.
    """
    stored = read_stored(path)
    if stored is not None and is_recording(stored):
        return _comparable(stored, name_of(str(path)))
    return read_comparable(path)


def is_recording(stored: Stored) -> bool:
    """Whether a document is what `capture` noted of a run, and no report."""
    return {"latency", "warmup"} <= stored.parts.keys() and "sections" not in stored.parts


def _comparable(stored: Stored, name: str) -> Comparable:
    block: dict[str, Any] = msgspec.json.decode(stored.data)
    found = read_recorded(block)
    assert found is not None
    device = block.get("device")
    gpu = device.get("name") if isinstance(device, dict) and device.get("type") == "cuda" else None
    return Comparable(
        schema_version=SCHEMA_VERSION,
        tool={"name": TOOL},
        trace=SourceInfo(
            name=name,
            sha256=hashlib.sha256(stored.data).hexdigest(),
            device_names=(gpu,) if isinstance(gpu, str) else (),
            recorded=_recording(found),
        ),
        definitions={},
        verdict=Judged(NO_TRACE),
        metrics={},
    )


def _recording(found: Recorded) -> RecordedRun:
    return RecordedRun(**{field.name: getattr(found, field.name) for field in fields(RecordedRun)})
