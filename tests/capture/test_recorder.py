"""``record`` around real loops on the CPU; what only CUDA has is in test_recorder_cuda.py."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from capture import record
from capture.errors import OutputError, SettingsError
from capture.metadata import read_block
from tests.capture.example_models import TinyNet

ROOT = Path(__file__).parents[2]
SHORT: dict[str, Any] = {"warmup": 2, "timed_steps": 3, "traced_steps": 2, "quiet": True, "device": "cpu"}
LAST = 1 + 2 + 3 + 2 + 2
"""The first step, the warm-up, the timed steps, two untraced ones and the traced ones."""


def _trainer() -> Callable[[torch.Tensor, torch.Tensor], None]:
    model = TinyNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train_step(images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return train_step


def _loader(samples: int = 64) -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.randn(samples, 3, 8, 8), torch.zeros(samples, dtype=torch.long)), 4)


def _names(folder: Path) -> Counter[str]:
    with gzip.open(folder / "trace.json.gz", "rt", encoding="utf-8") as file:
        return Counter(event["name"] for event in json.load(file)["traceEvents"] if "cat" in event)


def _run_json(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())


def test_a_training_loop_is_recorded_pass_by_pass(tmp_path: Path) -> None:
    train_step, steps, answers = _trainer(), 0, []
    with record(tmp_path / "runs" / "baseline", **SHORT) as rec:
        for images, labels in _loader():
            train_step(images, labels)
            steps += 1
            answers.append(rec.step(samples=len(images)))
            if answers[-1]:
                break
    assert answers == [False] * (LAST - 1) + [True]
    folder = tmp_path / "runs" / "baseline"
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "trace.json.gz"]
    names = _names(folder)
    assert names["aten::conv2d"] == 2  # neither the throw-away cycle nor the schedule's own warm-up
    assert [name for name in sorted(names) if name.startswith("ProfilerStep")] == ["ProfilerStep#1", "ProfilerStep#2"]
    assert names["Optimizer.step#SGD.step"] == 2
    block = _run_json(folder)
    assert read_block(folder / "trace.json.gz") == block
    assert block["phases"] == [
        {"name": "first step", "first_step": 0, "steps": 1},
        {"name": "warm-up", "first_step": 1, "steps": 2},
        {"name": "latency", "first_step": 3, "steps": 3},
        {"name": "trace", "first_step": 6, "steps": 4},
    ]
    assert (block["missing"], block["unit"], block["batch_size"]) == ({}, "step", 4)
    assert (block["latency"]["n"], block["profile"]["steps"], block["warmup"]["iterations"]) == (3, 2, 2)


def test_the_loops_own_input_work_is_part_of_its_step(tmp_path: Path) -> None:
    import time

    with record(tmp_path / "slow", **SHORT) as rec:
        while not rec.step(samples=8):
            time.sleep(0.02)
    latency = _run_json(tmp_path / "slow")["latency"]
    assert all(sample >= 20_000_000 for sample in latency["samples_ns"])
    assert latency["throughput_samples_per_s"] == pytest.approx(8e9 / latency["p50_ns"], rel=1e-6)
    assert latency["wall_ns"] >= sum(latency["samples_ns"])


def test_a_loop_that_goes_on_gets_its_files_at_once_and_true_forever(tmp_path: Path) -> None:
    with record(tmp_path / "run", **SHORT) as rec:
        answers = [rec.step() for _ in range(LAST + 5)]
        assert (tmp_path / "run" / "run.json").exists()
    assert answers == [False] * (LAST - 1) + [True] * 6
    assert _run_json(tmp_path / "run")["latency"]["throughput_samples_per_s"] is None


@pytest.mark.parametrize(
    ("steps", "finished", "missing"),
    [
        (2, [], {"warm-up": "after 1 of its 2 steps", "latency": "before it began", "trace": "before it began"}),
        (3, ["warm-up"], {"latency": "after 0 of its 3 steps", "trace": "before it began"}),
        (6, ["warm-up", "latency"], {"trace": "after 0 of its 4 steps"}),
        (9, ["warm-up", "latency"], {"trace": "after 3 of its 4 steps"}),
        (10, ["warm-up", "latency", "trace"], {}),
    ],
)
def test_an_early_end_keeps_what_is_finished(
    tmp_path: Path, steps: int, finished: list[str], missing: dict[str, str]
) -> None:
    with record(tmp_path / "run", **SHORT) as rec:
        for _ in range(steps):
            rec.step()
    block = _run_json(tmp_path / "run")
    assert [phase["name"] for phase in block["phases"]] == ["first step", *finished]
    assert {name: reason.removeprefix("the loop ended ") for name, reason in block["missing"].items()} == missing
    assert (tmp_path / "run" / "trace.json.gz").exists() is ("trace" in finished)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert not torch.autograd._profiler_enabled()


def test_a_loop_without_steps_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with record(tmp_path / "runs" / "run"):
        pass
    assert not list(tmp_path.iterdir())
    assert "never called rec.step()" in capsys.readouterr().err


@pytest.mark.parametrize("steps", [0, 1, 4, 7, 8, 9])
@pytest.mark.parametrize("error", [ValueError("mine"), OSError(28, "mine"), KeyboardInterrupt(), OutputError("mine")])
def test_the_loops_own_error_comes_through_and_no_file_is_left(
    tmp_path: Path, steps: int, error: BaseException
) -> None:
    def loop() -> None:
        with record(tmp_path / "runs" / "run", **SHORT) as rec:
            for _ in range(steps):
                rec.step()
            raise error

    with pytest.raises(type(error)) as caught:
        loop()
    assert caught.value is error
    assert not list(tmp_path.iterdir())
    assert not torch.autograd._profiler_enabled()


def test_an_error_after_the_last_pass_keeps_the_recording(tmp_path: Path) -> None:
    def loop() -> None:
        with record(tmp_path / "run", **SHORT) as rec:
            while not rec.step():
                pass
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert _run_json(tmp_path / "run")["missing"] == {}


def test_recordings_follow_each_other_but_do_not_nest(tmp_path: Path) -> None:
    with record(tmp_path / "a", **SHORT) as outer:
        outer.step()
        with (
            pytest.raises(SettingsError, match="still going on in this process"),
            record(tmp_path / "b", **SHORT) as inner,
        ):
            inner.step()
    for name in ("c", "d"):
        with record(tmp_path / name, **SHORT) as rec:
            while not rec.step():
                pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c", "d"]
    with pytest.raises(SettingsError, match="recorded once"), rec:
        pass


def test_an_older_recording_is_overwritten_only_by_force(tmp_path: Path) -> None:
    def make(**options: Any) -> None:
        with record(tmp_path / "run", **SHORT, **options) as rec:
            while not rec.step():
                pass

    make()
    with pytest.raises(OutputError, match="already holds a recording") as caught:
        make()
    assert caught.value.hint == "Use force=True to overwrite it, or another folder."
    make(force=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timed_steps": -1}, "timed_steps=-1"),
        ({"warmup": 2.5}, "warmup=2.5"),
        ({"device": "gpu"}, "device='gpu' is unknown"),
        ({"device": "cpu:1"}, "device='cpu:1' is unknown"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        record(tmp_path / "run", **options)


def test_parameters_are_counted_each_once(tmp_path: Path) -> None:
    """Two layers that share one weight of 6 numbers, and a bias of 2 half-precision numbers."""
    model = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2, 3)), torch.nn.Parameter(torch.ones(2).half())])
    model.append(model[0])
    with record(tmp_path / "run", **SHORT, model=model) as rec:
        while not rec.step():
            pass
    block = _run_json(tmp_path / "run")
    assert (block["parameter_count"], block["parameter_bytes"]) == (8, 28)


def test_passes_can_be_left_out(tmp_path: Path) -> None:
    with record(tmp_path / "run", warmup=0, timed_steps=0, traced_steps=1, device="cpu", quiet=True) as rec:
        answers = [rec.step() for _ in range(4)]
    assert answers == [False, False, False, True]
    block = _run_json(tmp_path / "run")
    assert (block["latency"], block["profile"]["steps"], block["missing"]) == (None, 1, {})


def test_the_allocators_history_is_missing_on_the_cpu_with_its_reason(tmp_path: Path) -> None:
    with record(tmp_path / "run", **SHORT, snapshot_steps=2) as rec:
        steps = 1
        while not rec.step():
            steps += 1
    block = _run_json(tmp_path / "run")
    assert steps == LAST + 2
    assert block["missing"] == {"snapshot": "only the CUDA allocator records its history"}
    assert block["profile"]["steps"] == 2


def test_another_profiler_in_the_loop_costs_the_trace_alone(tmp_path: Path) -> None:
    with record(tmp_path / "run", **SHORT) as rec, _profiling():
        steps = 1
        while not rec.step():
            steps += 1
    block = _run_json(tmp_path / "run")
    assert steps == LAST
    assert "another profiler is at work" in block["missing"]["trace"]
    assert block["latency"]["n"] == 3
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


def _profiling() -> torch.profiler.profile:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def test_ranges_show_in_the_trace_in_plain_ascii(tmp_path: Path) -> None:
    with record(tmp_path / "run", **SHORT) as rec:
        while True:
            with rec.range('forward "é"'):
                torch.ones(3).sum()
            if rec.step():
                break
    assert _names(tmp_path / "run")["forward '?'"] == 2


def test_a_step_in_another_thread_is_refused(tmp_path: Path) -> None:
    caught: list[BaseException] = []

    def step() -> None:
        try:
            rec.step()
        except SettingsError as error:
            caught.append(error)

    with record(tmp_path / "run", **SHORT) as rec:
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert "another thread" in str(caught[0])


def test_a_step_outside_the_block_is_refused(tmp_path: Path) -> None:
    rec = record(tmp_path / "run", **SHORT)
    with pytest.raises(SettingsError, match="outside of its recording"):
        rec.step()


def test_each_call_of_a_decorated_function_is_a_step(tmp_path: Path) -> None:
    import time

    @record(tmp_path / "run", **SHORT)
    def add(first: int, second: int) -> int:
        """Adds."""
        torch.ones(3).sum()
        return first + second if second <= 1 else add(first + 1, second - 1)

    for _ in range(LAST):
        assert add(1, second=2) == 3
        time.sleep(0.02)
    assert add(1, 2) == 3
    assert add.__doc__ == "Adds."
    names = _names(tmp_path / "run")
    assert names["test_each_call_of_a_decorated_function_is_a_step.<locals>.add"] == 2
    assert max(_run_json(tmp_path / "run")["latency"]["samples_ns"]) < 20_000_000  # not what lies between the calls


def test_a_decorated_function_keeps_its_error_and_goes_on_unrecorded(tmp_path: Path) -> None:
    @record(tmp_path / "run", **SHORT)
    def invert(number: int) -> float:
        return 1 / number

    assert invert(1) == 1
    with pytest.raises(ZeroDivisionError):
        invert(0)
    assert [invert(1) for _ in range(LAST)] == [1] * LAST
    assert not list(tmp_path.iterdir())


def test_a_function_that_returns_early_cannot_be_decorated(tmp_path: Path) -> None:
    async def later() -> None:
        pass

    with pytest.raises(SettingsError, match="returns before its work is done"):
        record(tmp_path / "run")(later)


def _python(code: str, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *args], env=environment, capture_output=True, text=True, check=False, timeout=240
    )


def test_torch_alone_is_enough_and_the_end_of_the_process_keeps_what_is_finished(tmp_path: Path) -> None:
    code = """
import sys
for name in ("timm", "pynvml", "click"):
    sys.modules[name] = None
from capture import record
@record(sys.argv[1], warmup=1, timed_steps=2, traced_steps=1, device="cpu")
def step():
    pass
for _ in range(5):
    step()
"""
    done = _python(code, str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "the loop ended after 1 of its 3 steps" in done.stderr
    assert _run_json(tmp_path / "run")["latency"]["n"] == 2


def test_the_summary_answers_on_one_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with record(tmp_path / "run", **{**SHORT, "quiet": False}) as rec:
        while not rec.step(samples=4):
            torch.ones(10).sum()
    shown = capsys.readouterr()
    assert not shown.out
    for word in (
        "4.00 samples a step",
        "median",
        "samples/s",
        "First step",
        "Stability",
        "when profiled",
        "Next",
        "analyze ",
    ):
        assert word in shown.err
    assert len(shown.err.splitlines()) < 20


def test_ranks_that_record_nothing_leave_the_loop_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    left_after = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        with record(tmp_path / "run", **{**SHORT, "warmup": None}, ranks=[1]) as rec:
            steps = 1
            while not rec.step():
                steps += 1
        left_after.append(steps)
    assert left_after == [LAST - 2 + 30] * 2
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["rank-1"]
    assert _run_json(tmp_path / "run" / "rank-1")["warmup"]["iterations"] == 30


@pytest.mark.slow
def test_two_processes_with_gloo_record_two_ranks(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("""
import sys, torch
from torch.nn.parallel import DistributedDataParallel
from capture import record
torch.distributed.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with record(sys.argv[1], warmup=2, timed_steps=3, traced_steps=2) as rec:
    while True:
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        if rec.step(samples=4):
            break
torch.distributed.destroy_process_group()
""")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    # What torchrun sets for two processes of one machine.
    job = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared = {**os.environ, **job, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), str(tmp_path / "run")]
    ranks = [
        subprocess.Popen(command, env={**shared, "RANK": rank, "LOCAL_RANK": rank}, stderr=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    told = [process.communicate(timeout=240)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], told
    for rank in (0, 1):
        folder = tmp_path / "run" / f"rank-{rank}"
        assert sorted(path.name for path in folder.iterdir()) == ["run.json", "trace.json.gz"]
        block = read_block(folder / "trace.json.gz")
        assert block["job"] == {"rank": rank, "world_size": 2, "local_rank": rank, "backend": "gloo"}
        assert any("allreduce" in name for name in _names(folder))
    assert ["samples a step" in text for text in told] == [True, False]  # one rank speaks for all
