"""A file becomes linked frames: read, link, steps. Times are integer nanoseconds from here on."""

from analyze.trace.metadata import DeviceInfo, GroupInfo, JobInfo, Metadata
from analyze.trace.nesting import Nesting
from analyze.trace.recorded import Recorded
from analyze.trace.rows import Timed, matching, timed_rows
from analyze.trace.trace import Trace
from analyze.trace.writers import Writer

__all__ = [
    "DeviceInfo",
    "GroupInfo",
    "JobInfo",
    "Metadata",
    "Nesting",
    "Recorded",
    "Timed",
    "Trace",
    "Writer",
    "matching",
    "timed_rows",
]
