"""Planted causes are found, first and at their true cost; clean runs raise no alarm. Drawn anew on every run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.synthetic.planted import NOTHING, ONE, TWO, draw, judge


@pytest.mark.slow
def test_planted_causes_are_found_first_and_at_their_cost(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"python -m tests.synthetic.planted --seed {seed}")  # shown when it fails
    count, clean = 2 * (len(ONE) + len(TWO)), 10
    verdicts = [judge(run, tmp_path) for run in draw(count, clean, seed)]
    planted, without = verdicts[:count], verdicts[count:]
    assert sum(verdict.first for verdict in planted) >= 0.95 * count, [v for v in planted if not v.first]
    told = [
        (cause, error)
        for verdict in planted
        for cause, error in verdict.errors.items()
        if verdict.truth[cause] >= NOTHING
    ]
    assert len(told) >= count
    near = [error for _, error in told if error is not None and abs(error) <= 0.10]
    assert len(near) >= 0.95 * len(told), told
    assert not [v.found for v in without if "high" in {severity for _, severity in v.found}]
