"""What the simulator put in is what the program finds: every part and every gap, to the nanosecond."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analyze.metrics import Measures
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.synthetic.samples import SAMPLES
from tests.synthetic.vit import Plan, simulate, write

ROOT = Path(__file__).parents[2]


def random_plan(seed: int) -> Plan:
    r = random.Random(seed)
    return Plan(
        r.choice(("fp32", "tf32", "fp16")),
        r.randint(1, 64),
        r.randint(1, 3),
        r.randint(0, 4_000_000),
        seed,
        r.random() < 0.5,
    )


@pytest.mark.parametrize(
    "plan",
    [*SAMPLES.values(), *(random_plan(seed) for seed in (1, 2, 3))],
    ids=lambda plan: f"{plan.precision}-b{plan.batch}-s{plan.steps}-seed{plan.seed}",
)
def test_ledger_is_the_simulated_truth(plan: Plan, tmp_path: Path) -> None:
    check(plan, tmp_path)


def test_ledger_is_the_truth_of_a_plan_drawn_now(tmp_path: Path) -> None:
    plan = random_plan(random.Random().randint(4, 10**9))
    print(plan)  # shown when it fails
    check(plan, tmp_path)


def check(plan: Plan, folder: Path) -> None:
    truth = write(plan, folder / "trace.json").truth
    measures = Measures(Trace.load(folder / "trace.json"), Definitions(top=10_000), Scope())
    device = measures.devices[0]
    assert device.window_ns == truth.window_ns
    assert device.computation_ns == truth.busy_ns["computation"]
    assert device.exposed_copy_ns == truth.busy_ns["copy"]
    assert {k: v for k, v in device.idle.items() if v} == {k: v for k, v in truth.idle_ns.items() if v}
    assert sorted(gap.length_ns for gap in measures.gaps) == sorted(length for _, length in truth.gaps)
    assert len(measures.steps) == plan.steps


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_what_the_generator_makes(name: str, tmp_path: Path) -> None:
    """Deterministic, labelled as synthetic in name and metadata, small."""
    write(SAMPLES[name], tmp_path / "again.json")
    import gzip

    stored = (ROOT / "sample_traces" / name).read_bytes()
    assert gzip.decompress(stored) == (tmp_path / "again.json").read_bytes()
    assert b'"synthetic"' in gzip.decompress(stored)
    assert "synthetic" in name
    assert len(stored) < 1_000_000


def test_two_simulations_are_equal() -> None:
    assert simulate(Plan()).truth == simulate(Plan()).truth
