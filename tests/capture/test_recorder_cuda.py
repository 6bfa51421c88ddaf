"""``record`` on a double of a CUDA device: where it waits, what it marks, what a refusal costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import passes, record
from capture.device import CudaMarks, Marks
from capture.environment import DeviceInfo
from capture.passes import Passes, Plan
from tests.capture.test_cuda_doubles import FakeGpu, FakeHistory, _install

SHORT: dict[str, Any] = {"warmup": 2, "timed_steps": 3, "traced_steps": 2, "quiet": True}


class NotingGpu(FakeGpu):
    """A CUDA device without CUDA; the profiler on it records the host alone."""

    def marks(self, count: int) -> Marks:
        self._calls.append(f"{count} marks")
        return super().marks(count)

    def peak_memory_bytes(self) -> tuple[int, int] | None:
        return (10, 20)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeHistory:
    fake = _install(monkeypatch, events=3)
    monkeypatch.setattr(passes, "_open", lambda asked: NotingGpu(fake.calls))
    monkeypatch.setattr(passes.environment, "device_uuid", lambda device: None)
    monkeypatch.setattr(passes.environment, "describe_device", lambda device: DeviceInfo("cuda", "a GPU"))
    monkeypatch.setattr(passes, "make_profiler", _host_profiler)
    return fake


def _host_profiler(device: Any, plan: Any, **options: Any) -> torch.profiler.profile:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options)


def _run(folder: Path, fake: FakeHistory, **options: Any) -> Any:
    with record(folder, **{**SHORT, **options}) as rec:
        for _ in range(100):
            fake.calls.append("step")
            if rec.step():
                break
    return json.loads((folder / "run.json").read_text())


def test_it_waits_only_at_the_borders_of_passes(tmp_path: Path, fake: FakeHistory) -> None:
    block = _run(tmp_path / "run", fake)
    assert fake.calls == [
        *("step", "wait", "4 marks"),  # the first step
        *(
            "step",
            "step",
            "wait",
            "wait",
            "reset peak",
            "6 marks",
        ),  # the warm-up; idle when timing begins
        *("step", "step", "step", "wait", "wait"),  # timed back to back; idle again when the profiler starts
        *("step", "wait"),  # the throw-away cycle
        *("step", "wait"),  # the schedule's warm-up ends idle: nothing of it leaks into the trace
        *("step", "step", "wait"),  # traced, finished before the profiler stops
        "reset peak",
        *("history all all python 100000", "wait", "step", "wait", "take", "history None None all 0"),
    ]
    assert block["phases"][-1] == {"name": "snapshot", "first_step": 10, "steps": 1}
    assert block["snapshot"]["starts"] == "step"
    assert (block["latency"]["peak_allocated_bytes"], block["latency"]["host_bound"]) == (10, None)
    assert any("holds no kernel" in warning for warning in block["warnings"])


@pytest.mark.parametrize("stage", ["begin", "take", "empty"])
def test_a_refused_snapshot_costs_itself_alone(
    tmp_path: Path, fake: FakeHistory, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Not supported by cudaMallocAsync\nsecond line")

    if stage == "begin":
        monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", refuse)
    elif stage == "take":
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", refuse)
    else:
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: {"device_traces": [[]]})
    block = _run(tmp_path / "run", fake)
    assert block["snapshot"] is None
    expected = "recorded no event" if stage == "empty" else "Not supported by cudaMallocAsync"
    assert expected in block["missing"]["snapshot"]
    assert "second line" not in block["missing"]["snapshot"]
    assert (block["latency"]["n"], block["profile"]["steps"]) == (3, 2)
    assert fake.calls.count("step") == 11  # as many steps as without the refusal: ranks stay together
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["run.json", "trace.json.gz"]


def test_the_history_ends_with_a_loop_that_ends_within_it(tmp_path: Path, fake: FakeHistory) -> None:
    with record(tmp_path / "run", **SHORT, snapshot_steps=5) as rec:
        for _ in range(12):
            rec.step()
    assert fake.calls[-1] == "history None None all 0"
    block = json.loads((tmp_path / "run" / "run.json").read_text())
    assert block["missing"] == {"snapshot": "the loop ended after 2 of its 5 steps"}


def test_events_are_recorded_once_before_the_loop_on_the_stream_of_their_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from capture.device import CudaDevice

    recorded: list[object] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: object) -> None:
            recorded.append(stream)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    marks = CudaDevice(1).marks(2)
    assert isinstance(marks, CudaMarks)
    assert recorded == ["stream of cuda:1"] * 2
    marks.set(0)
    assert recorded == ["stream of cuda:1"] * 3


def test_auto_takes_cuda_only_where_the_loop_has_used_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    for used, expected in ((False, "cpu"), (True, "cuda:3")):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda used=used: used)
        assert str(passes._open("auto").torch_device) == expected
    assert str(passes._open("cuda:1").torch_device) == "cuda:1"


def test_a_closed_recording_says_what_is_missing(tmp_path: Path) -> None:
    begun = Passes(Plan(device="cpu"), tmp_path)
    begun.advance(None)
    begun.close()
    assert set(begun.found.missing) == {"warm-up", "latency", "trace"}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_a_training_loop(tmp_path: Path) -> None:
    model = torch.nn.Linear(512, 512, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path / "run", timed_steps=20, traced_steps=3, quiet=True) as rec:
        for _ in range(1000):
            optimizer.zero_grad()
            model(torch.randn(64, 512, device="cuda")).sum().backward()
            optimizer.step()
            if rec.step(samples=64):
                break
    block = json.loads((tmp_path / "run" / "run.json").read_text())
    assert block["missing"] == {}
    assert block["latency"]["clock"] == "cuda_events"
    assert block["profile"]["kernel_count"] >= 3 * 4
    assert block["snapshot"]["events"] > 0
    assert (tmp_path / "run" / "snapshot.pickle").exists()
