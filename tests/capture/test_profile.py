from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import profile as torch_profile

from capture import profile
from capture.device import CpuDevice, DeviceType
from capture.errors import ProfileError
from capture.metadata import read_block
from capture.run import Recording
from capture.settings import Settings

Record = Callable[[Settings], Recording]


def _events(recording: Recording) -> list[dict[str, Any]]:
    with gzip.open(recording.folder / "trace.json.gz", "rt", encoding="utf-8") as file:
        return [event for event in json.load(file)["traceEvents"] if "cat" in event]


def _named(recording: Recording, name: str) -> list[dict[str, Any]]:
    return [event for event in _events(recording) if event["name"] == name]


def test_one_forward_inside_one_span(record: Record, quick: Settings) -> None:
    recording = record(quick)
    assert len(_named(recording, "model_inference")) == 1
    assert len(_named(recording, "aten::conv2d")) == 1  # the throw-away cycle is not in the trace
    assert not [event for event in _events(recording) if event["name"].startswith("ProfilerStep")]
    assert recording.block.profile.steps == 1


def test_several_steps_are_bounded_by_the_profilers_marks(record: Record, quick: Settings) -> None:
    recording = record(replace(quick, steps=3))
    steps = sorted({event["name"] for event in _events(recording) if event["name"].startswith("ProfilerStep")})
    assert steps == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    assert len(_named(recording, "model_inference")) == 3
    assert len(_named(recording, "aten::conv2d")) == 3


def test_shapes_and_memory_events_are_on_and_stacks_off(record: Record, quick: Settings) -> None:
    recording = record(quick)
    (conv,) = _named(recording, "aten::conv2d")
    assert conv["args"]["Input Dims"][0] == [2, 3, 8, 8]
    assert _named(recording, "[memory]")
    assert "python_function" not in recording.block.profile.activities


def test_shapes_can_be_left_out(record: Record, quick: Settings) -> None:
    recording = record(replace(quick, shapes=False))
    (conv,) = _named(recording, "aten::conv2d")
    assert "Input Dims" not in conv["args"]
    assert not recording.block.profile.record_shapes


def test_memory_events_can_be_left_out(record: Record, quick: Settings) -> None:
    recording = record(replace(quick, memory_events=False))
    assert not _named(recording, "[memory]")
    assert not recording.block.profile.profile_memory


def test_stacks_can_be_had(record: Record, quick: Settings) -> None:
    recording = record(replace(quick, stacks=True))
    assert recording.block.profile.activities["python_function"] > 0
    assert recording.block.profile.with_stack


def test_the_block_counts_what_is_in_the_trace(record: Record, quick: Settings) -> None:
    recording = record(quick)
    counted: dict[str, int] = {}
    for event in _events(recording):
        counted[event["cat"]] = counted.get(event["cat"], 0) + 1
    assert counted == recording.block.profile.activities
    assert recording.block.profile.kernel_count == 0
    assert read_block(recording.folder / "trace.json.gz")["profile"]["activities"] == counted


def test_the_profiled_time_covers_the_span(record: Record, quick: Settings) -> None:
    recording = record(quick)
    (span,) = _named(recording, "model_inference")
    assert recording.block.profile.profiled_wall_ns >= span["dur"] * 1000


def test_the_trace_is_exported_only_once(record: Record, quick: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    exported: list[str] = []
    export = torch_profile.export_chrome_trace

    def count(self: torch_profile, path: str, *args: Any, **kwargs: Any) -> Any:
        exported.append(path)
        return export(self, path, *args, **kwargs)

    monkeypatch.setattr(torch_profile, "export_chrome_trace", count)
    record(quick)
    assert len(exported) == 1  # the profiler refuses a second one


def test_nothing_of_the_profilers_chatter_reaches_the_terminal(
    record: Record, quick: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    record(quick)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_invalid_json_from_the_exporter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "exported.json"
    path.write_text('{"traceEvents": [{"ph": "X", "name": "a "quote""}]}')
    with pytest.raises(ProfileError, match="not valid JSON"):
        profile.count_activities(path)


class _KernellessGpu(CpuDevice):
    """Recorded double: says that it is a CUDA device, on which nothing records a kernel."""

    type: DeviceType = "cuda"


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_zero_kernels_of_a_cuda_run_are_an_error_with_a_double(tmp_path: Path, quick: Settings) -> None:
    with pytest.raises(ProfileError, match="not one kernel"):
        profile.record_trace(lambda: torch.ones(2).sum(), _KernellessGpu(), quick, tmp_path / "exported.json")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_kernels_of_a_cuda_run_are_counted(record: Record, quick: Settings) -> None:
    recording = record(replace(quick, device="cuda"))
    assert recording.block.profile.kernel_count > 0
