"""What the records can support: the notices that a reader needs before the figures."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analyze.metrics.device_time import DEVICES, DeviceTime
from analyze.metrics.launches import QUESTION as LAUNCHES
from analyze.metrics.launches import Launches
from analyze.metrics.quality.device_records import QUESTION as ZERO_SHARE
from analyze.metrics.quality.device_records import record_notices
from analyze.metrics.quality.recorded_run import recording_notices
from analyze.metrics.question import Answers, Question
from analyze.notices import Notice
from analyze.settings import Definitions
from analyze.timeline import Selection, spans
from analyze.timeline.intervals import complement
from analyze.trace import Trace, Writer
from analyze.units import duration, percent, plural

_RECORDING = "PyTorch Profiler ("  # name of the span of one recording
_FLAG_COST = {"with_stack": "Python stacks", "record_shapes": "shapes", "profile_memory": "memory events"}


def find_notices(
    trace: Trace,
    selection: Selection,
    devices: tuple[DeviceTime, ...],
    launches: Launches,
    definitions: Definitions,
    zeros: float,
) -> tuple[Notice, ...]:
    """Everything odd about the file and its records, in a fixed order; `zeros` is its `zero_share`."""
    return (
        *trace.notices,
        *record_notices(trace, zeros),
        *_device_records(trace, devices, launches, definitions),
        *_launch_records(trace, devices, launches),
        *_selection_effects(selection, devices),
        *_recording_cost(trace),
        *(recording_notices(trace.metadata.recorded, devices) if trace.metadata.recorded else ()),
        *_several_recordings(trace, devices),
        *_limits_of_the_file(trace),
    )


def _device_records(
    trace: Trace, devices: tuple[DeviceTime, ...], launches: Launches, definitions: Definitions
) -> Iterator[Notice]:
    untimed = trace.activities.filter(~pl.col("timed")).height
    if untimed:
        text = f"{plural(untimed, 'activity', 'activities')} without times count in no figure."
        yield Notice("untimed-activities", text, untimed)
    missing = launches.launch_calls - launches.complete_calls
    if missing and launches.capture:
        text = f"Graph capture recorded: {plural(missing, 'launch call')} without an activity belong to it by nature."
        yield Notice("graph-capture", text, missing)
    elif missing and launches.complete_share < definitions.complete_share:
        which = "activity that is surely theirs" if _ambiguous(trace) else "recorded activity"
        text = (
            f"Device records incomplete: {missing:,} of {plural(launches.launch_calls, 'launch call')} have no "
            f"{which}. Idle time is an upper bound, and no advice on it is given."
        )
        if launches.missing_at_start == missing:
            text += " They are the first ones: their device rows were dropped when the recording began."
        yield Notice("device-records-incomplete", text, missing)
    elif missing:
        text = f"{missing:,} of {plural(launches.launch_calls, 'launch call')} have no recorded activity."
        yield Notice("launches-without-activity", text, missing)
    for device in devices:
        queued = device.queued_long_ns
        if device.window_ns and queued > definitions.unexplained_share * device.window_ns:
            text = (
                f"{device.label}: for {duration(queued)} of the window work was queued, not started: "
                "another stream, rank or process, or work that was not recorded. No idle advice is given."
            )
            yield Notice("queued-not-started", text, 1)


def _ambiguous(trace: Trace) -> bool:
    """Some activities may belong to any of several programs in the file."""
    return trace.recording.programs is not None and trace.recording.programs.lost > 0


def _launch_records(trace: Trace, devices: tuple[DeviceTime, ...], launches: Launches) -> Iterator[Notice]:
    why = "made by one of two processes with the same ids" if _ambiguous(trace) else "made before the recording"
    for device in devices:
        if not device.unlinked:
            continue
        of_busy = percent(device.unlinked_busy_ns / max(device.busy_ns, 1))
        text = (
            f"{device.unlinked:,} of {plural(device.activities, 'activity', 'activities')} on {device.label} have no "
            f"recorded launch ({why}, or not recorded); they run for "
            f"{_of_window(device.unlinked_busy_ns, device)}, {of_busy} of busy time. They count as busy, in no step, "
            "op or launch statistics."
        )
        if device.head_ns:
            rest = device.window_ns - device.head_ns
            after = (device.busy_ns - device.head_busy_ns) / rest if rest else 0.0
            text += (
                f" Work from before the recording fills the first {duration(device.head_ns)}; "
                f"after it the GPU is busy for {percent(after)} of the rest."
            )
        yield Notice("unlinked-activities", text, device.unlinked)
    if launches.skewed:
        text = (
            f"{plural(launches.skewed, 'activity starts', 'activities start')} before their launch call, by up to "
            f"{duration(launches.worst_skew_ns)} (clock skew); they are left out of launch statistics."
        )
        yield Notice("clock-skew", text, launches.skewed)


def _of_window(ns: int, device: DeviceTime) -> str:
    share = ns / device.window_ns if device.window_ns else 0.0
    return f"{duration(ns)}, {percent(share)} of the window"


def _selection_effects(selection: Selection, devices: tuple[DeviceTime, ...]) -> Iterator[Notice]:
    for device in devices:
        if selection.label and device.foreign_ns:
            text = (
                f"{device.label}: for {_of_window(device.foreign_ns, device)} only work launched outside "
                f"{selection.label} runs. It counts as busy, and in no table of kernels."
            )
            yield Notice("work-from-outside", text, 1)


def _recording_cost(trace: Trace) -> Iterator[Notice]:
    recorded = trace.metadata.recorded
    if recorded is not None and recorded.stretch is not None:
        return  # measured: `recording_notices` says by how much
    costs = [text for flag, text in _FLAG_COST.items() if flag in trace.metadata.flags]
    if costs and trace.activities.height:
        listed = costs[0] if len(costs) == 1 else ", ".join(costs[:-1]) + " and " + costs[-1]
        text = f"Recording {listed} slowed the host, which overstates idle time."
        yield Notice("profiler-inflation", text, len(costs))


def _several_recordings(trace: Trace, devices: tuple[DeviceTime, ...]) -> Iterator[Notice]:
    """Recordings one after the other in one file: what the window covers, and what lies between them."""
    recordings = spans(trace.spans.filter(pl.col("name").cast(pl.String).str.starts_with(_RECORDING)))
    if len(recordings) < 2:
        return
    for device in devices:
        low, high = device.window_start_ns, device.window_start_ns + device.window_ns
        inside = int(((recordings.end_ns > low) & (recordings.start_ns < high)).sum())
        between = complement(recordings, low, high).total_ns if inside > 1 else 0
        if between:
            text = (
                f"{device.label}: the window covers {inside} recordings of the profiler. The time between them, "
                f"{_of_window(between, device)}, counts in it though it says nothing about the run."
            )
            yield Notice("several-recordings", text, inside)


def _limits_of_the_file(trace: Trace) -> Iterator[Notice]:
    if trace.metadata.base_ns == 0 and trace.activities.height and _whole_microseconds(trace):
        text = "Times are whole microseconds: a kernel below 1 µs shows as 0, and each gap is off by up to 1 µs."
        yield Notice("microsecond-resolution", text, 1)
    if trace.writer is Writer.LEGACY:
        text = "This export was made without Kineto: it holds host operators only and cannot contain kernels."
        yield Notice("legacy-export", text, 1)


def _whole_microseconds(trace: Trace) -> bool:
    timed = trace.activities.filter("timed")
    return not bool(((timed["start_ns"] % 1000 != 0) | (timed["dur_ns"] % 1000 != 0)).any())


def _measure(answers: Answers) -> tuple[Notice, ...]:
    return find_notices(
        answers.trace,
        answers.selection,
        answers.ask(DEVICES),
        answers.ask(LAUNCHES),
        answers.definitions,
        answers.ask(ZERO_SHARE),
    )


QUESTION = Question("file-notices", _measure)
