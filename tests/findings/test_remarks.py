"""Findings without a saving: their texts with 0, 1 and huge values."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from analyze.findings import RULES, Finding
from analyze.findings.rule import Case
from analyze.metrics import Measures
from analyze.metrics.alignment import Alignment, Unaligned
from analyze.trace.recorded import read_recorded
from tests.findings.test_rules import MANY, ONE, Replays, measures, scenario

__all__ = ["measures"]  # the fixture
HUGE = 10**15


def remark(found: Measures, name: str, doubt: str = "", costs: tuple[str, ...] = ()) -> Finding:
    bare = found.given(savings=Replays({cost: scenario(note="", time_ns=HUGE) for cost in costs}, 0))  # type: ignore[arg-type]
    outcome = next(rule for rule in RULES if rule.id == name).judge(Case(bare, bare.devices[0], doubt, {}))
    assert isinstance(outcome, Finding), outcome
    assert outcome.saving is None
    assert 1 <= len(outcome.title.split()) <= 8
    assert outcome.observed.endswith(".")
    assert not re.search(r"(?<![\d.,])1 (?:\w+ )?(?:\w+ )?" + MANY, outcome.observed), outcome.observed
    assert not re.search(r"(?:[02-9]|\d\d|,\d{3}) " + ONE + r"\b(?!s| calls)", outcome.observed), outcome.observed
    return outcome


@pytest.mark.parametrize("batch", [None, 1, 10**6])
@pytest.mark.parametrize("kernel_ns", [1, HUGE])
def test_small_batch(measures: Measures, batch: int | None, kernel_ns: int) -> None:
    symptoms = replace(measures.symptoms, kernel_ns=kernel_ns, underfilled_ns=kernel_ns)
    found = measures.given(symptoms=symptoms, recorded=read_recorded({"batch_size": batch}))
    finding = remark(found, "small-batch")
    assert "100.0% of kernel time" in finding.observed
    assert ("at batch size" in finding.observed) is (batch is not None)


@pytest.mark.parametrize("total", [1, 2**40])
def test_memory_headroom(measures: Measures, total: int) -> None:
    use = SimpleNamespace(device_type=1, reserved_peak_bytes=total)
    symptoms = replace(measures.symptoms, memory_bytes=total)
    found = measures.given(symptoms=symptoms, memory=replace(measures.memory, devices=(use,)))
    assert "100.0%" in remark(found, "memory-headroom").title


@pytest.mark.parametrize("reasons", [["power cap"], ["a" * 500, "b"] * 4])
def test_clocks(measures: Measures, reasons: list[str]) -> None:
    recorded = read_recorded({"gpu_state": {"unstable": reasons}})
    remark(measures.given(recorded=recorded), "clocks")


@pytest.mark.parametrize("count", [1, 2, 10**9])
def test_training_mode(measures: Measures, count: int) -> None:
    for changes in ({"norm_kernels": count, "graph_ops": 0}, {"norm_kernels": 0, "graph_ops": count}):
        symptoms = replace(measures.symptoms, backward=False, ops=count, **changes)
        remark(measures.given(symptoms=symptoms), "training-mode")


@pytest.mark.parametrize(("launches", "unlinked"), [(1, 0), (1, 1), (10**9, 10**9)])
def test_incomplete_records(measures: Measures, launches: int, unlinked: int) -> None:
    figures = replace(measures.launches, launch_calls=launches, complete_calls=0, unlinked=unlinked, linked=0)
    remark(measures.given(launches=figures), "incomplete-records", doubt="The file is cut.")


def test_profiler_stretch(measures: Measures) -> None:
    block = {"latency": {"request_p50_ns": 1}, "profile": {"profiled_wall_ns": 10**9, "steps": 1}}
    remark(measures.given(recorded=read_recorded(block)), "profiler-overhead")


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        ("fp32-gemm", "fp32-products"),
        ("fp32-convolution", "fp32-convolutions"),
        ("precision-not-used", "asked-precision"),
    ],
)
def test_products_on_a_gpu_whose_peaks_are_not_known(measures: Measures, rule: str, cost: str) -> None:
    audit = replace(measures.precision, asked="tf32")
    finding = remark(measures.given(precision=audit), rule, costs=(cost,))
    assert "is not stated" in finding.observed
    assert finding.severity == "medium"


@pytest.mark.parametrize("count", [1, 2, 10**9])
@pytest.mark.parametrize("sizes", [(), (5185,), (30522, 7)])
def test_misaligned_gemm(measures: Measures, count: int, sizes: tuple[int, ...]) -> None:
    worst = Unaligned("aten::mm", "[[7,30522],[30522,8]]" * 50, sizes, count, HUGE)
    found = remark(measures.given(alignment=Alignment(count, HUGE, 1.0, (worst,))), "misaligned-gemm")
    assert ("not multiples of 8" in found.observed) is bool(sizes)
    assert found.change.startswith("pad ")
