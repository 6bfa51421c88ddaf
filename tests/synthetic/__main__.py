"""Rewrite the synthetic files of sample_traces/; the same bytes every time."""

from __future__ import annotations

from pathlib import Path

from tests.synthetic.samples import SAMPLES
from tests.synthetic.vit import write

FOLDER = Path(__file__).parents[2] / "sample_traces"

for name, plan in SAMPLES.items():
    write(plan, FOLDER / name)
    print(FOLDER / name)
