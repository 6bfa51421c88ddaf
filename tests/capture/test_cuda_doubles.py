"""Calls that have no CPU path, against recorded doubles of torch.cuda. The gpu twins are in test_run.py."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import forward, precision, snapshot
from capture.device import CpuDevice, CudaDevice, CudaMarks, DeviceType, open_device, resolve_device_type
from capture.errors import ProfileError, SettingsError
from capture.models import load_model
from capture.settings import Settings, check_capability, check_settings, split_device
from capture.snapshot import MOST_ENTRIES, record_snapshot


class FakeHistory:
    """torch.cuda.memory as far as a snapshot needs it, noting every call."""

    def __init__(self, events: int) -> None:
        self.calls: list[str] = []
        self._events = events

    def record(
        self, enabled: str | None, context: str | None = None, stacks: str = "all", max_entries: int = 0
    ) -> None:
        self.calls.append(f"history {enabled} {context} {stacks} {max_entries}")

    def take(self) -> dict[str, Any]:
        self.calls.append("take")
        return {"segments": [], "device_traces": [[{"action": "alloc"}] * self._events]}


class FakeGpu(CpuDevice):
    type: DeviceType = "cuda"

    def __init__(self, calls: list[str]) -> None:
        self.torch_device = torch.device("cuda", 0)
        self._calls = calls

    def synchronize(self) -> None:
        self._calls.append("wait")

    def reset_peak_memory(self) -> None:
        self._calls.append("reset peak")


def _install(monkeypatch: pytest.MonkeyPatch, events: int) -> FakeHistory:
    fake = FakeHistory(events)
    memory = torch.cuda.memory
    monkeypatch.setattr(memory, "_record_memory_history", fake.record)
    monkeypatch.setattr(memory, "_snapshot", fake.take)
    monkeypatch.setattr(memory, "get_allocator_backend", lambda: "native")
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: {"requested_bytes.all.peak": 7})
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1, 2))
    return fake


def test_the_history_is_recorded_around_one_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _install(monkeypatch, events=3)
    taken = record_snapshot(lambda: lambda: fake.calls.append("forward"), FakeGpu(fake.calls), tmp_path / "s.pickle")
    assert fake.calls == [
        "reset peak",
        f"history all all python {MOST_ENTRIES}",  # what this version lacks (clear_history) is left out
        "wait",
        "forward",
        "wait",
        "take",
        "history None None all 0",
    ]
    assert (taken.events, taken.overflowed, taken.peak_requested_bytes) == (3, False, 7)
    assert (taken.device_free_bytes, taken.device_total_bytes, taken.file) == (1, 2, "s.pickle")
    assert pickle.loads((tmp_path / "s.pickle").read_bytes())["segments"] == []


def test_several_forwards_share_one_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _install(monkeypatch, events=3)
    forward = lambda: fake.calls.append("forward")  # noqa: E731
    record_snapshot(lambda: forward, FakeGpu(fake.calls), tmp_path / "s.pickle", steps=3)
    assert fake.calls[2:7] == ["wait", "forward", "forward", "forward", "wait"]


def test_the_pickle_can_be_read_by_older_viewers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _install(monkeypatch, events=1)
    record_snapshot(lambda: lambda: None, FakeGpu(fake.calls), tmp_path / "s.pickle")
    assert (tmp_path / "s.pickle").read_bytes()[:2] == b"\x80\x04"


def test_an_overflowing_history_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_ENTRIES", 5)
    fake = _install(monkeypatch, events=5)
    assert record_snapshot(lambda: lambda: None, FakeGpu(fake.calls), tmp_path / "s").overflowed


def test_an_empty_history_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _install(monkeypatch, events=0)
    with pytest.raises(ProfileError, match="recorded no event"):
        record_snapshot(lambda: lambda: None, FakeGpu(fake.calls), tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_recording_ends_when_the_forward_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _install(monkeypatch, events=3)

    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_snapshot(lambda: fail, FakeGpu(fake.calls), tmp_path / "s")
    assert fake.calls[-1] == "history None None all 0"


def test_a_graph_is_warmed_up_on_a_side_stream_then_captured_then_replayed(
    quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    class Stream:
        def __init__(self, device: object = None) -> None:
            pass

        def wait_stream(self, other: object) -> None:
            told.append("wait_stream")

    class Graph:
        def replay(self) -> None:
            told.append("replay")

    @contextlib.contextmanager
    def block(name: str) -> Iterator[None]:
        told.append(f"begin {name}")
        yield
        told.append(f"end {name}")

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: block("stream"))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, stream: block(f"capture on {type(stream).__name__}"))
    for name in ("DISABLE_CUPTI_LAZY_REINIT", "TEARDOWN_CUPTI"):
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
    loaded = load_model(quick)
    loaded.module.register_forward_hook(lambda *args: told.append("forward"))
    with torch.inference_mode():
        call = forward.place(loaded, replace(quick, cuda_graph=True), CpuDevice())
        assert told == [
            *("wait_stream", "begin stream", "forward", "forward", "forward", "end stream", "wait_stream"),
            *("begin capture on Stream", "forward", "end capture on Stream"),
        ]
        assert (os.environ["DISABLE_CUPTI_LAZY_REINIT"], os.environ["TEARDOWN_CUPTI"]) == ("1", "0")
        told.clear()
        assert call().shape == (2, 2)
    assert told == ["replay"]


def test_every_wait_and_every_peak_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    for name in ("synchronize", "reset_peak_memory_stats", "max_memory_allocated", "max_memory_reserved"):
        monkeypatch.setattr(torch.cuda, name, asked.append)
    device = CudaDevice(1)
    device.synchronize()
    device.reset_peak_memory()
    device.peak_memory_bytes()
    assert asked == [torch.device("cuda", 1)] * 4  # without it, torch takes the current device


def test_event_times_become_nanoseconds() -> None:
    class Event:
        def elapsed_time(self, other: object) -> float:
            return 1.234567

    assert CudaMarks([Event(), Event()]).elapsed_ns(0, 1) == 1_234_567  # type: ignore[list-item]


def test_the_device_is_what_torch_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [resolve_device_type(asked) for asked in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [resolve_device_type(asked) for asked in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(SettingsError, match="finds no usable CUDA device"):
        resolve_device_type("cuda")


def test_a_snapshot_of_a_replay_is_refused_before_anything_runs() -> None:
    settings = Settings(device="cuda", cuda_graph=True, snapshot_steps=1)
    with pytest.raises(SettingsError, match="would record nothing"):
        check_settings(settings, {})
    check_settings(replace(settings, snapshot_weights=True), {})


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_graphs_of_inductor_exclude_a_graph_of_ours(mode: Any) -> None:
    settings = Settings(device="cuda", cuda_graph=True, compile=True, compile_mode=mode)
    with pytest.raises(SettingsError, match=f"--compile-mode {mode} captures CUDA graphs itself, so it excludes"):
        check_settings(settings, {})
    check_settings(replace(settings, cuda_graph=False), {})
    check_settings(replace(settings, compile_mode="max-autotune-no-cudagraphs"), {})
    check_settings(replace(settings, compile_mode=None), {})
    with pytest.raises(SettingsError, match="TORCHINDUCTOR_CUDAGRAPHS=1"):
        check_settings(replace(settings, compile_mode=None), {"TORCHINDUCTOR_CUDAGRAPHS": "1"})


def test_a_mode_without_compiling_is_named() -> None:
    with pytest.raises(SettingsError, match="--compile-mode reduce-overhead compiles nothing by itself"):
        check_settings(Settings(compile_mode="reduce-overhead"), {})


def test_tf32_needs_ampere() -> None:
    settings = Settings(precision="tf32", device="cuda")
    check_capability(settings, (8, 0), "A100")
    with pytest.raises(SettingsError, match="has no TF32"):
        check_capability(settings, (7, 5), "T4")
    check_capability(replace(settings, precision="fp32"), (7, 5), "T4")


@pytest.mark.parametrize(("wanted", "forced"), [("fp32", "1"), ("tf32", "0")])
def test_a_variable_that_overrules_the_switches_is_refused(wanted: Any, forced: str) -> None:
    settings = Settings(precision=wanted, device="cuda")
    check_settings(settings, {})
    check_settings(settings, {"NVIDIA_TF32_OVERRIDE": {"0": "1", "1": "0"}[forced]})
    with pytest.raises(SettingsError, match="contradicts --precision"):
        check_settings(settings, {"NVIDIA_TF32_OVERRIDE": forced})


@pytest.mark.parametrize("knows_emulation", [True, False])
def test_bf16_that_is_only_emulated_is_refused(monkeypatch: pytest.MonkeyPatch, knows_emulation: bool) -> None:
    def newer(including_emulation: bool = True) -> bool:
        return including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", newer if knows_emulation else lambda: False)
    with pytest.raises(SettingsError, match="no bf16"):
        precision.check_supported(Settings(precision="bf16", device="cuda"))
    precision.check_supported(Settings(precision="fp16", device="cuda"))


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "HIP out of memory. Tried to allocate 2.00 GiB",
        "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory",
    ],
)
def test_short_memory_is_known_in_all_its_texts(text: str) -> None:
    explained = forward.explain_failure(RuntimeError(text), Settings(device="cuda", batch_size=8))
    assert explained is not None
    assert "Out of memory" in explained.message


def test_another_failure_is_not_taken_for_short_memory() -> None:
    assert forward.explain_failure(RuntimeError("CUDA error: an illegal memory access"), Settings()) is None
    assert forward.explain_failure(RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED"), Settings()) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "is busy or unavailable: in exclusive mode"),
        ("CUDA error: out of memory", "has no memory left for one more process"),
        ("CUDA error: invalid device ordinal\nsecond", "cuda:1 is not there"),
        ("CUDA error: unknown error\nsecond line", "cannot be used: CUDA error: unknown error"),
    ],
)
def test_a_device_that_cannot_be_opened_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, text: str, sentence: str
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch, "empty", fail)
    with pytest.raises(SettingsError, match=re.escape(sentence)) as caught:
        open_device("cuda", 1)
    assert "second" not in caught.value.message


def test_tf32_is_asked_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: False)
    with pytest.raises(SettingsError, match="gfx90a has no TF32"):
        precision.check_tf32("tf32", "gfx90a")
    precision.check_tf32("fp32", "gfx90a")
    monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: True)
    precision.check_tf32("tf32", "MI300X")


@pytest.mark.parametrize("node", ["cuda.matmul", "cudnn.conv", "cudnn.rnn"])
def test_what_torch_says_after_switching_must_be_what_was_asked(node: str) -> None:
    nodes = dict.fromkeys(("cuda.matmul", "cudnn.conv", "cudnn.rnn"), "ieee")
    state = precision.PrecisionState(False, False, "highest", None, None, None, nodes)
    precision.check_state("fp32", state)
    with pytest.raises(SettingsError, match=f"{node}.fp32_precision still allows TF32"):
        precision.check_state("fp32", replace(state, fp32_precision={**nodes, node: "tf32"}))
    with pytest.raises(SettingsError, match="still forbids TF32"):
        precision.check_state("tf32", state)


@pytest.mark.parametrize("asked", ["gpu", "cpu:0", "cuda:x", "cuda:"])
def test_unknown_devices_are_named(asked: str) -> None:
    with pytest.raises(SettingsError, match=f"--device {asked} is unknown"):
        split_device(asked)


def test_devices_are_taken_apart() -> None:
    assert [split_device(asked) for asked in ("auto", "cuda", "cuda:12")] == [
        ("auto", None),
        ("cuda", None),
        ("cuda", 12),
    ]
