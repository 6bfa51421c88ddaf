"""Runs somebody's script and records its steps from outside, where the script does not record itself.

What ends a step is found by hooks that torch has for every optimizer and every module. They are taken off as
soon as it is known: a hook on every module would cost time in each of its calls.
"""

from __future__ import annotations

import runpy
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from capture import foreign_profiles, output
from capture.errors import CaptureError, SettingsError
from capture.loop_block import size_parameters
from capture.recorder import Recorder

FAILED = 1
UNUSABLE = 2


class _StopScriptError(BaseException):
    """Ends the script when all passes are done; not an Exception, so that a script does not catch it."""


def run_script(script: Path, args: Sequence[str], recorder: Recorder, *, hook: str, stop: bool) -> int:
    """Run a script as the main program and record its steps.

    Args:
        script: A Python file.
        args: What it finds in `sys.argv`.
        recorder: Not yet begun.
        hook: "optimizer", "forward", or "auto" for the first of them that the script has.
        stop: End the script when all passes are done.

    Returns:
        The exit code: the script's own, or 2 where nothing was recorded.

    Raises:
        CaptureError: The script is not there, or the folder cannot be used.
    """
    if not script.is_file():
        raise SettingsError(f"There is no script {script}.", "Give the path of a Python file: capture run train.py")
    output.check_target(recorder.target(), force=recorder.force)
    follower = Follower(recorder, hook=hook, stop=stop)
    with _as_main(script, args), follower.hooked(), foreign_profiles.completed(follower.step_aside) as exported:
        code = _run(script, follower)
    if code == 0 and not exported and not follower.recorded:
        sys.stderr.write(f"Error: {follower.why_nothing()}\n")
        return UNUSABLE
    return code


class Follower:
    """Calls a recorder's step where a step of the script ends.

    Attributes:
        recorded: Whether a recorder has begun, this one or one of the script's own.
    """

    def __init__(self, recorder: Recorder, *, hook: str, stop: bool) -> None:
        self.recorded = False
        self._recorder = recorder
        self._hook = hook
        self._stop = stop
        self._aside = False
        self._saw_step = False
        self._thread = threading.get_ident()
        self._optimizers = 0
        self._optimizer: weakref.ref[torch.optim.Optimizer] | None = None
        self._module: weakref.ref[torch.nn.Module] | None = None
        self._depth = 0
        self._forward_hooks = ExitStack()

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Watch optimizers and modules inside."""
        with ExitStack() as stack:
            stack.callback(self._forward_hooks.close)
            if self._hook != "forward":
                stack.callback(register_optimizer_step_post_hook(self._after_optimizer).remove)
                stack.enter_context(_counting_optimizers(self._count_optimizer))
            self._forward_hooks.callback(register_module_forward_pre_hook(self._before_forward).remove)
            after: Callable[..., Any] = register_module_forward_hook
            self._forward_hooks.callback(after(self._after_forward, always_call=True).remove)
            yield

    def step_aside(self) -> None:
        """The script records by itself: stop, and leave no file."""
        self._aside = True
        self._forward_hooks.close()
        self._recorder.give_way()

    def finish(self) -> None:
        """The script has ended: keep the passes that are finished."""
        if self.recorded and not self._aside and not self._saw_step:
            self.recorded = False
            self._recorder.give_way()
        elif self.recorded and not self._aside:
            self._recorder.__exit__(None, None, None)

    def discard(self) -> None:
        """The script has failed: leave no file."""
        if not self._aside:
            self._recorder.give_way()

    def why_nothing(self) -> str:
        """Why there is no recording."""
        if self._aside:
            return "the script used a profiler of its own and exported no trace."
        if self._optimizers and self._hook == "auto":
            return "the script's optimizer never stepped, so no step was seen. To count forwards, use --hook forward."
        wanted = {"optimizer": "no optimizer stepped", "forward": "no torch.nn.Module was called"}
        return f"nothing was recorded: {wanted.get(self._hook, 'the script has neither optimizer nor module')}."

    def _count_optimizer(self) -> None:
        self._optimizers += 1
        if self._module is not None and self._hook == "auto" and not self._aside:  # it began with forwards, too early
            self._recorder.restart()
            self._module, self.recorded = None, False
            self._forward_hooks.close()

    def _after_optimizer(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._optimizer is None:
            self._forward_hooks.close()
            self._optimizer = weakref.ref(optimizer)
            held = (parameter for group in optimizer.param_groups for parameter in group["params"])
            self._recorder.parameters = size_parameters(held)
        if self._optimizer() is optimizer:
            several = f", the first of {self._optimizers} optimizers" if self._optimizers > 1 else ""
            self._end_step(f"{type(optimizer).__name__}.step{several}")

    def _before_forward(self, *_: Any) -> None:
        if threading.get_ident() == self._thread:
            self._depth += 1
            if not self.recorded and not self._aside:  # the first step begins with its forward
                self._begin()

    def _after_forward(self, module: torch.nn.Module, inputs: tuple[Any, ...], _output: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        self._depth -= 1
        waits_for_optimizer = self._hook == "optimizer" or (self._optimizers and self._hook == "auto")
        if self._depth or self._aside or waits_for_optimizer:
            return
        self._module = weakref.ref(module)
        self._recorder.parameters = size_parameters(module.parameters())
        self._forward_hooks.close()
        self._forward_hooks = ExitStack()
        self._forward_hooks.callback(module.register_forward_hook(self._after_outermost).remove)
        self._after_outermost(module, inputs, _output)

    def _after_outermost(self, module: torch.nn.Module, inputs: tuple[Any, ...], _output: Any) -> None:
        first = next((item for item in inputs if isinstance(item, torch.Tensor) and item.dim()), None)
        samples = None if first is None else int(first.shape[0])
        self._end_step(f"the forward of {type(module).__name__}, the outermost module", samples)

    def _end_step(self, ended_by: str, samples: int | None = None) -> None:
        if self._aside or threading.get_ident() != self._thread:
            return
        if not self.recorded:
            self._begin()
            return  # this step began before anything was known of it
        if Recorder.at_work() not in (None, self._recorder):
            self.step_aside()
            return
        self._saw_step = True
        self._recorder.ended_by = ended_by
        if self._recorder.step(samples) and self._stop:
            raise _StopScriptError

    def _begin(self) -> None:
        self.recorded = True
        if Recorder.at_work() is None:
            self._recorder.begin()
        else:  # the script calls record() itself
            self.step_aside()


def _run(script: Path, follower: Follower) -> int:
    try:
        runpy.run_path(str(script), run_name="__main__")
    except _StopScriptError:
        return 0
    except CaptureError:
        follower.discard()
        raise
    except SystemExit as ended:
        follower.finish()
        if isinstance(ended.code, str):
            sys.stderr.write(ended.code + "\n")
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception as error:  # noqa: BLE001 - the script's own error, shown as python shows it
        follower.discard()
        traceback.print_exception(type(error), error, _own_frames(error.__traceback__, script))
        return FAILED
    except BaseException:
        follower.discard()
        raise
    follower.finish()
    return 0


def _own_frames(frames: TracebackType | None, script: Path) -> TracebackType | None:
    """The traceback from the script on, without the frames that started it."""
    own = frames
    while own is not None and own.tb_frame.f_code.co_filename != str(script):
        own = own.tb_next
    return own or frames


@contextmanager
def _as_main(script: Path, args: Sequence[str]) -> Iterator[None]:
    before = sys.argv, list(sys.path)
    sys.argv = [str(script), *args]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before


@contextmanager
def _counting_optimizers(count: Callable[[], None]) -> Iterator[None]:
    original = torch.optim.Optimizer.__init__

    def counted(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        count()

    torch.optim.Optimizer.__init__ = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.optim.Optimizer.__init__ = original  # type: ignore[method-assign]
