"""Clocks of the GPU. No CPU path exists, so NVML is a recorded double here; the gpu twin is at the end."""

from __future__ import annotations

import sys
import time
from types import ModuleType
from typing import Any

import pytest
import torch

from capture.device import CpuDevice, DeviceType, open_device
from capture.environment import device_uuid
from capture.gpu_state import (
    GpuDuring,
    GpuSample,
    find_handle,
    judge_clocks,
    open_watch,
    reasons_in_words,
    summarize_samples,
)


class Gpu(CpuDevice):
    type: DeviceType = "cuda"


class NvmlError(Exception):
    pass


def _double(**answers: Any) -> ModuleType:
    """NVML as it answers on a GPU at 1980 MHz, with single answers replaced."""
    nvml = ModuleType("pynvml")
    nvml.NVMLError = NvmlError  # type: ignore[attr-defined]
    nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM, nvml.NVML_TEMPERATURE_GPU = 1, 2, 0  # type: ignore[attr-defined]
    known: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: 1980,
        "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
        "nvmlDeviceGetPersistenceMode": lambda handle: 1,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [1],
        "nvmlDeviceGetTemperature": lambda handle, sensor: 41,
        "nvmlDeviceGetPowerUsage": lambda handle: 250_000,
        "nvmlDeviceGetPerformanceState": lambda handle: 0,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 0x4,
    }
    for name, answer in {**known, **answers}.items():
        if answer is not None:
            setattr(nvml, name, answer)
    return nvml


def _fail(*args: Any) -> None:
    raise NvmlError("Not Supported")


def test_a_cpu_run_says_why_nothing_is_recorded() -> None:
    state = open_watch(CpuDevice(), None).state()
    assert (state.recorded, state.reason) == (False, "there is no GPU in this run")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    state = open_watch(Gpu(), "uuid").state()
    assert (state.recorded, state.reason) == (False, "nvidia-ml-py is not installed")


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _double(nvmlInit=_fail))
    assert open_watch(Gpu(), "uuid").state().reason == "NVML cannot be used: Not Supported"


def test_without_a_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _double(nvmlDeviceGetHandleByIndex=_fail))
    assert open_watch(Gpu(), None).state().reason == "NVML cannot be used: Not Supported"


@pytest.mark.parametrize(
    ("visible", "uuid", "index", "found"),
    [
        ("", "12", 0, "GPU-12"),
        ("", None, 1, 1),
        ("5,7", None, 1, 7),
        ("GPU-aa,GPU-bb", None, 1, "GPU-bb"),
        ("MIG-cc", "12", 0, "MIG-cc"),  # torch gives the UUID of the whole GPU
        ("5,7", "12", 1, "GPU-12"),
    ],
)
def test_the_device_is_found_in_what_is_visible(visible: str, uuid: str | None, index: int, found: object) -> None:
    nvml = _double(nvmlDeviceGetHandleByIndex=lambda number: number)
    assert find_handle(nvml, uuid, index, {"CUDA_VISIBLE_DEVICES": visible}) == found


@pytest.mark.parametrize(("given", "asked"), [("1234", "GPU-1234"), ("GPU-1234", "GPU-1234"), ("MIG-1", "MIG-1")])
def test_the_gpu_is_found_by_its_uuid(monkeypatch: pytest.MonkeyPatch, given: str, asked: str) -> None:
    sought: list[str] = []
    monkeypatch.setitem(sys.modules, "pynvml", _double(nvmlDeviceGetHandleByUUID=sought.append))
    open_watch(Gpu(), given)
    assert sought == [asked]


def test_before_during_and_after_with_a_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _double())
    watch = open_watch(Gpu(), "1234")
    watch.mark_before()
    with watch.measuring():
        time.sleep(0.08)
    state = watch.state()
    assert state.recorded
    assert (state.sm_clock_limit_mhz, state.power_limit_mw, state.other_processes) == (1980, 700_000, 0)
    sample = GpuSample(1980, 3201, 41, 250_000, 0, 0x4, ("software power cap",))
    assert state.before == state.after == sample
    assert state.during is not None
    assert state.during.samples >= 2
    assert state.unstable == ("throttled: software power cap",)
    assert watch.driver_version == "580.1"


def test_questions_that_a_gpu_does_not_answer_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    mute = _double(
        nvmlDeviceGetPowerUsage=_fail, nvmlDeviceGetCurrentClocksEventReasons=None, nvmlDeviceGetMaxClockInfo=_fail
    )
    monkeypatch.setitem(sys.modules, "pynvml", mute)
    watch = open_watch(Gpu(), "1234")
    watch.mark_before()
    before = watch.state().before
    assert before is not None
    assert (before.power_mw, before.throttle_mask, before.sm_clock_mhz) == (None, None, 1980)
    assert watch.state().sm_clock_limit_mhz is None


def test_an_older_binding_asks_by_the_older_name(monkeypatch: pytest.MonkeyPatch) -> None:
    older = _double(
        nvmlDeviceGetCurrentClocksEventReasons=None, nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x40
    )
    monkeypatch.setitem(sys.modules, "pynvml", older)
    watch = open_watch(Gpu(), "1234")
    watch.mark_before()
    before = watch.state().before
    assert before is not None
    assert before.throttle_reasons == ("hardware thermal slowdown",)


def _sample(clock: int | None, mask: int = 0) -> GpuSample:
    return GpuSample(clock, None, 50, None, None, mask, reasons_in_words(mask))


def test_samples_are_condensed_by_hand() -> None:
    during = summarize_samples([_sample(1500), _sample(None, 0x1), _sample(1900, 0x40), _sample(1800)])
    assert during == GpuDuring(4, 1500, 1800, 1900, 50, None, 0x41, ("idle", "hardware thermal slowdown"), True)
    assert summarize_samples([]) is None


@pytest.mark.parametrize(
    ("clocks", "mask", "words"),
    [
        ((1980, 1980, 1980), 0x0, []),
        ((1980, 1980, 1980), 0x1, []),  # idle and application clocks are no slowdown
        ((1782, 1782, 1782), 0x0, []),  # exactly 90 %
        ((1781, 1781, 1781), 0x0, ["below 90%"]),
        ((1881, 1980, 1980), 0x0, []),  # exactly 5 %
        ((1880, 1980, 1980), 0x0, ["moved between 1880 and 1980"]),
        ((1980, 1980, 1980), 0x8, ["hardware slowdown"]),
        ((345, 345, 1980), 0x80, ["below 90%", "moved", "hardware power brake"]),
    ],
)
def test_clocks_are_judged(clocks: tuple[int, int, int], mask: int, words: list[str]) -> None:
    low, middle, high = clocks
    reasons = judge_clocks(GpuDuring(3, low, middle, high, None, None, mask, ()), 1980)
    assert len(reasons) == len(words)
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_a_card_at_its_power_limit_is_judged_by_its_reasons() -> None:
    """1,500 of 1,980 MHz is 76 %, and NVML says why, or that nothing holds it back."""
    assert judge_clocks(GpuDuring(3, 1500, 1500, 1500, None, None, 0, (), True), 1980) == ()
    capped = judge_clocks(GpuDuring(3, 1500, 1500, 1500, None, None, 0x4, (), True), 1980)
    assert capped == ("throttled: software power cap",)


def test_unknown_clocks_are_not_judged() -> None:
    assert judge_clocks(GpuDuring(1, None, None, None, None, None, 0, ()), None) == ()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_tells_its_clock_or_why_not() -> None:
    device = open_device("cuda")
    watch = open_watch(device, device_uuid(device))
    watch.mark_before()
    state = watch.state()
    assert state.reason if not state.recorded else state.before
