"""`capture --train`: steps of training of a model that capture builds, recorded as any loop is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from capture.errors import SettingsError
from capture.forward import naming_failures
from capture.loop_block import Asked, size_parameters
from capture.models import LoadedModel, flatten_tensors, load_model, map_tensors
from capture.precision import DTYPES, arithmetic, check_state, cudnn_search
from capture.recorder import Recorder, record
from capture.run import open_bench
from capture.settings import Settings

_IMAGES = 4096
"""Length of the synthetic data set; the loader begins anew at its end, as in another epoch."""


class SyntheticImages(Dataset[torch.Tensor]):
    """Random images, drawn anew in the worker for each sample, as decoding would make them."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    def __len__(self) -> int:
        return _IMAGES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.randn(self._shape)


def check_training(settings: Settings) -> None:
    """Refuse what belongs to inference alone.

    Raises:
        SettingsError: An option that a training step cannot have.
    """
    refused = {
        "--cuda-graph": settings.cuda_graph,
        "--snapshot-weights": settings.snapshot_weights,
        "--repeat": settings.repeat > 1,
    }
    for option, asked in refused.items():
        if asked:
            raise SettingsError(f"{option} is for inference.", f"Leave out {option} or --train.")
    if settings.precision == "fp16" and not settings.amp:
        raise SettingsError(
            "--train with weights cast to fp16 does not converge: small gradients vanish.", "Add --amp, or use bf16."
        )


def train_run(settings: Settings, folder: Path, *, workers: int | None, force: bool = False) -> Recorder:
    """Record steps of training: forward, loss, backward, AdamW.

    Args:
        settings: What to record; `iterations` steps are timed and `steps` are traced.
        folder: Its own folder.
        workers: Workers of a DataLoader over synthetic images; None trains on one batch that stays on the device.
        force: Overwrite an older recording there.

    Raises:
        CaptureError: With one sentence and a hint, for everything that is not a bug.
    """
    check_training(settings)
    bench = open_bench(settings)
    recorder = record(
        folder,
        timed_steps=settings.measured_iterations,
        traced_steps=settings.steps,
        snapshot_steps=settings.snapshot_steps,
        warmup=settings.warmup,
        stacks=settings.stacks,
        shapes=settings.shapes,
        memory_events=settings.memory_events,
        device=str(bench.device.torch_device),
        force=force,
    )
    recorder.ended_by = "AdamW.step"
    loaded = load_model(settings)
    with ExitStack() as stack:
        state = stack.enter_context(arithmetic(settings.precision))
        if settings.device == "cuda":
            check_state(settings.precision, state)
        stack.enter_context(cudnn_search(enabled=settings.cudnn_benchmark))
        stack.enter_context(naming_failures(settings))
        step, batches = _prepare(loaded, settings, bench.device.torch_device, workers)
        sizes = size_parameters(loaded.module.parameters())
        recorder.asked = Asked(settings.model, settings.precision, settings.autocast, settings.compile, sizes)
        with recorder as rec:
            for args, kwargs in batches:
                step(rec, args, kwargs)
                if rec.step(samples=loaded.batch_size):
                    break
    return recorder


Step = Callable[[Recorder, Any, Any], None]


def _prepare(
    loaded: LoadedModel, settings: Settings, device: torch.device, workers: int | None
) -> tuple[Step, Iterator[tuple[Any, Any]]]:
    dtype = torch.float32 if settings.autocast else DTYPES[settings.precision]
    layout = torch.channels_last if settings.channels_last else torch.preserve_format
    module = loaded.module.train().to(device=device, dtype=dtype)
    if settings.channels_last:
        module = module.to(memory_format=layout)
    call: Callable[..., Any] = torch.compile(module, mode=settings.compile_mode) if settings.compile else module
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(device.type, enabled=settings.autocast and settings.precision == "fp16")

    def cast() -> AbstractContextManager[Any]:
        return torch.autocast(device.type, dtype=DTYPES[settings.precision]) if settings.autocast else nullcontext()

    def place(tensor: torch.Tensor) -> torch.Tensor:
        placed = tensor.to(device, non_blocking=True)
        placed = placed.to(dtype) if placed.is_floating_point() else placed
        return placed.contiguous(memory_format=layout) if settings.channels_last and placed.dim() == 4 else placed

    def step(rec: Recorder, args: Any, kwargs: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        with rec.range("forward"), cast():
            loss = _loss(call(*args, **kwargs))
        with rec.range("backward"):
            backward: Callable[[], None] = scaler.scale(loss).backward
            backward()
        with rec.range("optimizer"):
            scaler.step(optimizer)
            scaler.update()

    return step, _batches(loaded, device, place, workers)


def _loss(output: Any) -> torch.Tensor:
    """Cross entropy against one class for a classifier's output; else the mean square of all that comes out."""
    tensors = [tensor for tensor in flatten_tensors(output) if tensor.is_floating_point()]
    if not tensors:
        raise SettingsError("--train: the model gives no floating tensor to train on.")
    if len(tensors) == 1 and tensors[0].dim() == 2:
        labels = torch.zeros(len(tensors[0]), dtype=torch.long, device=tensors[0].device)
        return torch.nn.functional.cross_entropy(tensors[0].float(), labels)
    return torch.stack([tensor.float().square().mean() for tensor in tensors]).sum()


def _batches(
    loaded: LoadedModel, device: torch.device, place: Callable[[torch.Tensor], torch.Tensor], workers: int | None
) -> Iterator[tuple[Any, Any]]:
    if workers is None:
        batch = map_tensors((loaded.args, dict(loaded.kwargs)), place)
        while True:
            yield batch
    if loaded.kwargs or len(loaded.args) != 1:
        raise SettingsError("--loader feeds models of one input.", "Leave out --loader.")
    loader = DataLoader(
        SyntheticImages(tuple(loaded.args[0].shape[1:])),
        batch_size=loaded.batch_size,
        num_workers=workers,
        drop_last=True,
        pin_memory=device.type == "cuda",
        persistent_workers=workers > 0,
    )
    while True:
        for images in loader:
            yield (place(images),), {}
