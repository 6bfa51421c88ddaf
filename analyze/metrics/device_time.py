"""Where each device's time went: the ledger of docs/definitions.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Table
from analyze.guard import present
from analyze.metrics.foundations import GAP_PARTS, TIMELINES
from analyze.metrics.question import Answers, Question
from analyze.metrics.vocabulary import CAUSES
from analyze.notices import NotMeasured
from analyze.settings import Definitions
from analyze.timeline import IDLE_PARTS, DeviceTimeline, depth_ns


class DeviceTime(Struct, frozen=True):
    """One device's ledger. The three busy parts and the idle time sum to the window; the idle parts to the idle time.

    Attributes:
        id: device number.
        process: process group of a merged file, empty otherwise.
        name: marketing name, empty where not recorded.
        window_start_ns: first activity start, on the file's clock.
        window_ns: first activity start to last activity end.
        busy_ns: any activity runs.
        idle_ns: none runs.
        computation_ns: kernels that are no collectives.
        exposed_communication_ns: collectives without computation.
        exposed_copy_ns: copies and memsets without either.
        idle: nanoseconds per idle part, all ten of `IDLE_PARTS`.
        idle_long: the same in gaps over `long_gap_ns` only.
        first_use_ns: `launch_call` in launch calls over `long_gap_ns`: module load or compilation.
        causes: nanoseconds of launch-bound time per entry of `CAUSES`, see `add_causes`; the rest has no special one.
        gaps: how many gaps there are.
        activities: timed activities of the selection.
        activity_sum_ns: their durations added up, overlap counted twice.
        streams: streams they ran on.
        concurrent_ns: two or more run.
        after_sync_ns: gaps that began while their launching thread was inside a blocking call.
        exposed_sync_ns: what of them would vanish if those calls had returned at once.
        foreign_ns: busy time that only activities launched outside the selection own.
        unlinked: activities without a recorded launch.
        unlinked_busy_ns: time that they run.
        head_ns: from the window's start to the first linked activity, when only unlinked ones stand before it.
        head_busy_ns: busy time in that head.
    """

    id: int
    process: str
    name: str
    window_start_ns: int
    window_ns: int
    busy_ns: int
    idle_ns: int
    computation_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle: dict[str, int]
    idle_long: dict[str, int]
    first_use_ns: int
    causes: dict[str, int]
    gaps: int
    activities: int
    activity_sum_ns: int
    streams: int
    concurrent_ns: int
    after_sync_ns: int
    exposed_sync_ns: int
    foreign_ns: int
    unlinked: int
    unlinked_busy_ns: int
    head_ns: int
    head_busy_ns: int

    @property
    def queued_long_ns(self) -> int:
        """Work that was queued and not started: `device_queue` and `launch_delay` in gaps over `long_gap_ns`."""
        return self.idle_long["device_queue_ns"] + self.idle_long["launch_delay_ns"]

    @property
    def label(self) -> str:
        """How sentences name the device."""
        place = f"device {self.id}" if not self.process else f"{self.process} device {self.id}"
        return f"{self.name} ({place})" if self.name else place


def headline(devices: tuple[DeviceTime, ...]) -> DeviceTime | None:
    """The device that verdict and headline figures are about: the one with the longest window."""
    return max(devices, key=lambda device: device.window_ns, default=None)


def measure_device(line: DeviceTimeline, gaps: pl.DataFrame, name: str, definitions: Definitions) -> DeviceTime:
    """The ledger of one device.

    Args:
        line: the device's timeline.
        gaps: its partitioned gaps with `after_sync_ns`, `exposed_sync_ns` and the entries of `CAUSES`.
        name: the device's name.
        definitions: limits.

    Raises:
        AssertionError: some nanosecond has no owner or two, a defect of this program.
    """
    computation, communication, copy = line.exposed_ns
    idle = {part: int(gaps[part].sum()) for part in IDLE_PARTS}
    busy = computation + communication + copy
    assert busy == line.busy.total_ns, "busy parts do not sum to the busy time"
    assert busy + sum(idle.values()) == line.window_ns, "parts do not sum to the window"
    long_gap = gaps.filter(pl.col("end_ns") - pl.col("start_ns") > definitions.long_gap_ns)
    long_call = gaps.filter(pl.col("launch_end_ns") - pl.col("launch_start_ns") > definitions.long_gap_ns)
    unlinked = line.selected.filter(pl.col("launch").is_null())
    head_ns, head_busy_ns = _head(line)
    return DeviceTime(
        id=line.device,
        process=line.process,
        name=name,
        window_start_ns=line.window[0],
        window_ns=line.window_ns,
        busy_ns=busy,
        idle_ns=sum(idle.values()),
        computation_ns=computation,
        exposed_communication_ns=communication,
        exposed_copy_ns=copy,
        idle=idle,
        idle_long={part: int(long_gap[part].sum()) for part in IDLE_PARTS},
        first_use_ns=int(long_call["launch_call_ns"].sum()),
        causes={cause: int(gaps[cause].sum()) for cause in CAUSES},
        gaps=gaps.height,
        activities=line.selected.height,
        activity_sum_ns=int(line.selected["dur_ns"].sum()),
        streams=line.selected["stream"].n_unique(),
        concurrent_ns=_running_ns(line.owning, 2),
        after_sync_ns=int(gaps["after_sync_ns"].sum()),
        exposed_sync_ns=int(gaps["exposed_sync_ns"].sum()),
        foreign_ns=_running_ns(line.owning, 1) - _running_ns(line.selected, 1),
        unlinked=unlinked.height,
        unlinked_busy_ns=_running_ns(unlinked, 1),
        head_ns=head_ns,
        head_busy_ns=head_busy_ns,
    )


def _running_ns(frame: pl.DataFrame, at_least: int) -> int:
    """Time during which at least so many activities of the frame run."""
    return depth_ns(frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy(), at_least) if frame.height else 0


def _head(line: DeviceTimeline) -> tuple[int, int]:
    """Length and busy time of the window's head in which only activities without a launch run."""
    linked = line.owning.filter(pl.col("launch").is_not_null())["start_ns"]
    first = int(linked.min()) if len(linked) else line.window[0]  # type: ignore[arg-type]
    busy = line.busy.covered_within(np.array([line.window[0]]), np.array([first]))
    return first - line.window[0], int(busy[0])


def section(devices: tuple[DeviceTime, ...]) -> Section:
    """The devices side by side."""
    table = Table(
        title="Devices",
        columns=(
            Column("device", Kind.TEXT),
            Column("activities", Kind.COUNT),
            Column("window", Kind.TIME),
            Column("busy, of window", Kind.SHARE),
        ),
        rows=tuple(
            (d.label, d.activities, d.window_ns, d.busy_ns / d.window_ns if d.window_ns else None) for d in devices
        ),
        brief=len(devices),
    )
    return Section("devices", "Devices", (table,))


def _measure(answers: Answers) -> tuple[DeviceTime, ...]:
    lines, gaps, metadata = answers.ask(TIMELINES), answers.ask(GAP_PARTS), answers.trace.metadata
    return tuple(
        measure_device(line, gap, metadata.device_name(line.device), answers.definitions)
        for line, gap in zip(lines, gaps, strict=True)
    )


def _section(answers: Answers) -> Section | None:
    devices = answers.ask(DEVICES)
    return section(devices) if len(devices) > 1 else None


def _not_measured(answers: Answers) -> Iterator[NotMeasured]:
    devices = answers.ask(DEVICES)
    if present(devices) and not devices:
        how = "record with activities=[CPU, CUDA] on a GPU"
        yield NotMeasured("device-time", "no kernel, copy or memset in the file", how)


def _main_timeline(answers: Answers) -> DeviceTimeline | None:
    main = answers.ask(HEADLINE)
    return answers.ask(TIMELINES)[answers.ask(DEVICES).index(main)] if main else None


DEVICES = Question("devices", _measure, answer=list[DeviceTime], section=_section, not_measured=_not_measured)
HEADLINE = Question("headline", lambda a: headline(a.ask(DEVICES)))
MAIN_TIMELINE = Question("main-timeline", _main_timeline)
