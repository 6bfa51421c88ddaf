"""The device that a recording runs on: when its work is finished, its time and its memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from capture.errors import SettingsError, first_line
from capture.settings import DeviceType, split_device

NS_PER_MS = 1_000_000

Forward = Callable[[], Any]
"""One forward on a static input; returns the model's output."""


class Marks(Protocol):
    """A row of moments on the device's own time line, set without waiting and read afterwards."""

    def set(self, index: int) -> None:
        """Mark this moment in the order of the device's work."""
        ...

    def elapsed_ns(self, first: int, second: int) -> int:
        """Nanoseconds between two moments; the device must have been synchronised since."""
        ...


class Device(Protocol):
    """What the passes need of a device."""

    type: DeviceType
    clock: str
    torch_device: torch.device

    def synchronize(self) -> None:
        """Wait until this device has finished all its work."""
        ...

    def marks(self, count: int) -> Marks:
        """So many moments, made beforehand so that none is made while measuring."""
        ...

    def release_memory(self) -> None:
        """Give back what nobody uses any more."""
        ...

    def reset_peak_memory(self) -> None:
        """Begin a new peak."""
        ...

    def peak_memory_bytes(self) -> tuple[int, int] | None:
        """Largest allocated and reserved bytes since the reset, or None where nobody counts them."""
        ...


class CpuMarks:
    """Moments of the host's monotonic clock."""

    def __init__(self, count: int) -> None:
        self._moments_ns: list[int] = [0] * count

    def set(self, index: int) -> None:
        """Mark now."""
        self._moments_ns[index] = time.perf_counter_ns()

    def elapsed_ns(self, first: int, second: int) -> int:
        """Nanoseconds between two moments."""
        return self._moments_ns[second] - self._moments_ns[first]


class CpuDevice:
    """The host itself: a forward has finished when the call returns."""

    type: DeviceType = "cpu"
    clock = "perf_counter"

    def __init__(self) -> None:
        self.torch_device = torch.device("cpu")

    def synchronize(self) -> None:
        """Nothing runs on after a call on the CPU."""

    def marks(self, count: int) -> Marks:
        """Moments of the host's clock."""
        return CpuMarks(count)

    def release_memory(self) -> None:
        """Collect models that are kept alive by a cycle of references."""
        gc.collect()

    def reset_peak_memory(self) -> None:
        """No peak is kept for the CPU."""

    def peak_memory_bytes(self) -> tuple[int, int] | None:
        """Not counted on the CPU."""
        return None


class CudaMarks:
    """CUDA events on the current stream of one device, which need not be the current device."""

    def __init__(self, events: Sequence[torch.cuda.Event], device: torch.device | None = None) -> None:
        self._events = events
        self._device = device

    def set(self, index: int) -> None:
        """Queue the event behind the work launched so far."""
        self._events[index].record(torch.cuda.current_stream(self._device))

    def elapsed_ns(self, first: int, second: int) -> int:
        """Nanoseconds between two events, from CUDA's float milliseconds (resolution about 500 ns)."""
        elapsed_ms: float = self._events[first].elapsed_time(self._events[second])
        return round(elapsed_ms * NS_PER_MS)


class CudaDevice:
    """One CUDA device; every wait names it, since a bare one waits for the current device only."""

    type: DeviceType = "cuda"
    clock = "cuda_events"

    def __init__(self, index: int) -> None:
        self.torch_device = torch.device("cuda", index)

    def synchronize(self) -> None:
        """Wait for every stream of this device."""
        torch.cuda.synchronize(self.torch_device)

    def marks(self, count: int) -> Marks:
        """CUDA events with timing, each recorded once: torch creates an event when it is first recorded."""
        make: Callable[..., torch.cuda.Event] = torch.cuda.Event
        marks = CudaMarks([make(enable_timing=True) for _ in range(count)], self.torch_device)
        for index in range(count):
            marks.set(index)
        return marks

    def release_memory(self) -> None:
        """Collect what is garbage, and return the allocator's free segments to the driver."""
        gc.collect()
        torch.cuda.empty_cache()

    def reset_peak_memory(self) -> None:
        """Begin a new peak of the caching allocator."""
        torch.cuda.reset_peak_memory_stats(self.torch_device)

    def peak_memory_bytes(self) -> tuple[int, int] | None:
        """The caching allocator's own peaks: allocated, reserved."""
        return (
            torch.cuda.max_memory_allocated(self.torch_device),
            torch.cuda.max_memory_reserved(self.torch_device),
        )


def resolve_device_type(asked: str) -> DeviceType:
    """Turn auto, cuda, cuda:N or cpu into the device that is there.

    Raises:
        SettingsError: A CUDA device was asked for and none can be used.
    """
    # torch.accelerator.current_accelerator() answers "cuda" even without a GPU.
    present = torch.cuda.is_available()
    if asked.startswith("cuda") and not present:
        raise SettingsError(
            f"--device {asked} was asked for, but torch finds no usable CUDA device.",
            "Check nvidia-smi and that torch is a CUDA build, or use --device cpu.",
        )
    return "cuda" if present and asked != "cpu" else "cpu"


def check_present(asked: str) -> None:
    """Refuse a device of the command line that is unknown or not there.

    Raises:
        SettingsError: It is neither auto, cpu, cuda nor cuda:N, or this process sees no such device.
    """
    index = split_device(asked)[1]
    if resolve_device_type(asked) == "cuda" and index is not None and index >= torch.cuda.device_count():
        raise _absent(asked)


def _absent(name: str) -> SettingsError:
    return SettingsError(
        f"--device {name} is not there: this process sees {_count_devices()}.",
        "CUDA_VISIBLE_DEVICES decides which they are; they are counted from 0.",
    )


def _count_devices() -> str:
    count = torch.cuda.device_count()
    return f"{count} CUDA device{'' if count == 1 else 's'}"


def open_device(device_type: DeviceType, index: int | None = None) -> Device:
    """A CUDA device, the current one where no index is given, or the CPU.

    Raises:
        SettingsError: The device is busy, full or cannot be used.
    """
    if device_type == "cpu":
        return CpuDevice()
    try:
        if index is not None:
            torch.cuda.set_device(index)
        device = CudaDevice(torch.cuda.current_device())
        torch.empty(1, device=device.torch_device)  # makes the context, which nothing before this does
    except RuntimeError as error:
        raise explain_context(error, index) from error
    return device


def explain_context(error: RuntimeError, index: int | None) -> SettingsError:
    """Why a CUDA device cannot be opened, as a sentence and a hint."""
    name = "The current CUDA device" if index is None else f"cuda:{index}"
    text = str(error).lower()
    if "busy or unavailable" in text:
        return SettingsError(
            f"{name} is busy or unavailable: in exclusive mode, one process holds it alone.",
            "nvidia-smi shows the process and the compute mode; choose another with --device cuda:N.",
        )
    if "out of memory" in text:
        return SettingsError(
            f"{name} has no memory left for one more process.",
            "nvidia-smi shows what fills it; choose another with --device cuda:N.",
        )
    if "invalid device ordinal" in text:
        return _absent(name if index is not None else "cuda")
    return SettingsError(f"{name} cannot be used: {first_line(error)}", "Check nvidia-smi, or use --device cpu.")
