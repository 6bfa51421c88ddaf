"""One trace: its tables as frames with declared schemas, computed when first asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import polars as pl

from analyze.inert import code_span, html, printable
from analyze.notices import Notice
from analyze.trace.link import collect_launches, link_activities
from analyze.trace.metadata import Metadata
from analyze.trace.read import OnProgress, Recording, read
from analyze.trace.repair import repair_activities
from analyze.trace.rows import Timed
from analyze.trace.steps import find_steps
from analyze.trace.writers import Writer
from analyze.units import duration


class Trace:
    """A profiler trace as linked frames. All times are integer nanoseconds on the file's own clock.

    Attributes:
        recording: the frames as read, with the file's metadata.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @classmethod
    def load(
        cls, path: str | Path, *, jobs: int | None = None, trusted: bool = False, on_progress: OnProgress | None = None
    ) -> Trace:
        """Read a Chrome trace of the PyTorch profiler (.json, also .gz, .zst or .zip).

        Args:
            path: the file, or "-" for standard input.
            jobs: processes to read a plain file with; by its size where None.
            trusted: let a compressed file grow without limit.
            on_progress: called with the bytes read so far and the size on disk.

        Raises:
            UnreadableError: the file cannot be opened or unpacked.
            NotATraceError: the content is something else.
            DamagedTraceError: too little of it can be read to trust any figure.
        """
        return cls(read(path, jobs=jobs, trusted=trusted, on_progress=on_progress))

    def __repr__(self) -> str:
        """Device, steps, time and activities on one line."""
        timed = self.activities.filter("timed")
        if not timed.height:
            return f"Trace({self.name}, no GPU activity, {self.ops.height:,} ops)"
        devices = sorted({self.metadata.device_name(d) or f"device {d}" for d in timed["device"].drop_nulls()})
        window = int(timed["end_ns"].max() - timed["start_ns"].min())  # type: ignore[operator, arg-type]
        steps = self.steps.height or 1
        plural = "step" if steps == 1 else "steps"
        return f"Trace({', '.join(devices)}, {steps} {plural}, {duration(window)}, {timed.height:,} activities)"

    def _repr_markdown_(self) -> str:
        return f"{code_span(printable(repr(self)))}\n\n`build_report(trace)` says where its time went."

    def _repr_html_(self) -> str:
        shown = html(printable(repr(self)))
        return f"<code>{shown}</code><br><code>build_report(trace)</code> says where its time went."

    @property
    def name(self) -> str:
        """Base name of the file."""
        return self.recording.name

    @property
    def path(self) -> str:
        """The file as it was given, "-" for standard input."""
        return self.recording.path

    @property
    def metadata(self) -> Metadata:
        """What the file says about itself, by allow-list."""
        return self.recording.metadata

    @property
    def writer(self) -> Writer:
        """Who wrote the file."""
        return self.recording.writer

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was odd in the file and what had to be set right."""
        return (*self.recording.notices, *self._repaired[1])

    @property
    def threads(self) -> pl.DataFrame:
        """Threads; schema `THREADS`."""
        return self.recording.frames["threads"]

    @property
    def ops(self) -> pl.DataFrame:
        """Framework operators; schema `OPS`."""
        return self.recording.frames["ops"]

    @property
    def runtime(self) -> pl.DataFrame:
        """API calls of CUDA, HIP and others on the host; schema `RUNTIME`."""
        return self.recording.frames["runtime"]

    @property
    def collective_ops(self) -> pl.DataFrame:
        """What ops of process groups say of their collectives; schema `COLLECTIVE_OPS`."""
        return self.recording.frames["collective_ops"]

    @property
    def ranges(self) -> pl.DataFrame:
        """User ranges (record_function) on the host; schema `RANGES`."""
        return self.recording.frames["ranges"]

    @property
    def frames(self) -> pl.DataFrame:
        """Python frames, where stacks were recorded; schema `FRAMES`."""
        return self.recording.frames["frames"]

    @property
    def overhead(self) -> pl.DataFrame:
        """The profiler's and driver's overhead rows; schema `OVERHEAD`."""
        return self.recording.frames["overhead"]

    @property
    def spans(self) -> pl.DataFrame:
        """Spans of the profiler itself; schema `SPANS`."""
        return self.recording.frames["spans"]

    @property
    def memory(self) -> pl.DataFrame:
        """Allocations and frees, where recorded; schema `MEMORY`."""
        return self.recording.frames["memory"]

    @cached_property
    def timed_ops(self) -> Timed:
        """The ops with a start and a duration, and which is around an instant."""
        return Timed(self.ops)

    @cached_property
    def timed_frames(self) -> Timed:
        """The Python frames likewise."""
        return Timed(self.frames)

    @cached_property
    def activities(self) -> pl.DataFrame:
        """Kernels, copies and memsets with launch, op and category; schema `LINKED`."""
        return self._repaired[0]

    @cached_property
    def _repaired(self) -> tuple[pl.DataFrame, tuple[Notice, ...]]:
        return repair_activities(link_activities(self.recording.frames, self.timed_ops, self.recording.programs))

    @cached_property
    def launches(self) -> pl.DataFrame:
        """API calls that started activities; schema `LAUNCHES`."""
        return collect_launches(self.runtime, self.activities)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """Profiler steps, empty when there are none; schema `STEPS`."""
        return find_steps(self.ranges)
