"""A slow rank and one that is late once are named, in order, and nobody else is blamed: a few jobs drawn anew.

`python -m tests.ranks.planted --check 20` draws twenty and prints each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.report.ranks import build_ranks_report
from tests.ranks.jobs import figures_of
from tests.ranks.planted import planted_job

BYSTANDER = 0.10  # own lateness of anybody else, of that of the planted ranks
SEEDS = 6


@pytest.mark.parametrize("seed", [0, 1, pytest.param(None, marks=pytest.mark.slow)])
def test_both_are_named_and_nobody_else(seed: int | None, tmp_path: Path) -> None:
    for one in range(2, SEEDS) if seed is None else [seed]:
        planted = planted_job(one, tmp_path / str(one))
        job = figures_of(tmp_path / str(one))
        assert job.joined is not None
        assert [late.rank for late in job.stragglers[:2]] == [planted.slow, planted.once], one
        least = min(late.own_ns for late in job.stragglers[:2])
        assert all(other.own_ns < BYSTANDER * least for other in job.stragglers[2:])
        named = build_ranks_report(job).verdict.named
        assert named[0] == planted.slow
        assert set(named) <= {planted.slow, planted.once}
        offsets = job.joined.clocks.offset_ns.tolist()
        assert all(abs(offset) < 1_000 for offset in offsets[:8])
        assert all(abs(offset - planted.offset_ns) < 1_000 for offset in offsets[8:])
