"""Frames become intervals: the device's busy time and gaps, the host's states, the selection they are taken from."""

from analyze.timeline.autograd import around_through_autograd, engine_threads
from analyze.timeline.blocking import find_blocking_calls
from analyze.timeline.calls import CallTree
from analyze.timeline.device import CLASSES, IDLE_PARTS, DeviceTimeline, device_timelines, partition_gaps
from analyze.timeline.host import Host, spans
from analyze.timeline.intervals import Intervals, complement, depth_ns, intersect, join, subtract, union
from analyze.timeline.replay import Change, Replay, Run
from analyze.timeline.schedule import Schedule, build_schedule
from analyze.timeline.selection import Scope, Selection, launched_within, select

__all__ = [
    "CLASSES",
    "IDLE_PARTS",
    "CallTree",
    "Change",
    "DeviceTimeline",
    "Host",
    "Intervals",
    "Replay",
    "Run",
    "Schedule",
    "Scope",
    "Selection",
    "around_through_autograd",
    "build_schedule",
    "complement",
    "depth_ns",
    "device_timelines",
    "engine_threads",
    "find_blocking_calls",
    "intersect",
    "join",
    "launched_within",
    "partition_gaps",
    "select",
    "spans",
    "subtract",
    "union",
]
