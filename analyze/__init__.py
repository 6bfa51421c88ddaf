"""Where the GPU time of a PyTorch profiler trace went: every nanosecond gets exactly one owner.

from analyze import Trace, build_report, write
trace = Trace.load("trace.json.gz")
write(build_report(trace), "report.md")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyze.errors import (
    DamagedTraceError,
    GpuledgerError,
    NotATraceError,
    OutputError,
    SelectionError,
    UnreadableError,
)

if TYPE_CHECKING:
    from analyze.report import Report, build_report, render, write
    from analyze.trace import Trace

__all__ = [
    "DamagedTraceError",
    "GpuledgerError",
    "NotATraceError",
    "OutputError",
    "Report",
    "SelectionError",
    "Trace",
    "UnreadableError",
    "build_report",
    "render",
    "write",
]

_LATE = {
    "Report": "analyze.report",
    "Trace": "analyze.trace",
    "build_report": "analyze.report",
    "render": "analyze.report",
    "write": "analyze.report",
}


def __getattr__(name: str) -> Any:
    """Import the heavy names when they are used: `analyze --help` must not wait for Polars."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)
