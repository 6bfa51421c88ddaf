"""`record`: the passes of a recording over the steps of a loop, or over the calls of a function."""

from __future__ import annotations

import atexit
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch
from torch.profiler import record_function

from capture import environment, loop_summary, output
from capture.errors import OutputError, SettingsError
from capture.jobs import Job, read_job
from capture.loop_block import Asked, LoopBlock, ParameterSizes, ask_script, build_block, size_parameters
from capture.metadata import write_json, write_trace
from capture.passes import Passes, Plan, count_steps, used_cuda

P = ParamSpec("P")
R = TypeVar("R")

_active: Recorder | None = None
"""One at a time in a process: torch has one profiler and one history of the allocator."""


class _DiscardedError(Exception):
    """Ends the staging of files that are not to be kept."""


def record(
    folder: str | Path,
    *,
    timed_steps: int = 20,
    traced_steps: int = 5,
    snapshot_steps: int | None = None,
    warmup: int | None = None,
    stacks: bool = False,
    shapes: bool = True,
    memory_events: bool = True,
    device: str | torch.device = "auto",
    model: torch.nn.Module | None = None,
    ranks: Sequence[int] | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Recorder:
    """Record a loop of your own: warm-up, latency, trace and memory snapshot over its consecutive steps.

    Used as `with record("runs/baseline") as rec:` around a loop that calls `rec.step()` at the end of each
    step, or as a decorator, `@record("runs/baseline")`, of a function of which each call is a step.

    Args:
        folder: Where trace.json.gz, run.json and, on CUDA, snapshot.pickle go; in a distributed job they go
            into its rank-0, rank-1 and so on.
        timed_steps: Steps timed without the profiler; 0 leaves the pass out.
        traced_steps: Steps in the trace, two more before them not counted; 0 leaves the pass out.
        snapshot_steps: Steps with the allocator's history; None is 1 on CUDA and 0 on the CPU.
        warmup: Exactly so many warm-up steps after the first one. None goes on until two windows of 10 agree, at
            most 50 steps or 10 s; in a distributed job, whose ranks must stay together, it is 30.
        stacks: Python stacks in the trace.
        shapes: Operand shapes in the trace.
        memory_events: Allocations and frees in the trace.
        device: "auto" takes CUDA where the first step has used it; or "cpu", "cuda", "cuda:1".
        model: The model, whose parameters are counted: `analyze` then says how much memory the run itself took.
        ranks: Ranks of a distributed job that record; None is every one. The others count the same steps.
        force: Overwrite an earlier recording.
        quiet: Print no summary on standard error.

    Returns:
        A recorder, which records once.

    Raises:
        SettingsError: A number below 0, or a device that is not there.
    """
    counts = {"timed_steps": timed_steps, "traced_steps": traced_steps}
    counts |= {"snapshot_steps": snapshot_steps or 0, "warmup": warmup or 0}
    for name, count in counts.items():
        if not isinstance(count, int) or count < 0:
            raise SettingsError(f"{name}={count!r} is not a number of steps.", "Give 0 or more.")
    plan = Plan(
        warmup, timed_steps, traced_steps, snapshot_steps, stacks, shapes, memory_events, _check_device(str(device))
    )
    recorder = Recorder(Path(folder), plan, ranks=ranks, force=force, quiet=quiet)
    recorder.parameters = None if model is None else size_parameters(model.parameters())
    return recorder


class Recorder:
    """Follows a loop step by step; made by :func:`record`.

    Attributes:
        done: All passes are finished, and their files are written.
        folder: Where the files are, that of the rank in a distributed job.
        block: What run.json holds; None until it is written.
        ended_by: What ends a step, in words.
        asked: What was asked of a loop that capture itself runs.
        parameters: Sizes of the model's parameters, where it is known.
        force: Whether an earlier recording may be overwritten.
    """

    def __init__(self, folder: Path, plan: Plan, *, ranks: Sequence[int] | None, force: bool, quiet: bool) -> None:
        self.folder = self._asked = folder
        self.done = False
        self.block: LoopBlock | None = None
        self._plan = plan
        self._ranks = ranks
        self.force = force
        self._quiet = quiet
        self._used = False
        self._gives_way = False
        self.ended_by = "rec.step()"
        self.asked: Asked | None = None
        self.parameters: ParameterSizes | None = None
        self._job = Job()
        self._passes: Passes | None = None
        self._idle_steps: int | None = None
        self._thread = 0
        self._stack = ExitStack()

    def __enter__(self) -> Recorder:
        self._open(calls=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        else:
            self._discard()

    def step(self, samples: float | None = None) -> bool:
        """One step of the loop has ended.

        Args:
            samples: How many samples the step worked on, for the throughput.

        Returns:
            True when all passes are done and written: the loop may end, or go on at its full speed.

        Raises:
            SettingsError: Outside the `with` block, or in another thread than the loop's.
            OutputError: The files cannot be written.
        """
        if self.done:
            return True
        if self._passes is None:
            return self._step_idle()
        if threading.get_ident() != self._thread:
            raise SettingsError(
                "rec.step() was called in another thread than the one that began the recording.",
                "torch's profiler belongs to one thread: call it in the loop's own.",
            )
        try:
            finished = self._passes.advance(samples)
        except BaseException:
            self._discard()
            raise
        if finished:
            self._finish()
        return finished

    def range(self, name: str) -> AbstractContextManager[Any]:
        """A named part of a step, to be seen in the trace: torch's record_function.

        Its name is made plain ASCII without double quotes, since the profiler would replace any other.
        """
        return record_function(name.encode("ascii", "replace").decode("ascii").replace('"', "'"))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call is a step, from the first call until all passes are done.

        What is finished when the process ends is kept.
        """
        if any(
            check(function)
            for check in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        ):
            raise SettingsError(
                f"{function.__qualname__} returns before its work is done, so its calls are not steps.",
                "Use `with record(...) as rec:` and call rec.step() where a step ends.",
            )

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            return self._call(function, args, kwargs)

        return recorded

    @staticmethod
    def at_work() -> Recorder | None:
        """The recorder that is recording in this process."""
        return _active

    def target(self) -> Path:
        """The folder that this process would write to."""
        job = read_job()
        return self.folder / f"rank-{job.rank}" if job.distributed else self.folder

    def begin(self) -> None:
        """Begin as `with` does, for a loop that is watched from outside; gives way to the loop's own recorder."""
        self._gives_way = True
        self._open(calls=False)

    def give_way(self) -> None:
        """End without a file."""
        self._discard()
        self.done = True

    def restart(self) -> None:
        """Forget what was recorded, so that the recorder can begin once more."""
        self._discard()
        self.folder, self._stack = self._asked, ExitStack()
        self._used = self.done = False

    def _call(self, function: Callable[..., R], args: Any, kwargs: Any) -> R:
        if self.done or self._inside_call:
            return function(*args, **kwargs)
        if not self._used:
            self.ended_by = f"a call of {function.__qualname__}"
            self._open(calls=True)
            atexit.register(self._finish_at_exit)
        self._inside_call = True
        try:
            result = self._run_call(function, args, kwargs)
        except BaseException:
            self._discard()
            raise
        finally:
            self._inside_call = False
        self.step()
        return result

    _inside_call = False

    def _run_call(self, function: Callable[..., R], args: Any, kwargs: Any) -> R:
        passes = self._passes
        if passes is None:
            return function(*args, **kwargs)
        passes.begin_call()
        if not passes.tracing:
            return function(*args, **kwargs)
        with self.range(function.__qualname__):
            return function(*args, **kwargs)

    def _open(self, *, calls: bool) -> None:
        global _active  # noqa: PLW0603 - the process has one profiler
        if self._used:
            raise SettingsError("This recorder has recorded once.", "Call record() anew for another recording.")
        if _active is not None and _active._gives_way:
            _active.give_way()
        if _active is not None:
            raise SettingsError(
                f"A recording into {_active.folder} is still going on in this process.",
                "End it first: torch has one profiler per process.",
            )
        self._used = True
        self._job = read_job()
        if self._job.distributed:
            self.folder = self.folder / f"rank-{self._job.rank}"
            if self._ranks is not None and self._job.rank not in self._ranks:
                self._idle_steps = 0
                return
        output.check_target(self.folder, force=self.force, spoken="argument")
        self._load_before = environment.read_load_average()
        staging = self._stack.enter_context(output.staged(self.folder))
        self._thread = threading.get_ident()
        self._staging = staging
        self._passes = Passes(self._plan, staging, calls=calls, fixed=self._job.distributed)
        _active = self

    def _step_idle(self) -> bool:
        if self._idle_steps is None:
            raise SettingsError(
                "rec.step() was called outside of its recording.",
                "Call it in the loop inside `with record(...) as rec:`.",
            )
        self._idle_steps += 1
        self.done = self._idle_steps >= count_steps(self._plan, on_cuda=used_cuda())
        return self.done

    def _finish(self) -> None:
        """Keep the passes that are finished, and say which are missing."""
        passes = self._passes
        if passes is None or self.done:
            self.done = True
            return
        if not passes.step_count:
            self._discard()
            self._say("Nothing was recorded: the loop never called rec.step().")
            return
        try:
            with self._stack:
                passes.close()
                asked = self.asked or ask_script(self.parameters)
                block = build_block(passes.found, self._job, self._load_before, ended_by=self.ended_by, asked=asked)
                self._write(block)
        finally:
            self._leave()
        self.block = block
        if not self._quiet and (not self._job.distributed or self._job.rank == min(self._ranks or [0])):
            self._say(loop_summary.describe(block, self.folder))

    def _write(self, block: LoopBlock) -> None:
        exported = self._staging / output.EXPORTED_NAME
        if block.profile is not None:
            write_trace(exported, block, self._staging / output.TRACE_NAME)
        exported.unlink(missing_ok=True)
        write_json(block, self._staging / output.RUN_NAME)

    def _discard(self) -> None:
        """Stop whatever records and leave no file; never raises, since an error of the loop is on its way."""
        if self._passes is None:
            return
        with suppress(Exception):
            self._passes.close()
        with suppress(_DiscardedError, OutputError), self._stack:
            raise _DiscardedError
        self._leave()

    def _leave(self) -> None:
        global _active  # noqa: PLW0603 - the process has one profiler
        self.done = True
        self._passes = None
        if _active is self:
            _active = None

    def _finish_at_exit(self) -> None:
        with suppress(Exception):
            self._finish()

    def _say(self, text: str) -> None:
        if not self._quiet:
            sys.stderr.write(text + "\n")


def _check_device(asked: str) -> str:
    kind, colon, index = asked.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (colon and (kind != "cuda" or not index.isdecimal())):
        raise SettingsError(f"device={asked!r} is unknown.", 'Use "auto", "cpu", "cuda" or "cuda:1".')
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise SettingsError(
                f"device={asked!r} was asked for, but torch finds no usable CUDA device.",
                'Check nvidia-smi and that torch is a CUDA build, or use device="cpu".',
            )
        if index and int(index) >= count:
            raise SettingsError(f"device={asked!r}: this process sees {count} CUDA devices, counted from 0.")
    return asked
