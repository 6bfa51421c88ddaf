"""A short form of `python -m tests.fuzz`: fixed seeds and a new one each run."""

from __future__ import annotations

import time

import pytest

from tests.fuzz import run


@pytest.mark.parametrize("seed", [1, 2, time.time_ns() % 10**9], ids=["seed1", "seed2", "new"])
def test_broken_traces(seed: int) -> None:
    results = run(60, seed, None, every=6)
    assert results.total() == 60
