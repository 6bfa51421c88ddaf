from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import timm  # noqa: F401 - imported before the heap is frozen
import torch

from capture.run import Recording, capture_run
from capture.settings import Settings

TINY = "tests.capture.example_models:tiny"


@pytest.fixture(scope="session", autouse=True)
def _frozen_heap() -> Iterator[None]:
    """Each recording collects garbage, which would look through all of torch and timm every time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def quick() -> Settings:
    """A recording of a model of a few dozen parameters, in a few milliseconds."""
    return Settings(model=TINY, batch_size=2, warmup=2, iterations=4)


@pytest.fixture
def record(tmp_path: Path) -> Callable[[Settings], Recording]:
    def make(settings: Settings) -> Recording:
        return capture_run(settings, tmp_path / "runs" / settings.precision)

    return make
