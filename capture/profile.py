"""The profiled pass: a throw-away cycle, then one forward (or several steps), exported once and checked."""

from __future__ import annotations

import json
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from capture.device import Device, Forward
from capture.errors import ProfileError
from capture.settings import Settings
from capture.stderr_noise import without_profiler_noise

SPAN_NAME = "model_inference"
"""Plain ASCII: the profiler's exporter turns any other name into "unknown"."""
_SCHEDULE_WARMUP = 1
OWN_PROFILERS: weakref.WeakSet[profile] = weakref.WeakSet()
"""Profilers made here, not by the script that is recorded."""
KERNEL_CATEGORY = "kernel"


@dataclass(frozen=True)
class Profile:
    """What the profiled pass recorded.

    Attributes:
        steps: Forwards in the trace.
        record_shapes: Operand shapes are in it.
        profile_memory: Allocations and frees are in it.
        with_stack: Python stacks are in it.
        profiled_wall_ns: Host time of all profiled forwards, up to the end of the wait behind the last.
        span_name: Name of the annotation around each forward.
        activities: Events of the trace by category, such as {"cpu_op": 1267, "kernel": 546}.
        kernel_count: Events of category "kernel"; 0 on the CPU.
    """

    steps: int
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    profiled_wall_ns: int
    span_name: str
    activities: Mapping[str, int]
    kernel_count: int


def record_trace(forward: Forward, device: Device, settings: Settings, path: Path) -> Profile:
    """Profile into a plain JSON file at this path; call inside `torch.inference_mode()`, on a warm model.

    Raises:
        ProfileError: No kernel was recorded on a CUDA device, or the exporter wrote invalid JSON.
    """
    with without_profiler_noise():
        # The first start of the profiler loads its libraries, which would stretch the recorded forward.
        with make_profiler(device, settings):
            forward()
            device.synchronize()
        device.synchronize()  # kernels still running at the start would be recorded without a launch
        if settings.steps == 1:
            recorded, wall_ns = _record_one(forward, device, settings)
        else:
            recorded, wall_ns = _record_steps(forward, device, settings)
        recorded.export_chrome_trace(str(path))
    activities = count_activities(path)
    if device.type == "cuda" and not activities[KERNEL_CATEGORY]:
        raise ProfileError(
            "The profiler recorded not one kernel of this CUDA run.",
            "Another profiler (nsys, ncu, a monitor) may hold CUPTI, or the driver forbids profiling.",
        )
    return Profile(
        steps=settings.steps,
        record_shapes=settings.shapes,
        profile_memory=settings.memory_events,
        with_stack=settings.stacks,
        profiled_wall_ns=wall_ns,
        span_name=SPAN_NAME,
        activities=dict(sorted(activities.items())),
        kernel_count=activities[KERNEL_CATEGORY],
    )


def count_activities(path: Path) -> Counter[str]:
    """Count a trace's events by category, and prove that the file is valid JSON.

    Raises:
        ProfileError: The file is not JSON.
    """
    counts: Counter[str] = Counter()

    def count(item: dict[str, Any]) -> None:
        # Nothing is kept of an object once it is counted, so a large trace needs little more than its text.
        if "ph" in item and "cat" in item:
            counts[str(item["cat"])] += 1

    try:
        json.loads(path.read_text(encoding="utf-8"), object_hook=count)
    except ValueError as error:
        raise ProfileError(
            f"torch wrote a trace that is not valid JSON ({error}).",
            "A name with a quote in it does this to torch's exporter; leave out --stacks and --compile.",
        ) from error
    return counts


def profiler_at_work() -> bool:
    """Whether torch's profiler is recording in this thread."""
    asked: Callable[[], bool] | None = getattr(torch.autograd, "_profiler_enabled", None)
    return asked is not None and asked()


class TraceOptions(Protocol):
    """What the trace is to hold."""

    @property
    def shapes(self) -> bool:
        """Operand shapes."""
        ...

    @property
    def memory_events(self) -> bool:
        """Allocations and frees."""
        ...

    @property
    def stacks(self) -> bool:
        """Python stacks."""
        ...


def make_profiler(device: Device, settings: TraceOptions, **options: Any) -> profile:
    """Torch's profiler for this device, not yet started."""
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    made = profile(
        activities=activities,
        record_shapes=settings.shapes,
        profile_memory=settings.memory_events,
        with_stack=settings.stacks,
        **options,
    )
    OWN_PROFILERS.add(made)
    return made


def _record_one(forward: Forward, device: Device, settings: Settings) -> tuple[profile, int]:
    with make_profiler(device, settings) as recorded:
        begin_ns = time.perf_counter_ns()
        with record_function(SPAN_NAME):
            forward()
        # The profiler's own wait at the end is for the current device only.
        device.synchronize()
        wall_ns = time.perf_counter_ns() - begin_ns
    return recorded, wall_ns


def _record_steps(forward: Forward, device: Device, settings: Settings) -> tuple[profile, int]:
    plan = schedule(wait=0, warmup=_SCHEDULE_WARMUP, active=settings.steps, repeat=1)
    begin_ns = 0
    with make_profiler(device, settings, schedule=plan) as recorded:
        for index in range(_SCHEDULE_WARMUP + settings.steps):
            if index == _SCHEDULE_WARMUP:
                begin_ns = time.perf_counter_ns()
            with record_function(SPAN_NAME):
                forward()
            if index in (_SCHEDULE_WARMUP - 1, _SCHEDULE_WARMUP + settings.steps - 1):
                device.synchronize()  # where recording begins and ends; between steps it would show
            if index == _SCHEDULE_WARMUP + settings.steps - 1:
                wall_ns = time.perf_counter_ns() - begin_ns
            recorded.step()
    return recorded, wall_ns
