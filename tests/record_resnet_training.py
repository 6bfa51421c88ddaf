"""Record sample_traces/resnet_training_cpu.json.gz again: `python -m tests.record_resnet_training DIR`.

It wants a machine that does nothing else; the block in the trace says whether it did. DIR gets `trace.json.gz` and
`run.json`.
"""

from __future__ import annotations

import sys

import timm
import torch
from torch.utils.data import DataLoader, TensorDataset

from capture import record

_CLASSES, _BATCH, _SIDE = 10, 16, 64


def main(folder: str) -> None:
    """Train a small ResNet on random images, and record its steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = timm.create_model("test_resnet", num_classes=_CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = TensorDataset(torch.randn(2048, 3, _SIDE, _SIDE), torch.randint(0, _CLASSES, (2048,)))
    loader = DataLoader(images, batch_size=_BATCH, num_workers=1)
    with record(folder, warmup=30, timed_steps=30, traced_steps=3, model=model) as rec:
        for pictures, labels in loader:
            with rec.range("forward"):
                loss = torch.nn.functional.cross_entropy(model(pictures), labels)
            with rec.range("backward"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if rec.step(samples=len(labels)):
                break


if __name__ == "__main__":
    main(sys.argv[1])
