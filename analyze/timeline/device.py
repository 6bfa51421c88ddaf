"""One device's time: window, busy time by class, and gaps with the activity that ends each (docs/definitions.md)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.timeline.host import Host
from analyze.timeline.intervals import Intervals, complement, join, subtract, union

CLASSES = ("computation", "communication", "copy")
IDLE_PARTS = (
    "host_data_loading_ns",
    "host_sync_ns",
    "host_op_ns",
    "host_other_ns",
    "host_runtime_ns",
    "launch_call_ns",
    "launch_delay_ns",
    "device_queue_ns",
    "unlinked_ns",
    "profiler_ns",
)


class DeviceTimeline(Struct, frozen=True, dict=True):
    """The activities of one device that own time, and the window in which they are accounted for.

    Attributes:
        process: process group of a merged file, empty otherwise.
        device: device number.
        activities: timed activities of the device (schema `LINKED`), those outside the selection too.
        selected: the activities of the selection; they define the window.
    """

    process: str
    device: int
    activities: pl.DataFrame
    selected: pl.DataFrame

    @cached_property
    def window(self) -> tuple[int, int]:
        """First start and last end of the selected activities; (0, 0) when none of them owns time."""
        own = self.selected.filter(pl.col("dur_ns") > 0)
        if not own.height:
            return 0, 0
        return int(own["start_ns"].min()), int(own["end_ns"].max())  # type: ignore[arg-type]

    @property
    def window_ns(self) -> int:
        """Length of the window."""
        return self.window[1] - self.window[0]

    @cached_property
    def owning(self) -> pl.DataFrame:
        """The activities that own time inside the window, with `class` and times clipped to it."""
        low, high = self.window
        kind, category = pl.col("kind").cast(pl.String), pl.col("category").cast(pl.String)
        klass = pl.when(kind != "kernel").then(2).when(category == "communication").then(1).otherwise(0).cast(pl.Int64)
        inside = (pl.col("dur_ns") > 0) & (pl.col("start_ns") < high) & (pl.col("end_ns") > low)
        return self.activities.filter(inside).with_columns(
            pl.col("start_ns").clip(low), pl.col("end_ns").clip(upper_bound=high), **{"class": klass}
        )

    @cached_property
    def by_class(self) -> tuple[Intervals, ...]:
        """Busy time per entry of `CLASSES`, each the union over all streams."""
        frames = (self.owning.filter(pl.col("class") == i) for i in range(len(CLASSES)))
        return tuple(union(f["start_ns"].to_numpy(), f["end_ns"].to_numpy()) for f in frames)

    @cached_property
    def busy(self) -> Intervals:
        """Instants at which any activity runs."""
        return join(*self.by_class)

    @cached_property
    def exposed(self) -> tuple[Intervals, ...]:
        """Busy time per class by priority: what a class has without the classes before it."""
        computation, communication, copy = self.by_class
        return computation, subtract(communication, computation), subtract(copy, join(computation, communication))

    @property
    def exposed_ns(self) -> tuple[int, ...]:
        """Lengths of `exposed`."""
        return tuple(one.total_ns for one in self.exposed)

    @cached_property
    def gaps(self) -> Intervals:
        """Maximal stretches of the window without any activity."""
        return complement(self.busy, *self.window)

    @cached_property
    def enders(self) -> Int64:
        """For each gap the row of `owning` that ends it: the linked one whose launch began first, -1 if none is."""
        linked = (
            self.owning.with_row_index("row")
            .filter(pl.col("launch").is_not_null())
            .sort("start_ns", "launch_start_ns", "launch_end_ns", "row")
            .unique("start_ns", keep="first", maintain_order=True)
        )
        starts = linked["start_ns"].to_numpy()
        at = np.searchsorted(starts, self.gaps.end_ns)
        found = np.full(len(self.gaps), -1, dtype=np.int64)
        hit = at < len(starts)
        hit[hit] = starts[at[hit]] == self.gaps.end_ns[hit]
        found[hit] = linked["row"].to_numpy()[at[hit]]
        return found


def device_timelines(activities: pl.DataFrame, selected: pl.DataFrame) -> list[DeviceTimeline]:
    """One timeline per device that has selected activities, in order of process and device number."""
    keys = selected.filter("timed").select("process", "device").unique().drop_nulls("device")
    order = sorted((str(process or ""), int(device)) for process, device in keys.iter_rows())

    def on(frame: pl.DataFrame, process: str, device: int) -> pl.DataFrame:
        same = (pl.col("process").cast(pl.String).fill_null("") == process) & (pl.col("device") == device)
        return frame.filter(same & pl.col("timed"))

    return [DeviceTimeline(p, d, on(activities, p, d), on(selected, p, d)) for p, d in order]


def partition_gaps(line: DeviceTimeline, host: Host) -> pl.DataFrame:
    """Give every nanosecond of every gap its owner.

    Returns:
        One row per gap: `start_ns`, `end_ns`, `ender` (row of `owning`, null when none is linked), `thread`,
        `launch_start_ns`, `launch_end_ns`, and one column per entry of `IDLE_PARTS` that sum to the gap.
    """
    gaps, enders = line.gaps, line.enders
    linked = enders >= 0
    launch = line.owning.select("launch_thread", "launch_start_ns", "launch_end_ns")
    launch = launch.cast(pl.Int64)[np.maximum(enders, 0)] if line.owning.height else launch.cast(pl.Int64)
    thread, begin, end = (launch[name].fill_null(0).to_numpy() for name in launch.columns)
    g0, g1 = gaps.start_ns, gaps.end_ns
    queued = linked & (end <= g0)
    hosted = linked & ~queued
    parts = {part: np.zeros(len(gaps), np.int64) for part in IDLE_PARTS}
    parts["unlinked_ns"] = np.where(linked, 0, g1 - g0)
    parts["device_queue_ns"] = np.where(queued, g1 - g0, 0)
    parts["launch_delay_ns"] = np.where(hosted, np.maximum(g1 - np.maximum(end, g0), 0), 0)
    call = np.clip(begin, g0, g1)[hosted], np.clip(end, g0, g1)[hosted]
    own_cost = host.profiler.covered_within(*call)
    parts["launch_call_ns"][hosted] = call[1] - call[0] - own_cost
    for part, time in host.partition(thread[hosted], g0[hosted], call[0]).items():
        parts[part][hosted] = time
    parts["profiler_ns"][hosted] += own_cost
    evidence = {"start_ns": g0, "end_ns": g1, "ender": enders, "thread": thread}
    frame = pl.DataFrame({**evidence, "launch_start_ns": begin, "launch_end_ns": end, **parts})
    unknown = pl.col("ender") < 0
    names = ("ender", "thread", "launch_start_ns", "launch_end_ns")
    return frame.with_columns(pl.when(~unknown).then(pl.col(name)).alias(name) for name in names)
