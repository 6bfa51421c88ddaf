"""``capture --train``: the model is trained for real, with and without a DataLoader."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from capture import cli
from capture.errors import SettingsError
from capture.settings import Settings
from capture.training import train_run
from tests.capture.conftest import TINY


@pytest.mark.parametrize("workers", [None, 0, 1])
def test_steps_of_training_are_recorded(quick: Settings, tmp_path: Path, workers: int | None) -> None:
    recorder = train_run(replace(quick, steps=2), tmp_path / "fp32", workers=workers)
    block = recorder.block
    assert block is not None
    assert block.latency is not None
    assert (block.model, block.precision, block.step_ended_by) == (TINY, "fp32", "AdamW.step")
    assert (block.missing, block.batch_size, block.latency.n) == ({}, 2, 4)
    with gzip.open(tmp_path / "fp32" / "trace.json.gz", "rt") as file:
        names = Counter(event["name"] for event in json.load(file)["traceEvents"] if "cat" in event)
    assert (names["forward"], names["backward"], names["Optimizer.step#AdamW.step"]) == (2, 2, 2)
    loads = sum(count for name, count in names.items() if name.startswith("enumerate(DataLoader)"))
    assert loads == (0 if workers is None else 2)


def test_autocast_in_training(quick: Settings, tmp_path: Path) -> None:
    recorder = train_run(replace(quick, precision="bf16", amp=True), tmp_path / "bf16", workers=None)
    assert recorder.block is not None
    assert recorder.block.profile is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precision": "fp16"}, "does not converge"),
        ({"repeat": 2}, "--repeat is for inference"),
    ],
)
def test_what_belongs_to_inference_is_refused(
    quick: Settings, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        train_run(replace(quick, **change), tmp_path / "run", workers=None)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_on_the_command_line(tmp_path: Path) -> None:
    options = ["--model", TINY, "--batch-size", "2", "--warmup", "1", "--timed-steps", "2", "--device", "cpu"]
    out = str(tmp_path / "runs")
    result = CliRunner().invoke(cli.capture, [*options, "--train", "--loader", "0", "--out", out])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "runs" / "fp32" / "trace.json.gz").exists()
    refused = CliRunner().invoke(cli.capture, [*options, "--loader", "0", "--out", str(tmp_path / "b")])
    assert refused.exit_code == 2
    assert "--loader feeds training" in refused.output
