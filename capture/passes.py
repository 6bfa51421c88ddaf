"""The passes over consecutive steps of one loop: first step, warm-up, latency, trace, memory snapshot.

They are one generator that rests while a step of the loop runs: each `yield` is one step. So the order of
the passes reads as it happens, and a loop that ends early closes the generator, which stops whatever records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch
from torch.profiler import profile, schedule

from capture import environment, latency
from capture.device import CpuDevice, CudaDevice, Device
from capture.errors import first_line
from capture.gpu_state import GpuWatch, open_watch
from capture.latency import WINDOW_ITERATIONS, Latency, Warmup, Window
from capture.output import EXPORTED_NAME, SNAPSHOT_NAME
from capture.precision import PrecisionState, read_state
from capture.profile import KERNEL_CATEGORY, Profile, count_activities, make_profiler, profiler_at_work
from capture.snapshot import Snapshot, history, write_history
from capture.stderr_noise import without_profiler_noise

STEP_SPAN = "ProfilerStep"
"""What torch's profiler calls the annotation around each step, followed by # and a number."""
UNTRACED_STEPS = 2
"""Steps of the trace pass that are not in the trace: the throw-away cycle, and the schedule's own warm-up."""
MOST_WARMUP_STEPS = 50
"""The cap: a loop has an end, which a machine that never becomes steady must not reach within the warm-up."""
JOB_WARMUP = 30
"""Warm-up steps in a distributed job: ranks that decided by their own times would leave the loop apart and hang."""

Result = TypeVar("Result")
Steps = Generator[None, "float | None", Result]
"""Rests at each `yield` for one step of the loop; is sent the number of samples of that step."""


@dataclass(frozen=True)
class Plan:
    """What a recording of a loop is asked to do.

    Attributes:
        warmup: Exactly so many warm-up steps after the first; None goes on until two windows agree.
        timed_steps: Steps timed without the profiler; 0 leaves the pass out.
        traced_steps: Steps in the trace; 0 leaves the pass out.
        snapshot_steps: Steps with the allocator's history; None takes 1 on CUDA and 0 on the CPU.
        stacks: Python stacks in the trace.
        shapes: Operand shapes in the trace.
        memory_events: Allocations and frees in the trace.
        device: "auto", "cpu", "cuda" or "cuda:N"; auto takes CUDA where the first step has used it.
    """

    warmup: int | None = None
    timed_steps: int = 20
    traced_steps: int = 5
    snapshot_steps: int | None = None
    stacks: bool = False
    shapes: bool = True
    memory_events: bool = True
    device: str = "auto"


@dataclass(frozen=True)
class Phase:
    """Which steps of the loop one pass took.

    Attributes:
        name: "first step", "warm-up", "latency", "trace" or "snapshot".
        first_step: Counted from 0.
        steps: How many, those of the trace pass that are not in the trace included.
    """

    name: str
    first_step: int
    steps: int


@dataclass
class Found:
    """What the passes that are finished found; filled pass by pass, None until then."""

    device: Device | None = None
    watch: GpuWatch | None = None
    state: PrecisionState | None = None
    warmup: Warmup | None = None
    latency: Latency | None = None
    profile: Profile | None = None
    snapshot: Snapshot | None = None
    samples_per_step: float | None = None
    phases: list[Phase] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class _Pace:
    """Moments at which steps begin and end, on the device's own time line."""

    def __init__(self, device: Device, steps: int) -> None:
        self._marks = device.marks(2 * steps)
        self._steps = steps
        self._index = 0

    def begin(self) -> None:
        self._marks.set(2 * self._index)

    def end(self) -> None:
        self._marks.set(2 * self._index + 1)
        self._index += 1

    def samples_ns(self) -> tuple[int, ...]:
        return tuple(self._marks.elapsed_ns(2 * index, 2 * index + 1) for index in range(self._steps))


class Passes:
    """All passes of one recording; `advance` after each step of the loop.

    Args:
        plan: What to do.
        staging: An existing folder for the files.
        calls: The steps are calls with time between them, each announced by `begin_call`; otherwise a step
            begins where the one before it ended.
        fixed: The number of steps must not depend on times: the passes of a distributed job.
    """

    def __init__(self, plan: Plan, staging: Path, *, calls: bool = False, fixed: bool = False) -> None:
        self.found = Found()
        self.step_count = 0
        self.tracing = False
        self._plan = plan
        self._staging = staging
        self._calls = calls
        self._fixed_warmup = JOB_WARMUP if fixed and plan.warmup is None else plan.warmup
        self._pace: _Pace | None = None
        self._phase = ("first step", 0, 1)
        self._steps = self._run()
        next(self._steps)

    def advance(self, samples: float | None) -> bool:
        """One step of the loop has ended; whether all passes are done."""
        self.step_count += 1
        try:
            self._steps.send(samples)
        except StopIteration:
            return True
        return False

    def begin_call(self) -> None:
        """A call begins, where steps are calls."""
        if self._pace is not None:
            self._pace.begin()

    def close(self) -> None:
        """Stop whatever records, and note which passes are missing; after the last pass nothing is left to do."""
        self._steps.close()
        name, first, planned = self._phase
        for later in self._wanted():
            if later in self.found.missing or any(phase.name == later for phase in self.found.phases):
                continue
            ended = "the loop ended before it began"
            if later == name:
                ended = f"the loop ended after {self.step_count - first} of its {planned} steps"
            self.found.missing[later] = ended

    def _run(self) -> Steps[None]:
        yield from self._first_step()
        yield from self._warm_up()
        if self._plan.timed_steps:
            yield from self._time()
        if self._plan.traced_steps:
            yield from self._trace()
        if self._snapshot_steps():
            yield from self._take_snapshot()

    def _wanted(self) -> list[str]:
        timed, traced = self._plan.timed_steps, self._plan.traced_steps
        wanted = {"warm-up": 1, "latency": timed, "trace": traced, "snapshot": self._snapshot_steps()}
        return [name for name, steps in wanted.items() if steps]

    def _snapshot_steps(self) -> int:
        if self._plan.snapshot_steps is not None:
            return self._plan.snapshot_steps
        return int(self.found.device is not None and self.found.device.type == "cuda")

    def _begin(self, name: str, planned: int) -> None:
        self._phase = (name, self.step_count, planned)

    def _finish(self) -> None:
        name, first, _ = self._phase
        if name not in self.found.missing:
            self.found.phases.append(Phase(name, first, self.step_count - first))

    def _first_step(self) -> Steps[None]:
        begin_ns = time.perf_counter_ns()
        yield
        self.found.device = device = _open(self._plan.device)
        device.synchronize()
        self._first_ns = time.perf_counter_ns() - begin_ns
        self.found.watch = open_watch(device, environment.device_uuid(device))
        self.found.watch.mark_before()
        self._finish()

    def _warm_up(self) -> Steps[None]:
        fixed = self._fixed_warmup
        self._begin("warm-up", MOST_WARMUP_STEPS if fixed is None else fixed)
        windows: list[Window] = []
        if fixed is None:
            while latency.stop_reason(windows, MOST_WARMUP_STEPS) is None:
                windows.append((yield from self._window(WINDOW_ITERATIONS))[0])
            replayed = iter(windows)
        else:
            whole, _ = yield from self._window(fixed)
            replayed = iter([whole])
        self.found.warmup = latency.warm_up(
            lambda _: next(replayed),
            fixed_iterations=fixed,
            first_call_ns=self._first_ns,
            most_iterations=MOST_WARMUP_STEPS,
        )
        self._finish()

    def _time(self) -> Steps[None]:
        device, watch = self._device, self._watch
        self._begin("latency", self._plan.timed_steps)
        device.synchronize()
        device.reset_peak_memory()
        with watch.measuring():
            window, counted = yield from self._window(self._plan.timed_steps)
        known = [samples for samples in counted if samples is not None]
        self.found.samples_per_step = sum(known) / len(known) if len(known) == len(counted) else None
        self.found.latency = latency.summarize(window, None, self.found.samples_per_step, device)
        self.found.state = read_state()
        self._finish()

    def _window(self, steps: int) -> Steps[tuple[Window, list[float | None]]]:
        device = self._device
        self._pace = pace = _Pace(device, steps)
        counted: list[float | None] = []
        begin_ns = time.perf_counter_ns()
        for _ in range(steps):
            if not self._calls:
                pace.begin()
            samples = yield
            pace.end()
            counted.append(samples)
        self._pace = None
        device.synchronize()
        return Window(pace.samples_ns(), time.perf_counter_ns() - begin_ns), counted

    def _trace(self) -> Steps[None]:
        planned = UNTRACED_STEPS + self._plan.traced_steps
        self._begin("trace", planned)
        first = self.step_count
        self.tracing = True
        try:
            self.found.profile = yield from self._profiled()
        except Exception as error:  # noqa: BLE001 - a profiler that fails must not end somebody's training
            self.found.missing["trace"] = f"torch's profiler failed: {first_line(error)}"
            yield from self._let_pass(first + planned)
        finally:
            self.tracing = False
        self._finish()

    def _profiled(self) -> Steps[Profile]:
        if profiler_at_work():
            raise RuntimeError("another profiler is at work in this loop")
        device, plan = self._device, self._plan
        device.synchronize()  # kernels still running at the start would be recorded without a launch
        with ExitStack() as stack:
            # The first start of the profiler loads its libraries, which would stretch a recorded step.
            self._start(stack, make_profiler(device, plan))
            yield
            device.synchronize()
        planned = schedule(wait=0, warmup=1, active=plan.traced_steps, repeat=1)
        with ExitStack() as stack:
            recorded = make_profiler(device, plan, schedule=planned)
            self._start(stack, recorded)
            yield
            device.synchronize()
            with without_profiler_noise():
                recorded.step()
            begin_ns = time.perf_counter_ns()
            for index in range(plan.traced_steps):
                yield
                if index < plan.traced_steps - 1:
                    recorded.step()
            device.synchronize()  # the profiler's own wait at the end is for the current device only
            wall_ns = time.perf_counter_ns() - begin_ns
            with without_profiler_noise():
                recorded.step()
        with without_profiler_noise():
            recorded.export_chrome_trace(str(self._staging / EXPORTED_NAME))
        return self._describe(wall_ns)

    def _start(self, stack: ExitStack, recorder: profile) -> None:
        def stop() -> None:
            with without_profiler_noise():
                recorder.stop()

        with without_profiler_noise():
            recorder.start()
        stack.callback(stop)

    def _describe(self, wall_ns: int) -> Profile:
        plan = self._plan
        activities = count_activities(self._staging / EXPORTED_NAME)
        if self._device.type == "cuda" and not activities[KERNEL_CATEGORY]:
            self.found.warnings.append(
                "the trace holds no kernel: the loop does not compute on the GPU, another profiler (nsys, ncu, a "
                "monitor) holds CUPTI, or the driver forbids profiling"
            )
        return Profile(
            steps=plan.traced_steps,
            record_shapes=plan.shapes,
            profile_memory=plan.memory_events,
            with_stack=plan.stacks,
            profiled_wall_ns=wall_ns,
            span_name=STEP_SPAN,
            activities=dict(sorted(activities.items())),
            kernel_count=activities[KERNEL_CATEGORY],
        )

    def _take_snapshot(self) -> Steps[None]:
        device, steps = self._device, self._snapshot_steps()
        self._begin("snapshot", steps)
        first = self.step_count
        try:
            if device.type != "cuda":
                raise RuntimeError("only the CUDA allocator records its history")
            with history(device):
                yield from self._let_pass(first + steps)
                self.found.snapshot = write_history(device, self._staging / SNAPSHOT_NAME, starts="step")
        except Exception as error:  # noqa: BLE001 - optional by nature: latency and trace stay
            (self._staging / SNAPSHOT_NAME).unlink(missing_ok=True)
            self.found.missing["snapshot"] = first_line(error)
            yield from self._let_pass(first + steps)
        self._finish()

    def _let_pass(self, until: int) -> Steps[None]:
        while self.step_count < until:
            yield

    @property
    def _device(self) -> Device:
        assert self.found.device is not None
        return self.found.device

    @property
    def _watch(self) -> GpuWatch:
        assert self.found.watch is not None
        return self.found.watch


def count_steps(plan: Plan, *, on_cuda: bool) -> int:
    """Steps that a plan of fixed length takes: a rank that records nothing leaves the loop with the others."""
    warmup = JOB_WARMUP if plan.warmup is None else plan.warmup
    traced = UNTRACED_STEPS + plan.traced_steps if plan.traced_steps else 0
    snapshot = int(on_cuda) if plan.snapshot_steps is None else plan.snapshot_steps
    return 1 + warmup + plan.timed_steps + traced + snapshot


def used_cuda() -> bool:
    """Whether this process has used CUDA by now."""
    asked: Callable[[], bool] = torch.cuda.is_initialized
    return torch.cuda.is_available() and asked()


def open_device_used() -> Device:
    """The current CUDA device where this process has used CUDA, else the CPU."""
    return _open("auto")


def _open(asked: str) -> Device:
    if asked == "cpu" or (asked == "auto" and not used_cuda()):
        return CpuDevice()
    _, _, index = asked.partition(":")
    return CudaDevice(int(index) if index else torch.cuda.current_device())
