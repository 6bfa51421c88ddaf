"""``capture run``: scripts as people write them, recorded without edits.

One of them runs in a process of its own; the others run in this one, where torch is imported already.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from capture.cli import main
from capture.metadata import add_block, read_block

ROOT = Path(__file__).parents[2]
OPTIONS = ("--warmup", "2", "--timed-steps", "3", "--traced-steps", "2")

TRAIN = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 2)
    def forward(self, x):
        return self.inner(x)

def main(epochs):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=4, num_workers=0)
    for epoch in range(epochs):
        for index, (x,) in enumerate(loader):
            model(x).sum().backward()
            if index % 2:  # every second batch: gradients are summed up
                optimizer.step()
                optimizer.zero_grad()
    print("trained", epochs, sys.argv)

if __name__ == "__main__":
    main(int(sys.argv[1]))
"""


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a script as `capture run` does, in this process."""
    monkeypatch.chdir(tmp_path)

    def run_script(script: str, *args: str, options: tuple[str, ...] = OPTIONS) -> Done:
        (tmp_path / "train.py").write_text(script)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["run", *options, "train.py", *args])
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, *capfd.readouterr())

    return run_script


def _run_in_process(tmp_path: Path, script: str, *args: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "train.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "capture", "run", *OPTIONS, "train.py", *args],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def _block(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())


def _names(path: Path) -> Counter[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return Counter(event["name"] for event in json.load(file)["traceEvents"] if "cat" in event)


def test_a_training_script_is_recorded_by_its_optimizer(tmp_path: Path) -> None:
    done = _run_in_process(tmp_path, TRAIN.replace("num_workers=0", "num_workers=1"), "2")
    assert done.returncode == 0, done.stderr
    assert "trained 2 ['train.py', '2']" in done.stdout  # the script goes on to its end
    assert "ends with AdamW.step" in done.stderr
    names = _names(tmp_path / "runs" / "train" / "trace.json.gz")
    assert names["Optimizer.step#AdamW.step"] == 2
    assert names["aten::addmm"] == 4  # two forwards a step: the batches whose gradients are summed up
    block = _block(tmp_path / "runs" / "train")
    assert (block["model"], block["step_ended_by"], block["missing"]) == ("train.py", "AdamW.step", {})
    assert block["parameter_bytes"] == 72  # what the optimizer holds: 8 * 2 + 2 numbers


def test_the_script_can_be_ended_with_its_recording(tmp_path: Path, run: Run) -> None:
    done = run(TRAIN, "2", options=(*OPTIONS, "--stop"))
    assert done.returncode == 0, done.stderr
    assert "trained" not in done.stdout
    assert _block(tmp_path / "runs" / "train")["missing"] == {}


INFERENCE = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
with torch.inference_mode():
    for _ in range(20):
        model(torch.randn(4, 8))
"""


def test_a_script_without_an_optimizer_is_recorded_by_its_outermost_module(tmp_path: Path, run: Run) -> None:
    done = run(INFERENCE)
    assert done.returncode == 0, done.stderr
    block = _block(tmp_path / "runs" / "train")
    assert block["step_ended_by"] == "the forward of Sequential, the outermost module"
    assert (block["batch_size"], block["phases"][0]["steps"]) == (4, 1)
    assert (block["parameter_count"], block["parameter_bytes"]) == (90, 360)  # 8 * 8 + 8 and 8 * 2 + 2
    assert _names(tmp_path / "runs" / "train" / "trace.json.gz")["aten::addmm"] == 4  # two layers, two steps


def test_a_forward_before_the_optimizer_is_made_decides_nothing(tmp_path: Path, run: Run) -> None:
    script = TRAIN.replace("    optimizer =", "    [model(torch.randn(1, 8)) for _ in range(4)]\n    optimizer =")
    done = run(script, "2")
    assert done.returncode == 0, done.stderr
    assert _block(tmp_path / "runs" / "train")["step_ended_by"] == "AdamW.step"


def test_a_script_that_records_itself_keeps_its_own_options(tmp_path: Path, run: Run) -> None:
    script = """
import torch
from capture import record
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters())
with record("own", warmup=1, timed_steps=2, traced_steps=1) as rec:
    while True:
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        if rec.step():
            break
"""
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own", "train.py"]
    assert _block(tmp_path / "own")["profile"]["steps"] == 1


@pytest.mark.parametrize("name", ["mine.json", "mine.json.gz"])
def test_a_script_with_a_profiler_keeps_its_schedule_and_gets_the_block(tmp_path: Path, run: Run, name: str) -> None:
    script = f"""
import torch
from torch.profiler import profile, schedule
model = torch.nn.Linear(8, 2)
plan = schedule(wait=1, warmup=1, active=3)
with profile(schedule=plan, on_trace_ready=lambda p: p.export_chrome_trace("{name}")) as prof:
    for _ in range(5):
        model(torch.randn(4, 8))
        prof.step()
"""
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert "own profiler wrote" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "train.py"]
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "rt") as file:
        trace = json.load(file)
    assert trace["gpuledger"]["missing"]["latency"] == "the script's own profiler was at work"
    assert trace["gpuledger"]["versions"]["torch"]
    steps = {event["name"] for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep")}
    assert steps == {"ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"}


@pytest.mark.parametrize(
    ("ending", "code", "shown"),
    [
        ("raise ValueError('mine')", 1, "ValueError: mine"),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('no data')", 1, "no data"),
        ("sys.exit()", 0, ""),
    ],
)
def test_the_exit_code_is_the_scripts(tmp_path: Path, run: Run, ending: str, code: int, shown: str) -> None:
    done = run("import sys\n" + INFERENCE + ending + "\n", options=("--warmup", "50"))
    assert done.returncode == code, done.stderr
    assert shown in done.stderr
    assert "follow.py" not in done.stderr  # the traceback begins with the script
    recorded = (tmp_path / "runs").exists()
    assert recorded is not ending.startswith("raise")
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("script", "options", "sentence"),
    [
        ("print(1)", (), "neither optimizer nor module"),
        (INFERENCE, ("--hook", "optimizer"), "no optimizer stepped"),
        ("import torch\ntorch.optim.SGD(torch.nn.Linear(1, 1).parameters())", (), "optimizer never stepped"),
    ],
)
def test_a_script_without_steps_is_named(
    tmp_path: Path, run: Run, script: str, options: tuple[str, ...], sentence: str
) -> None:
    done = run(script, options=options)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [("gpu", "--device gpu is unknown"), ("cuda:7", "--device cuda:7 was asked for, but torch finds no usable CUDA")],
)
def test_a_device_that_is_not_there_is_named_as_it_was_typed(
    run: Run, monkeypatch: pytest.MonkeyPatch, asked: str, sentence: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = run("print(1)", options=("--device", asked))
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_a_device_beyond_those_that_are_visible_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    done = run("print(1)", options=("--device", "cuda:1"))
    assert done.returncode == 2
    assert "--device cuda:1 is not there: this process sees 1 CUDA device." in done.stderr


def test_a_missing_script_is_named(run: Run) -> None:
    done = run("", options=("other.py",))
    assert done.returncode == 2
    assert "There is no script other.py" in done.stderr


def test_a_block_is_added_where_the_trace_lies(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [], "traceName": "/tmp/b.json"}'))
    add_block(path, {"x": 1})
    assert read_block(path) == {"x": 1}
    assert list(tmp_path.iterdir()) == [path]
