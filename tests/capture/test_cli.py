from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

import capture
from capture import cli, run
from capture.cli import EXIT_INTERRUPTED, EXIT_UNUSABLE
from capture.errors import OutOfMemoryError
from capture.metadata import read_block
from capture.recorder import record
from capture.settings import Settings
from tests.capture.conftest import TINY

ROOT = Path(__file__).parents[2]
QUICK = ("--model", TINY, "--batch-size", "2", "--warmup", "1", "--timed-steps", "3", "--device", "cpu")


LOADED = ("device", "models", "progress", "run", "summary", "sweep")
"""The parts of capture that need more than click."""


def _capture(*args: object) -> Result:
    return CliRunner().invoke(cli.capture, [str(arg) for arg in args])


def _process(*args: object, code: str = "from capture.cli import main; main()") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *[str(arg) for arg in args]]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_help_has_the_purpose_then_examples_then_every_option() -> None:
    result = _capture("-h")
    assert result.exit_code == 0
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    assert lines[1].startswith("Record a PyTorch model")
    assert lines[2] == "Examples:"
    for param in cli.capture.params:
        assert param.opts[0] in result.output, f"{param.name} is in no group"
    assert result.output == _capture("--help").output
    for default in ("vit_tiny_patch16_224", "fp32", "runs", "auto"):
        assert f"default: {default}" in " ".join(result.output.split())


def test_every_setting_has_an_option() -> None:
    renamed = {
        "precision": "precisions",
        "compile": "compile_model",
        "shapes": "no_shapes",
        "memory_events": "no_memory_events",
        "iterations": "timed_steps",
        "steps": "traced_steps",
    }
    options = {param.name for param in cli.capture.params}
    assert {renamed.get(field.name, field.name) for field in fields(Settings)} - {"device_index"} <= options


def test_the_passes_have_the_names_that_record_gives_them() -> None:
    arguments = inspect.signature(record).parameters
    for command in (cli.capture, cli.run_script):
        shown = CliRunner().invoke(command, ["--help"]).output
        for name in ("warmup", "timed_steps", "traced_steps", "snapshot_steps", "stacks", "device", "force"):
            assert name in arguments
            assert f"--{name.replace('_', '-')}" in shown
        for older in ("--iterations", "--after", "--steps"):
            assert older not in shown


def test_older_spellings_still_work(tmp_path: Path) -> None:
    result = _capture(*QUICK, "--iterations", 5, "--steps", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    stored = read_block(tmp_path / "fp32" / "trace.json.gz")
    assert (stored["latency"]["n"], stored["profile"]["steps"]) == (5, 2)


def test_help_is_there_at_once_and_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['timm'] = None\nfrom capture.cli import main\nmain(['--help'])"
    )
    begin = time.perf_counter()
    done = _process(code=code)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Examples:" in done.stdout
    assert time.perf_counter() - begin < 3  # 0.15 s on an idle machine; importing torch alone takes longer


@pytest.mark.parametrize("missing", ["torch", "timm", "rich"])
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [f"capture.{part}" for part in LOADED] + [name for name in sys.modules if name.startswith("rich.")]
    for name in gone:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for part in LOADED:
        monkeypatch.delattr(capture, part, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    done = _capture("--device", "cpu")
    assert done.exit_code == EXIT_UNUSABLE
    assert done.stderr.splitlines() == [
        f"Error: capture needs {missing}, which is not installed.",
        "Hint: pip install 'gpuledger[capture]'",
    ]


def test_one_precision_goes_into_its_own_folder(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    result = _capture(*QUICK, "--out", out)
    assert (result.exit_code, result.stderr) == (0, "")
    assert sorted(path.name for path in (out / "fp32").iterdir()) == ["run.json", "trace.json.gz"]
    assert f"analyze {out / 'fp32' / 'trace.json.gz'}" in result.stdout
    assert "against" not in result.stdout  # nothing to compare with


def test_several_precisions_are_compared(tmp_path: Path) -> None:
    result = _capture(*QUICK, "--out", tmp_path, "--precision", "fp32", "--precision", "bf16", "--precision", "fp16")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bf16", "fp16", "fp32"]
    table = result.stdout[result.stdout.rindex("analyze") :].partition("\n")[2]
    assert [name in table for name in ("fp32", "bf16", "fp16", "samples/s")] == [True] * 4
    assert max(len(line) for line in table.splitlines()) <= 80


def test_a_precision_given_twice_runs_once(tmp_path: Path) -> None:
    result = _capture(*QUICK, "--out", tmp_path, "--precision", "fp32", "--precision", "fp32")
    assert result.stdout.count("Latency") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--seed", "3"], {"seed": 3}),
        (["--precision", "bf16"], {"precision": "bf16", "dtype": "bfloat16"}),
        (["--precision", "fp16", "--amp"], {"amp": True, "autocast_dtype": "float16"}),
        (["--channels-last"], {"channels_last": True}),
        (["--repeat", "2"], {}),
        (["--warmup", "4"], {"warmup.iterations": 4}),
        (["--timed-steps", "7"], {"latency.n": 7}),
        (["--traced-steps", "2"], {"profile.steps": 2}),
        (["--stacks"], {"profile.with_stack": True}),
        (["--no-shapes"], {"profile.record_shapes": False}),
        (["--no-memory-events"], {"profile.profile_memory": False}),
        (["--snapshot-steps", "0"], {"snapshot": None}),
        (["--device", "cpu"], {"device.type": "cpu"}),
        (["--batch-size", "3"], {"batch_size": 3}),
        (["--model", "tests.capture.example_models:tiny_at_batch"], {"model_source": "user"}),
        (["--debug"], {}),
    ],
)
def test_options_with_a_meaning_on_the_cpu(tmp_path: Path, options: list[str], expected: dict[str, Any]) -> None:
    result = _capture(*QUICK, "--out", tmp_path, *options)
    assert result.exit_code == 0, result.output
    (folder,) = tmp_path.iterdir()
    stored: dict[str, Any] = read_block(folder / "trace.json.gz")
    for path, value in expected.items():
        found: Any = stored
        for key in path.split("."):
            found = found[key]
        assert found == value, path
    if "--repeat" in options:
        assert len(stored["repeats"]) == 2
        assert "2 whole runs" in result.stdout


def test_the_device_that_is_there_is_taken_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = _capture(*QUICK[:-2], "--out", tmp_path)
    assert result.exit_code == 0
    assert result.stderr == "No CUDA device was found: recording on the CPU.\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--precision", "tf32"], "--precision tf32 cannot be had on the CPU"),
        (["--precision", "fp32", "--precision", "tf32"], "--precision tf32 cannot be had on the CPU"),
        (["--cuda-graph"], "--cuda-graph cannot be had on the CPU"),
        (["--snapshot-steps", "1"], "--snapshot-steps cannot be had on the CPU"),
        (["--snapshot-weights"], "--snapshot-weights cannot be had on the CPU"),
        (["--cudnn-benchmark"], "--cudnn-benchmark cannot be had on the CPU"),
        (["--amp"], "--amp needs a half precision"),
        (["--model", "vit_tny_patch16_224"], "timm has no model named 'vit_tny_patch16_224'"),
        (["--model", "no_such_module:build"], "No module named 'no_such_module'"),
        (["--batch-sweep", "1,2"], "--batch-sweep makes no trace"),
        (["--precision", "fp64"], "Invalid value for '--precision'"),
        (["--batch-size", "0"], "Invalid value for '--batch-size'"),
        (["--batch-sweep", "1,two"], "not a list of batch sizes"),
        (["--batch-sweep", "0"], "not a list of batch sizes"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_what_cannot_be_had_ends_with_2_and_a_reason(tmp_path: Path, options: list[str], words: str) -> None:
    out = tmp_path / "runs"
    result = _capture(*QUICK, "--out", out, *options)
    assert result.exit_code == EXIT_UNUSABLE
    assert words in result.stderr
    assert result.stdout == ""
    assert not out.exists()


def test_cuda_that_is_not_there_ends_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = _capture(*QUICK[:-1], "cuda", "--out", tmp_path)
    assert result.exit_code == EXIT_UNUSABLE
    assert "finds no usable CUDA device" in result.stderr


def test_an_existing_recording_is_kept_without_force(tmp_path: Path) -> None:
    assert _capture(*QUICK, "--out", tmp_path).exit_code == 0
    before = (tmp_path / "fp32" / "run.json").read_bytes()
    refused = _capture(*QUICK, "--out", tmp_path, "--precision", "bf16", "--precision", "fp32")
    assert refused.exit_code == EXIT_UNUSABLE
    assert "--force" in refused.stderr
    assert (tmp_path / "fp32" / "run.json").read_bytes() == before
    assert not (tmp_path / "bf16").exists()  # refused before the first recording began
    assert _capture(*QUICK, "--out", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "fp32" / "run.json").read_bytes() != before


def test_a_folder_that_cannot_be_written_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = _capture(*QUICK, "--out", tmp_path / "file" / "runs")
    assert result.exit_code == EXIT_UNUSABLE
    assert "Cannot write" in result.stderr


def test_out_of_memory_ends_with_2_and_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OutOfMemoryError("Out of memory: it does not fit.", "Use a smaller --batch-size.")

    monkeypatch.setattr(run, "capture_run", fail)
    result = _capture(*QUICK, "--out", tmp_path)
    assert result.exit_code == EXIT_UNUSABLE
    assert result.stderr == "Error: Out of memory: it does not fit.\nHint: Use a smaller --batch-size.\n"


@pytest.mark.parametrize("debug", [False, True])
def test_a_bug_of_ours_ends_with_2_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debug: bool) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(run, "capture_run", fail)
    result = _capture(*QUICK, "--out", tmp_path, *(["--debug"] if debug else []))
    assert result.exit_code == EXIT_UNUSABLE
    assert "Internal error, please report it: KeyError" in result.stderr
    assert ("Traceback" in result.stderr) is debug


@pytest.mark.parametrize("debug", [False, True])
def test_a_failing_function_of_the_user_shows_its_own_traceback_on_request(tmp_path: Path, debug: bool) -> None:
    options = ["--model", "tests.capture.example_models:failing", "--device", "cpu", "--out", str(tmp_path / "runs")]
    result = _capture(*options, *(["--debug"] if debug else []))
    assert result.exit_code == EXIT_UNUSABLE
    assert "example_models:failing failed: no such checkpoint" in result.stderr
    assert "Add --debug for its traceback." in result.stderr
    assert ('raise ValueError("no such checkpoint' in result.stderr) is debug


def test_a_sweep_over_batch_sizes(tmp_path: Path) -> None:
    result = _capture(
        "--model",
        TINY,
        "--warmup",
        1,
        "--timed-steps",
        3,
        "--device",
        "cpu",
        "--batch-sweep",
        "1,2,4",
        "--out",
        tmp_path,
    )
    assert result.exit_code == 0, result.output
    assert "Throughput st" in result.stdout or "judge stability" in result.stdout  # a busy machine proves nothing
    assert len(json.loads((tmp_path / "fp32" / "sweep.json").read_text())["rows"]) == 3
    assert not (tmp_path / "fp32" / "trace.json.gz").exists()


def test_ctrl_c_is_one_line_and_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "capture_run", interrupt)
    result = _capture(*QUICK, "--out", tmp_path)
    assert (result.exit_code, result.stdout) == (EXIT_INTERRUPTED, "")
    assert result.stderr == "Interrupted: nothing half-written is left; recordings that were finished are kept.\n"


def test_ctrl_c_within_a_long_operator_ends_within_three_seconds(tmp_path: Path) -> None:
    """A real signal in the middle of a real run, whose first precision was already finished."""
    out = tmp_path / "runs"
    assert _capture(*QUICK, "--out", out, "--precision", "bf16").exit_code == 0
    options = ["--model", "tests.capture.example_models:slow", "--batch-size", "1", "--device", "cpu"]
    command = [sys.executable, "-c", "from capture.cli import main; main()", *options, "--out", str(out)]
    process = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    deadline = time.monotonic() + 60
    while not list(out.glob(".fp32.*.partial")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - begin < 3
    assert process.returncode == EXIT_INTERRUPTED
    assert err.splitlines() == ["Interrupted: nothing half-written is left; recordings that were finished are kept."]
    assert [path.name for path in out.iterdir()] == ["bf16"]
    assert sorted(os.listdir(out / "bf16")) == ["run.json", "trace.json.gz"]
