"""The third pass: the CUDA caching allocator's history over a forward or more, as torch's memory snapshot.

The functions of torch behind it are private and have changed from version to version; arguments that a
version does not have are left out.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import record_function

from capture.device import Device, Forward
from capture.errors import ProfileError
from capture.profile import SPAN_NAME

MOST_ENTRIES = 100_000
"""Events that the allocator keeps; one forward of a large model has some ten thousand."""
_PICKLE_PROTOCOL = 4
"""Viewers in a browser cannot read the newer protocol 5."""


@dataclass(frozen=True)
class Snapshot:
    """What the memory snapshot holds. Sizes in bytes, as the allocator counts them.

    Attributes:
        file: Name of the pickle beside the trace.
        starts: "weights" when the history begins before the model moved to the device, "step" in a loop, else
            "forward".
        events: Allocator events of this device.
        max_entries: Events that the allocator was told to keep.
        overflowed: Whether older events were lost.
        peak_requested_bytes: Peak of the sizes asked for since recording began.
        peak_allocated_bytes: Peak of the rounded sizes.
        peak_reserved_bytes: Peak of the memory taken from the driver.
        end_requested_bytes: Requested bytes at the end.
        end_reserved_bytes: Reserved bytes at the end.
        device_free_bytes: Free on the device at the end, other processes counted.
        device_total_bytes: Of the device.
        allocator: "native" or "cudaMallocAsync".
    """

    file: str
    starts: str
    events: int
    max_entries: int
    overflowed: bool
    peak_requested_bytes: int | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    end_requested_bytes: int | None
    end_reserved_bytes: int | None
    device_free_bytes: int
    device_total_bytes: int
    allocator: str


def record_snapshot(
    make_forward: Callable[[], Forward], device: Device, path: Path, *, starts: str = "forward", steps: int = 1
) -> Snapshot:
    """Record the allocations of forwards and write the snapshot; call inside `torch.inference_mode()`.

    Args:
        make_forward: Gives the forward; what it allocates itself is recorded, so it moves the model to the
            device when the history is to begin with the weights.
        device: The CUDA device.
        path: Where the pickle goes.
        starts: What the history begins with.
        steps: How many forwards.

    Raises:
        ProfileError: The allocator recorded nothing.
    """
    with history(device):
        with record_function(SPAN_NAME):
            forward = make_forward()
            forward()
        for _ in range(steps - 1):
            with record_function(SPAN_NAME):
                forward()
        return write_history(device, path, starts=starts)


@contextmanager
def history(device: Device) -> Iterator[None]:
    """Record the allocator's history inside; the device is idle when it begins, and its peaks begin anew."""
    device.reset_peak_memory()
    _set_history("all")
    try:
        device.synchronize()
        yield
    finally:
        _set_history(None)


def write_history(device: Device, path: Path, *, starts: str) -> Snapshot:
    """Wait for the device and write what was recorded since; call inside :func:`history`.

    Raises:
        ProfileError: The allocator recorded nothing.
    """
    device.synchronize()
    stats = torch.cuda.memory_stats(device.torch_device)
    taken: dict[str, Any] = torch.cuda.memory._snapshot()
    events = count_events(taken, device.torch_device.index)
    if not events:
        raise ProfileError(
            "The CUDA allocator recorded no event.",
            "Another allocator may be in use (PYTORCH_NO_CUDA_MEMORY_CACHING).",
        )
    with path.open("wb") as file:
        pickle.dump(taken, file, protocol=_PICKLE_PROTOCOL)
    free, total = torch.cuda.mem_get_info(device.torch_device)
    return Snapshot(
        file=path.name,
        starts=starts,
        events=events,
        max_entries=MOST_ENTRIES,
        overflowed=events >= MOST_ENTRIES,
        peak_requested_bytes=stats.get("requested_bytes.all.peak"),
        peak_allocated_bytes=stats.get("allocated_bytes.all.peak"),
        peak_reserved_bytes=stats.get("reserved_bytes.all.peak"),
        end_requested_bytes=stats.get("requested_bytes.all.current"),
        end_reserved_bytes=stats.get("reserved_bytes.all.current"),
        device_free_bytes=free,
        device_total_bytes=total,
        allocator=torch.cuda.memory.get_allocator_backend(),
    )


def count_events(taken: dict[str, Any], index: int) -> int:
    """Allocator events of one device in a snapshot."""
    traces = taken.get("device_traces", [])
    return len(traces[index]) if index < len(traces) else 0


def _set_history(enabled: str | None) -> None:
    record: Callable[..., None] = torch.cuda.memory._record_memory_history
    # Python frames only: stacks of C++ take minutes to resolve when the snapshot is written.
    wanted: dict[str, Any] = {
        "context": "all",
        "stacks": "python",
        "max_entries": MOST_ENTRIES,
        "clear_history": True,
    }
    if enabled is None:
        wanted = {}
    known = inspect.signature(record).parameters
    record(enabled, **{name: value for name, value in wanted.items() if name in known})
