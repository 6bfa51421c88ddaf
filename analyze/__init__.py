"""Where the GPU time of a PyTorch profiler trace went: every nanosecond gets exactly one owner.

from analyze import Trace, build_report, write
trace = Trace.load("trace.json.gz")
write(build_report(trace), "report.md")
"""

from __future__ import annotations

from analyze.lazy import lazy_names

TYPE_CHECKING = False  # an interrupt before `__main__` runs would print a traceback: nothing slow is imported here
if TYPE_CHECKING:
    from analyze.compare import compare
    from analyze.compare.snapshots import compare_snapshots
    from analyze.errors import (
        ConfigError,
        DamagedTraceError,
        GateError,
        GpuledgerError,
        NotAReportError,
        NotATraceError,
        NotComparableError,
        OutputError,
        SelectionError,
        SnapshotError,
        UnreadableError,
    )
    from analyze.ranks import Job
    from analyze.report import Report, build_report, render, write
    from analyze.report.snapshot import SnapshotReport, build_snapshot_report
    from analyze.snapshot import Snapshot
    from analyze.trace import Trace

__all__ = [
    "ConfigError",
    "DamagedTraceError",
    "GateError",
    "GpuledgerError",
    "Job",
    "NotAReportError",
    "NotATraceError",
    "NotComparableError",
    "OutputError",
    "Report",
    "SelectionError",
    "Snapshot",
    "SnapshotError",
    "SnapshotReport",
    "Trace",
    "UnreadableError",
    "build_report",
    "build_snapshot_report",
    "compare",
    "compare_snapshots",
    "render",
    "write",
]

_LATE = {  # `analyze --help` must not wait for Polars
    "ConfigError": "analyze.errors",
    "DamagedTraceError": "analyze.errors",
    "GateError": "analyze.errors",
    "GpuledgerError": "analyze.errors",
    "NotAReportError": "analyze.errors",
    "NotATraceError": "analyze.errors",
    "NotComparableError": "analyze.errors",
    "OutputError": "analyze.errors",
    "SelectionError": "analyze.errors",
    "SnapshotError": "analyze.errors",
    "UnreadableError": "analyze.errors",
    "Job": "analyze.ranks",
    "Report": "analyze.report",
    "Snapshot": "analyze.snapshot",
    "SnapshotReport": "analyze.report.snapshot",
    "Trace": "analyze.trace",
    "build_report": "analyze.report",
    "build_snapshot_report": "analyze.report.snapshot",
    "compare": "analyze.compare",
    "compare_snapshots": "analyze.compare.snapshots",
    "render": "analyze.report",
    "write": "analyze.report",
}
__getattr__ = lazy_names(__name__, _LATE)
