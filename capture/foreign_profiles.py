"""Traces that a script exports with a profiler of its own: its schedule is kept, and the block is added."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.profiler import profile

from capture import environment
from capture.errors import first_line
from capture.gpu_state import open_watch
from capture.jobs import read_job
from capture.loop_block import build_block
from capture.metadata import add_block
from capture.passes import Found, open_device_used
from capture.profile import OWN_PROFILERS

_NOT_MEASURED = "the script's own profiler was at work"


@contextmanager
def completed(when_used: Callable[[], None]) -> Iterator[list[Path]]:
    """Add the block to every trace that is exported inside.

    Args:
        when_used: Called when a profiler of the script starts.

    Yields:
        The files, as they come.
    """
    exported: list[Path] = []
    start, export = profile.start, profile.export_chrome_trace

    def noted_start(self: profile) -> None:
        if self not in OWN_PROFILERS:
            when_used()
        start(self)

    def completed_export(self: profile, path: str, *args: Any, **kwargs: Any) -> Any:
        result = export(self, path, *args, **kwargs)
        if self not in OWN_PROFILERS:
            _complete(Path(path))
            exported.append(Path(path))
        return result

    profile.start = noted_start  # type: ignore[method-assign]
    profile.export_chrome_trace = completed_export  # type: ignore[method-assign, assignment]
    try:
        yield exported
    finally:
        profile.start = start  # type: ignore[method-assign]
        profile.export_chrome_trace = export  # type: ignore[method-assign]


def _complete(path: Path) -> None:
    try:
        add_block(path, _block())
    except Exception as error:  # noqa: BLE001 - the script's trace is whole without it
        sys.stderr.write(f"capture could add nothing to {path}: {first_line(error)}\n")
    else:
        sys.stderr.write(f"The script's own profiler wrote {path}; capture added what it knows of the run.\n")


def _block() -> object:
    device = open_device_used()
    found = Found(device=device, watch=open_watch(device, environment.device_uuid(device)))
    found.missing = {"warm-up": _NOT_MEASURED, "latency": _NOT_MEASURED}
    return build_block(found, read_job(), environment.read_load_average(), ended_by="torch.profiler's step")
