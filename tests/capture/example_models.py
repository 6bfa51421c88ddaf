"""Models small enough for tests, and functions as ``--model module:function`` expects them."""

from __future__ import annotations

import torch


class TinyNet(torch.nn.Module):
    """A convolution and a linear layer: both kinds of arithmetic that TF32 touches."""

    input_size = (3, 8, 8)

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.conv(images).mean((2, 3)))


class TwoInputs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)

    def forward(self, tokens: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.embed(tokens) * scale


class Slow(TinyNet):
    """One operator of many seconds, which nothing interrupts."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        large = torch.ones(5000, 5000, dtype=torch.float64)
        return super().forward(images) + (large @ large).sum()


class NoInputSize(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images


class Overflowing(TinyNet):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images) * float("inf")


def tiny() -> torch.nn.Module:
    return TinyNet()


def slow() -> torch.nn.Module:
    return Slow()


def tiny_with_example() -> tuple[torch.nn.Module, torch.Tensor]:
    return TinyNet(), torch.ones(5, 3, 8, 8)


def tiny_at_batch(batch_size: int) -> tuple[torch.nn.Module, torch.Tensor]:
    return TinyNet(), torch.ones(batch_size, 3, 8, 8)


def two_inputs() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    return TwoInputs(), {"tokens": torch.zeros(3, 6, dtype=torch.long), "scale": torch.ones(3, 6, 1)}


def two_inputs_in_order() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    return TwoInputs(), (torch.zeros(3, 6, dtype=torch.long), torch.ones(3, 6, 1))


def no_input_size() -> torch.nn.Module:
    return NoInputSize()


def scalar_example() -> tuple[torch.nn.Module, torch.Tensor]:
    return TinyNet(), torch.tensor(1.0)


def overflowing() -> torch.nn.Module:
    return Overflowing()


def not_a_model() -> int:
    return 3


def failing() -> torch.nn.Module:
    raise ValueError("no such checkpoint\nsecond line")


A_NUMBER = 3
