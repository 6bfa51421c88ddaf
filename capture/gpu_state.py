"""Clocks, temperature, power and throttle reasons of the GPU, before, during and after the measured loop.

Read through NVML (package nvidia-ml-py, module pynvml), by the device's UUID where torch gives it: NVML's own
index knows nothing of CUDA_VISIBLE_DEVICES. Where NVML is absent the state says so and why; nothing else depends on it.
"""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from capture.device import Device

SAMPLE_PERIOD_S = 0.03
"""Between samples during the loop; a sample after the last wait would already see the clock fall.

A sample costs the measured thread some microseconds of Python; NVML's own work does not hold it up.
"""
COLD_CLOCK_SHARE = 0.9
"""Below this share of the highest SM clock a GPU is cold or held back, where NVML gives no reasons: a healthy card at
its power limit runs below it too."""
DRIFT_SHARE = 0.05
"""A larger change of the SM clock within the loop means that its iterations are not alike."""

THROTTLE_REASONS: dict[int, str] = {
    0x1: "idle",
    0x2: "application clock setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}
SLOWING_MASK = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True)
class GpuSample:
    """One reading; None where this GPU or driver does not say.

    Attributes:
        sm_clock_mhz: Clock of the multiprocessors.
        memory_clock_mhz: Clock of the memory.
        temperature_c: Of the die.
        power_mw: Milliwatts drawn.
        performance_state: 0 is the fastest.
        throttle_mask: NVML's bits.
        throttle_reasons: The same in words.
    """

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_mw: int | None
    performance_state: int | None
    throttle_mask: int | None
    throttle_reasons: tuple[str, ...]


@dataclass(frozen=True)
class GpuDuring:
    """The readings taken while the measured loop ran.

    Attributes:
        samples: How many.
        sm_clock_min_mhz: Lowest SM clock.
        sm_clock_median_mhz: Median SM clock.
        sm_clock_max_mhz: Highest SM clock.
        temperature_max_c: Highest temperature.
        power_mean_mw: Mean power.
        throttle_mask: Bits of all readings together.
        throttle_reasons: The same in words.
        reasons_known: Whether NVML said so at all.
    """

    samples: int
    sm_clock_min_mhz: int | None
    sm_clock_median_mhz: int | None
    sm_clock_max_mhz: int | None
    temperature_max_c: int | None
    power_mean_mw: int | None
    throttle_mask: int
    throttle_reasons: tuple[str, ...]
    reasons_known: bool = False


@dataclass(frozen=True)
class GpuState:
    """What is known of the GPU around the measured loop.

    Attributes:
        recorded: Whether anything is known.
        reason: Why not, or None.
        sm_clock_limit_mhz: Highest SM clock that this GPU can have.
        power_limit_mw: Enforced power limit.
        persistence_mode: Whether the driver stays loaded.
        other_processes: Compute processes on the GPU besides this one.
        before: Just before the warm-up.
        during: While the measured loop ran.
        after: Right after its last wait.
        unstable: Reasons to distrust the clocks; empty when there are none.
    """

    recorded: bool
    reason: str | None
    sm_clock_limit_mhz: int | None = None
    power_limit_mw: int | None = None
    persistence_mode: bool | None = None
    other_processes: int | None = None
    before: GpuSample | None = None
    during: GpuDuring | None = None
    after: GpuSample | None = None
    unstable: tuple[str, ...] = ()


def reasons_in_words(mask: int) -> tuple[str, ...]:
    """NVML's clock-event bits as words, in the order of the bits."""
    return tuple(words for bit, words in THROTTLE_REASONS.items() if mask & bit)


def judge_clocks(during: GpuDuring, limit_mhz: int | None) -> tuple[str, ...]:
    """Why the clocks of the loop cannot be trusted: cold, drifting or throttled."""
    reasons = []
    low, middle, high = during.sm_clock_min_mhz, during.sm_clock_median_mhz, during.sm_clock_max_mhz
    unexplained = not during.reasons_known
    if unexplained and limit_mhz and middle is not None and middle < COLD_CLOCK_SHARE * limit_mhz:
        reasons.append(f"SM clock {middle} MHz is below {COLD_CLOCK_SHARE:.0%} of {limit_mhz} MHz")
    if low is not None and high and (high - low) / high > DRIFT_SHARE:
        reasons.append(f"SM clock moved between {low} and {high} MHz")
    if during.throttle_mask & SLOWING_MASK:
        reasons.append("throttled: " + ", ".join(reasons_in_words(during.throttle_mask & SLOWING_MASK)))
    return tuple(reasons)


def summarize_samples(samples: Sequence[GpuSample]) -> GpuDuring | None:
    """Condense the readings of the loop; None where there are none."""
    if not samples:
        return None
    clocks = [sample.sm_clock_mhz for sample in samples if sample.sm_clock_mhz is not None]
    heat = [sample.temperature_c for sample in samples if sample.temperature_c is not None]
    power = [sample.power_mw for sample in samples if sample.power_mw is not None]
    mask = 0
    for sample in samples:
        mask |= sample.throttle_mask or 0
    return GpuDuring(
        samples=len(samples),
        sm_clock_min_mhz=min(clocks, default=None),
        sm_clock_median_mhz=round(statistics.median(clocks)) if clocks else None,
        sm_clock_max_mhz=max(clocks, default=None),
        temperature_max_c=max(heat, default=None),
        power_mean_mw=round(statistics.fmean(power)) if power else None,
        throttle_mask=mask,
        throttle_reasons=reasons_in_words(mask),
        reasons_known=any(sample.throttle_mask is not None for sample in samples),
    )


class GpuWatch:
    """Reads one GPU; without NVML every method does nothing and `state` says why."""

    def __init__(self, nvml: Any | None, handle: Any, reason: str | None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._reason = reason
        self._before: GpuSample | None = None
        self._after: GpuSample | None = None
        self._during: list[GpuSample] = []

    @property
    def driver_version(self) -> str | None:
        """The driver's version, or None."""
        version: str | None = self._ask(lambda nvml: _text(nvml.nvmlSystemGetDriverVersion()))
        return version

    def mark_before(self) -> None:
        """Read once before the warm-up."""
        self._before = self._sample()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Read every 30 ms from another thread inside, and once at the end."""
        if self._nvml is None:
            yield
            return
        self._during = []
        stop = threading.Event()
        reader = threading.Thread(target=self._read_until, args=(stop,), daemon=True)
        reader.start()
        try:
            yield
        finally:
            stop.set()
            reader.join()
        self._after = self._sample()

    def state(self) -> GpuState:
        """Everything read so far, judged."""
        if self._nvml is None:
            return GpuState(recorded=False, reason=self._reason)
        limit = self._ask(lambda nvml: int(nvml.nvmlDeviceGetMaxClockInfo(self._handle, nvml.NVML_CLOCK_SM)))
        during = summarize_samples(self._during)
        return GpuState(
            recorded=True,
            reason=None,
            sm_clock_limit_mhz=limit,
            power_limit_mw=self._ask(lambda nvml: int(nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle))),
            persistence_mode=self._ask(lambda nvml: bool(nvml.nvmlDeviceGetPersistenceMode(self._handle))),
            other_processes=self._ask(self._count_others),
            before=self._before,
            during=during,
            after=self._after,
            unstable=judge_clocks(during, limit) if during else (),
        )

    def _count_others(self, nvml: Any) -> int:
        # A container sees its own process under another number, so one process is taken to be this one.
        return max(len(nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)) - 1, 0)

    def _read_until(self, stop: threading.Event) -> None:
        while True:
            sample = self._sample()
            if sample is not None:
                self._during.append(sample)
            if stop.wait(SAMPLE_PERIOD_S):
                return

    def _sample(self) -> GpuSample | None:
        if self._nvml is None:
            return None
        handle = self._handle
        mask = self._ask(lambda nvml: int(_throttle_reader(nvml)(handle)))
        return GpuSample(
            sm_clock_mhz=self._ask(lambda nvml: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=self._ask(lambda nvml: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            temperature_c=self._ask(lambda nvml: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
            power_mw=self._ask(lambda nvml: int(nvml.nvmlDeviceGetPowerUsage(handle))),
            performance_state=self._ask(lambda nvml: int(nvml.nvmlDeviceGetPerformanceState(handle))),
            throttle_mask=mask,
            throttle_reasons=reasons_in_words(mask or 0),
        )

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        if self._nvml is None:
            return None
        try:
            return question(self._nvml)
        except (self._nvml.NVMLError, AttributeError):
            return None  # this GPU, driver or virtual slice does not say


def open_watch(device: Device, uuid: str | None) -> GpuWatch:
    """Begin to watch the GPU with this UUID (as torch gives it); never raises."""
    if device.type != "cuda":
        return GpuWatch(None, None, "there is no GPU in this run")
    try:
        import pynvml
    except ImportError:
        return GpuWatch(None, None, "nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
        handle = find_handle(pynvml, uuid, device.torch_device.index or 0)
    except (pynvml.NVMLError, TypeError) as error:
        return GpuWatch(None, None, f"NVML cannot be used: {error}")
    return GpuWatch(pynvml, handle, None)


def find_handle(nvml: Any, uuid: str | None, index: int, variables: Mapping[str, str] = os.environ) -> Any:
    """NVML's handle of a CUDA device, so that a MIG slice is the slice and not its whole GPU.

    Args:
        nvml: The module pynvml, initialised.
        uuid: As torch gives it; torch gives a slice that of its GPU.
        index: CUDA's index of the device, which counts within CUDA_VISIBLE_DEVICES.
        variables: The environment.

    Raises:
        NVMLError: There is no such device.
    """
    visible = [entry.strip() for entry in variables.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    entry = visible[index] if index < len(visible) else ""
    if entry.startswith("MIG-"):
        return nvml.nvmlDeviceGetHandleByUUID(entry)
    if uuid is not None:
        return nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
    if entry.startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(entry)
    return nvml.nvmlDeviceGetHandleByIndex(int(entry) if entry.isdecimal() else index)


def _throttle_reader(nvml: Any) -> Callable[[Any], int]:
    # NVML renamed the question; older bindings know only the older name.
    newer = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    return newer or nvml.nvmlDeviceGetCurrentClocksThrottleReasons  # type: ignore[no-any-return]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
