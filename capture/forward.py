"""From a loaded model to the one call that every pass repeats: placed, cast, compiled, captured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from capture.device import Device, Forward
from capture.errors import CaptureError, ModelError, OutOfMemoryError, first_line
from capture.models import LoadedModel, map_tensors
from capture.precision import DTYPES
from capture.settings import Settings

_GRAPH_WARMUPS = 3
_OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "can't allocate memory",
    "not enough memory",
    "out of memory",  # "CUDA error: out of memory" comes as torch.AcceleratorError, "HIP out of memory" from ROCm
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
)
"""What torch and the libraries under it say when memory is short; only the allocator has a class for it."""


def place(loaded: LoadedModel, settings: Settings, device: Device) -> Forward:
    """Move the model and its input to the device and wrap them as asked.

    Call inside `torch.inference_mode()`. The module itself is moved and cast in place.

    Returns:
        A call without arguments; with `cuda_graph` it replays a captured forward.
    """
    dtype = torch.float32 if settings.autocast else DTYPES[settings.precision]
    with torch.inference_mode(mode=False):  # parameters made inside could never be moved or compiled again
        module = loaded.module.eval().to(device=device.torch_device, dtype=dtype)
        if settings.channels_last:
            module = module.to(memory_format=torch.channels_last)
        args, kwargs = map_tensors(
            (loaded.args, dict(loaded.kwargs)), lambda tensor: _place_input(tensor, dtype, settings, device)
        )
    if settings.compile:
        torch.compiler.reset()  # an earlier precision counts towards the limit of recompiling
    call: Callable[..., Any] = torch.compile(module, mode=settings.compile_mode) if settings.compile else module

    def forward() -> Any:
        return call(*args, **kwargs)

    if settings.autocast:
        forward = _autocast(forward, settings, device)
    return _capture_graph(forward, device) if settings.cuda_graph else forward


@contextmanager
def naming_failures(settings: Settings) -> Iterator[None]:
    """Say in one sentence why a model cannot be placed or does not run the first time.

    Raises:
        OutOfMemoryError: The device has too little memory.
        ModelError: The model does not run on its input.
    """
    try:
        yield
    except CaptureError:
        raise
    except Exception as error:
        message = f"{settings.model} does not run in {settings.precision}: {first_line(error)}"
        raise explain_failure(error, settings) or ModelError(message, "Add --debug for its traceback.") from error


def explain_failure(error: BaseException, settings: Settings) -> CaptureError | None:
    """An out-of-memory failure as a sentence and a hint; None for any other."""
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)
    ):
        batch = "its batch" if settings.batch_size is None else f"batch {settings.batch_size}"
        what = f"{settings.model} with {batch} in {settings.precision}"
        return OutOfMemoryError(
            f"Out of memory: {what} does not fit on {settings.device}.",
            "Use a smaller --batch-size, or --precision fp16.",
        )
    return None


def _place_input(tensor: torch.Tensor, dtype: torch.dtype, settings: Settings, device: Device) -> torch.Tensor:
    placed = tensor.to(device.torch_device)
    if placed.is_floating_point():
        placed = placed.to(dtype)
    if settings.channels_last and placed.dim() == 4:
        placed = placed.contiguous(memory_format=torch.channels_last)
    return placed


def _autocast(forward: Forward, settings: Settings, device: Device) -> Forward:
    # A weight cast and cached while a graph is captured would lie in the graph's own memory.
    cached = not settings.cuda_graph

    def autocast_forward() -> Any:
        with torch.autocast(device.type, dtype=DTYPES[settings.precision], cache_enabled=cached):
            return forward()

    return autocast_forward


def _capture_graph(forward: Forward, device: Device) -> Forward:
    make_stream: Callable[..., torch.cuda.Stream] = torch.cuda.Stream
    side = make_stream(device.torch_device)
    side.wait_stream(torch.cuda.current_stream(device.torch_device))
    with torch.cuda.stream(side):
        for _ in range(_GRAPH_WARMUPS):
            forward()
    torch.cuda.current_stream(device.torch_device).wait_stream(side)
    # CUPTI must not be torn down between profiles: with a captured graph, CUDA before 12.6 crashes then.
    os.environ.setdefault("DISABLE_CUPTI_LAZY_REINIT", "1")
    os.environ.setdefault("TEARDOWN_CUPTI", "0")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):  # what the libraries keep for a stream was made while warming up
        output = forward()

    def replay() -> Any:
        graph.replay()
        return output

    return replay
