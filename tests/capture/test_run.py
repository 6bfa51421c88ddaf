from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from capture import run
from capture.device import CpuDevice, Marks
from capture.errors import CaptureError, ModelError, OutOfMemoryError, SettingsError
from capture.metadata import read_block
from capture.precision import read_state
from capture.run import Recording, capture_run
from capture.settings import PRECISIONS, Precision, Settings
from tests.capture import example_models

Record = Callable[[Settings], Recording]


class Diary:
    """What happened, in order; repeated events are counted."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def note(self, what: str) -> None:
        self.entries.append(what)

    def shortened(self) -> list[str]:
        short: list[tuple[str, int]] = []
        for entry in self.entries:
            if short and short[-1][0] == entry:
                short[-1] = (entry, short[-1][1] + 1)
            else:
                short.append((entry, 1))
        return [entry if count == 1 else f"{entry} x{count}" for entry, count in short]


class NotingDevice(CpuDevice):
    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self._diary = diary

    def synchronize(self) -> None:
        self._diary.note("wait")

    def reset_peak_memory(self) -> None:
        self._diary.note("reset peak")

    def marks(self, count: int) -> Marks:
        self._diary.note(f"{count} marks")
        return super().marks(count)


class NotingNet(example_models.TinyNet):
    diary: Diary

    def eval(self) -> NotingNet:
        self.diary.note("eval")
        return super().eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        mode = "inference" if torch.is_inference_mode_enabled() else "gradients"
        assert not self.training
        self.diary.note(f"forward ({mode}{', profiled' if torch.autograd._profiler_enabled() else ''})")
        return super().forward(images)


@pytest.fixture
def diary(monkeypatch: pytest.MonkeyPatch) -> Diary:
    diary = Diary()
    NotingNet.diary = diary
    monkeypatch.setattr(example_models, "TinyNet", NotingNet)
    return diary


def _note_calls(diary: Diary, monkeypatch: pytest.MonkeyPatch, name: str, what: str) -> None:
    original = getattr(run, name)

    def noted(*args: Any, **kwargs: Any) -> Any:
        diary.note(what)
        return original(*args, **kwargs)

    monkeypatch.setattr(run, name, noted)


def _fake_snapshot(diary: Diary) -> Callable[..., None]:
    # No CPU path exists: the CUDA allocator alone records its history.
    def snapshot(make_forward: Callable[[], Any], device: NotingDevice, path: Path, **options: Any) -> None:
        diary.note("snapshot")
        make_forward()()

    return snapshot


def test_the_order_of_events(diary: Diary, quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _note_calls(diary, monkeypatch, "write_trace", "write trace")
    _note_calls(diary, monkeypatch, "write_json", "write run.json")
    monkeypatch.setattr(run, "record_snapshot", _fake_snapshot(diary))
    monkeypatch.setattr(run, "check_settings", lambda settings: None)  # it would refuse a snapshot here
    settings = replace(quick, warmup=3, iterations=5, snapshot_steps=1)
    capture_run(settings, tmp_path / "fp32", device=NotingDevice(diary))
    assert diary.shortened() == [
        "eval x2",  # once built, once more when it is placed
        "forward (inference)",  # the first call, waited for
        "wait",
        "6 marks",  # warm-up: no wait between its iterations, one at the end
        "forward (inference) x3",
        "wait",
        "reset peak",
        "10 marks",  # measured: the same
        "forward (inference) x5",
        "wait",
        "forward (inference, profiled)",  # throw-away cycle
        "wait x2",  # at its end, and before the recorded cycle starts
        "forward (inference, profiled)",
        "wait",  # before the profiler stops
        "snapshot",
        "forward (inference)",
        "write trace",
        "write run.json",
    ]


def test_a_refused_snapshot_costs_itself_alone(
    quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        args[2].write_bytes(b"half")
        raise RuntimeError("cudaMallocAsync does not yet support snapshot\nsecond line")

    monkeypatch.setattr(run, "record_snapshot", refuse)
    monkeypatch.setattr(run, "check_settings", lambda settings: None)
    recording = capture_run(replace(quick, snapshot_steps=1), tmp_path / "fp32")
    assert sorted(path.name for path in recording.folder.iterdir()) == ["run.json", "trace.json.gz"]
    block = read_block(recording.folder / "trace.json.gz")
    assert block["missing"] == {"snapshot": "cudaMallocAsync does not yet support snapshot"}
    assert block["latency"]["n"] == 4


def test_the_order_of_events_with_several_steps(diary: Diary, quick: Settings, tmp_path: Path) -> None:
    settings = replace(quick, warmup=1, iterations=1, steps=3)
    capture_run(settings, tmp_path / "fp32", device=NotingDevice(diary))
    profiled = diary.shortened()[diary.shortened().index("wait x2") + 1 :]
    # The scheduled warm-up step is waited for, then the recorded three are waited for together.
    assert profiled == ["forward (inference)", "wait", "forward (inference, profiled) x3", "wait"]


def test_a_history_from_the_weights_on_places_the_model_anew(
    quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs: list[torch.Tensor] = []

    def snapshot(make_forward: Callable[[], Any], device: object, path: Path, *, starts: str, steps: int) -> None:
        assert steps == 1
        assert starts == "weights"
        outputs.append(make_forward()())

    # No CPU path exists: the CUDA allocator alone records its history.
    monkeypatch.setattr(run, "record_snapshot", snapshot)
    monkeypatch.setattr(run, "check_settings", lambda settings: None)
    settings = replace(quick, precision="bf16", snapshot_steps=1, snapshot_weights=True)
    capture_run(settings, tmp_path / "bf16")
    assert [output.dtype for output in outputs] == [torch.bfloat16]


def test_files_and_their_one_block(record: Record, quick: Settings) -> None:
    recording = record(quick)
    assert sorted(path.name for path in recording.folder.iterdir()) == ["run.json", "trace.json.gz"]
    stored = json.loads((recording.folder / "run.json").read_text())
    assert stored == read_block(recording.folder / "trace.json.gz")
    assert stored["schema_version"] == "1.0"
    assert (stored["batch_size"], stored["input_shape"], stored["model_source"]) == (2, [2, 3, 8, 8], "user")
    assert stored["warmup"]["iterations"] == 2
    assert stored["latency"]["n"] == len(stored["latency"]["samples_ns"]) == 4
    assert stored["gpu_state"]["recorded"] is False
    assert stored["gpu_state"]["reason"]
    assert stored["device"]["type"] == "cpu"
    assert stored["parameter_count"] == 122
    assert stored["output_finite"] is True


@pytest.mark.parametrize(
    ("precision", "amp", "dtype"),
    [
        ("fp32", False, "float32"),
        ("bf16", False, "bfloat16"),
        ("fp16", False, "float16"),
        ("bf16", True, "float32"),
        ("fp16", True, "float32"),
    ],
)
def test_precisions_on_the_cpu(record: Record, quick: Settings, precision: Precision, amp: bool, dtype: str) -> None:
    block = record(replace(quick, precision=precision, amp=amp)).block
    assert (block.precision, block.dtype, block.amp) == (precision, dtype, amp)
    assert block.autocast_dtype == ({"bf16": "bfloat16", "fp16": "float16"}[precision] if amp else None)
    assert block.precision_state.during.cudnn_allow_tf32 is False


def test_amp_leaves_fp32_alone(record: Record, quick: Settings) -> None:
    block = record(replace(quick, amp=True)).block
    assert (block.amp, block.dtype) == (False, "float32")


@pytest.mark.parametrize("precision", [precision for precision in PRECISIONS if precision != "tf32"])
def test_switches_are_restored_after_a_run(record: Record, quick: Settings, precision: Precision) -> None:
    before = read_state()
    block = record(replace(quick, precision=precision)).block
    assert read_state() == before == block.precision_state.before


@pytest.mark.parametrize("failing_call", [1, 2, 4, 6, 8])
@pytest.mark.parametrize("error", [RuntimeError("planted"), KeyboardInterrupt()])
def test_any_failing_pass_restores_the_switches_and_leaves_no_file(
    diary: Diary,
    quick: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing_call: int,
    error: BaseException,
) -> None:
    # Calls: 1 first, 2-3 warm-up, 4-7 measured, 8 throw-away profile.
    before = read_state()
    forward = NotingNet.forward

    def fail(self: NotingNet, images: torch.Tensor) -> torch.Tensor:
        if len([entry for entry in diary.entries if entry.startswith("forward")]) == failing_call - 1:
            raise error
        return forward(self, images)

    monkeypatch.setattr(NotingNet, "forward", fail)
    with pytest.raises(ModelError if failing_call == 1 and isinstance(error, RuntimeError) else type(error)):
        capture_run(quick, tmp_path / "runs" / "fp32")
    assert read_state() == before
    assert not torch.is_inference_mode_enabled()
    assert not list(tmp_path.iterdir())


def test_repeats_build_the_model_anew_and_keep_their_spread(record: Record, quick: Settings) -> None:
    block = record(replace(quick, repeat=3)).block
    medians = [repeat.p50_ns for repeat in block.repeats]
    assert len(medians) == 3
    assert medians[-1] == block.latency.p50_ns
    assert block.repeat_p50_spread == (max(medians) - min(medians)) / min(medians)


def test_one_run_has_no_spread(record: Record, quick: Settings) -> None:
    assert record(quick).block.repeat_p50_spread is None


def test_overflow_is_recorded(record: Record, quick: Settings) -> None:
    block = record(replace(quick, model="tests.capture.example_models:overflowing")).block
    assert block.output_finite is False


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
    ],
)
@pytest.mark.parametrize("failing_call", [1, 5])
def test_out_of_memory_is_a_sentence_and_a_hint(
    diary: Diary,
    quick: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    failing_call: int,
) -> None:
    calls = []

    def fail(self: NotingNet, images: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) == failing_call:
            raise error
        return images

    monkeypatch.setattr(NotingNet, "forward", fail)
    with pytest.raises(OutOfMemoryError) as caught:
        capture_run(quick, tmp_path / "fp32")
    assert caught.value.message.startswith("Out of memory:")
    assert "batch 2" in caught.value.message
    assert "--batch-size" in caught.value.hint


@pytest.mark.parametrize(
    "refused",
    [
        {"precision": "tf32"},
        {"cuda_graph": True},
        {"snapshot_steps": 1},
        {"snapshot_weights": True},
        {"cudnn_benchmark": True},
    ],
)
def test_what_the_cpu_does_not_have_is_refused_before_a_model_is_built(
    diary: Diary, quick: Settings, tmp_path: Path, refused: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError, match="cannot be had on the CPU"):
        capture_run(replace(quick, **refused), tmp_path / "fp32")
    assert not diary.entries


def test_channels_last_reaches_model_and_input(
    diary: Diary, quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formats = []

    def look(self: NotingNet, images: torch.Tensor) -> torch.Tensor:
        formats.append(images.is_contiguous(memory_format=torch.channels_last))
        formats.append(self.conv.weight.is_contiguous(memory_format=torch.channels_last))
        return images

    monkeypatch.setattr(NotingNet, "forward", look)
    assert capture_run(replace(quick, channels_last=True), tmp_path / "fp32").block.channels_last
    assert set(formats) == {True}


def test_compiled_on_the_cpu(record: Record, quick: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    # Captured by Dynamo but run eagerly: the C++ compiler alone would take half a minute.
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    block = record(replace(quick, compile=True)).block
    assert block.compile
    assert block.warmup.first_call_ns > block.latency.max_ns  # compiled in the first call, not while measuring


def test_a_real_timm_model(record: Record) -> None:
    block = record(Settings(model="test_vit", batch_size=1, warmup=1, iterations=2)).block
    assert (block.model_source, block.input_shape) == ("timm", [1, 3, 160, 160])
    assert block.latency.throughput_samples_per_s == pytest.approx(1e9 / block.latency.mean_ns)


def test_measuring_alone_writes_nothing(quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    measurement = run.measure_latency(quick)
    assert (measurement.batch_size, measurement.latency.n) == (2, 4)
    assert not list(tmp_path.iterdir())


def test_every_error_of_ours_has_a_sentence() -> None:
    assert all(issubclass(kind, CaptureError) for kind in (ModelError, SettingsError, OutOfMemoryError))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_on_cuda(record: Record, quick: Settings, precision: Precision) -> None:
    recording = record(replace(quick, device="cuda", precision=precision, snapshot_steps=1))
    block = recording.block
    assert block.profile.kernel_count > 0
    assert block.precision_state.during.matmul_allow_tf32 is (precision == "tf32")
    assert block.latency.peak_allocated_bytes
    assert block.latency.clock == "cuda_events"
    assert block.snapshot is not None
    assert block.snapshot.events > 0
    assert (recording.folder / "snapshot.pickle").exists()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_graph_on_cuda(record: Record, quick: Settings) -> None:
    block = record(replace(quick, device="cuda", cuda_graph=True)).block
    assert block.cuda_graph
    assert block.profile.kernel_count > 0
