"""On real traces: no launch keeps what its stream held up, and ten nanoseconds change no conclusion."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyze import Trace, build_report
from analyze.metrics.whatif.savings import BUILDERS
from analyze.timeline import Host, build_schedule
from tests.conftest import SHARED

_TRACES = sorted(path for part in ("traces", "more") for path in (SHARED / part).glob("*.json.gz"))
_CLOSE_US = Decimal("0.01")
_SHARE = 0.001  # of the window: the most that a saving may change
_CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime", "Runtime")
_WORK = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
_TOUCH_NS = 100  # instants closer than this are one
_SLOW_NS = 20_500  # a kernel that begins so long after its stream is free, its call still running, waits for the call


@pytest.mark.slow
@pytest.mark.parametrize("path", _TRACES, ids=lambda path: path.name)
def test_what_its_stream_held_up_is_not_pinned_to_its_launch(path: Path) -> None:
    """Recounted row by row: the launch was ready when it had returned, or after the usual latency while it ran."""
    schedule = build_schedule(trace := Trace.load(path), Host(trace))
    rows = schedule.activities.select("start_ns", "launch_start_ns", "launch_end_ns", "kind", "name").rows()
    ends = schedule.activities["end_ns"].to_list()
    wrong = []
    for at in np.flatnonzero(schedule.work.by_launch).tolist():
        start, called, returned, kind, name = rows[at]
        before = int(schedule.work.before[at])
        if before < 0:
            continue
        free = ends[before]
        ready = returned if returned < start + _TOUCH_NS else called + schedule.latency_ns
        slow_call = returned >= start + _TOUCH_NS and str(kind) != "memcpy" and start - free > _SLOW_NS
        if free > ready and not slow_call:
            wrong.append((name, start - free, start - ready))
    assert not wrong


def _read(path: Path) -> Any:
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    return json.loads(text, parse_float=Decimal, strict=False)


def _written(document: Any, folder: Path, shift: random.Random | None) -> Path:
    """The trace with its clock set back to 0, and its calls and activities moved by up to 10 ns each."""
    events = document["traceEvents"] if isinstance(document, dict) else document
    first = min(event["ts"] for event in events if event.get("ph") == "X")
    moved = []
    for event in events:
        if "ts" not in event:
            moved.append(event)
            continue
        ts = event["ts"] - first + 1
        if shift and event.get("ph") == "X" and event.get("cat") in _CALLS + _WORK:
            ts += Decimal(shift.randint(-10, 10)) * _CLOSE_US / 10
        moved.append({**event, "ts": ts})
    target = folder / ("moved.json" if shift else "still.json")
    whole = {**document, "traceEvents": moved} if isinstance(document, dict) else moved
    target.write_text(json.dumps(whole, default=float))
    return target


def _savings(path: Path) -> tuple[int, dict[str, int]]:
    savings = build_report(Trace.load(path)).measures.savings
    return savings.window_ns, {name: savings.saved_ns(name) for name in BUILDERS}


@pytest.mark.slow
@pytest.mark.parametrize("path", _TRACES, ids=lambda path: path.name)
def test_ten_nanoseconds_decide_nothing(path: Path, tmp_path: Path) -> None:
    document = _read(path)
    window_ns, savings = _savings(_written(document, tmp_path, None))
    seed = random.randrange(2**32)
    _, moved = _savings(_written(document, tmp_path, random.Random(seed)))
    apart = {name: (ns, moved[name]) for name, ns in savings.items() if abs(ns - moved[name]) > _SHARE * window_ns}
    assert not apart, f"seed {seed}, window {window_ns}"
