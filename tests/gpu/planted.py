"""Models with a known fault, for comparing what a report blames with what was planted."""

from __future__ import annotations

import os
import time
from typing import Any

import timm
import torch

SLEEP_S = 0.005
MODEL_VARIABLE = "GPULEDGER_SESSION_MODEL"


def _build(batch_size: int) -> tuple[torch.nn.Module, torch.Tensor]:
    model = timm.create_model(os.environ.get(MODEL_VARIABLE, "vit_tiny_patch16_224"))
    return model, torch.randn(batch_size, *model.pretrained_cfg["input_size"])


def item_loop(batch_size: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """A ViT that reads a number back to the host after each of its blocks."""

    def read_back(module: torch.nn.Module, args: Any, output: torch.Tensor) -> None:
        output.sum().item()

    model, example = _build(batch_size)
    for block in model.blocks:
        block.register_forward_hook(read_back)
    return model, example


def cpu_sleep(batch_size: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """A ViT whose host sleeps for 5 ms in the middle of each forward."""

    def sleep(module: torch.nn.Module, args: Any) -> None:
        time.sleep(SLEEP_S)

    model, example = _build(batch_size)
    model.blocks[len(model.blocks) // 2].register_forward_pre_hook(sleep)
    return model, example
