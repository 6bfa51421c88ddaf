"""The audit says the right thing on simulated runs whose kernels are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analyze.kernels.rules import RULES
from analyze.metrics import Measures
from analyze.metrics.precision import HELPERS, Judgement
from analyze.report import build_report, render
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.synthetic.vit import Plan, write

SMALL = Plan(batch=4, steps=1)
A100 = ("NVIDIA A100-SXM4-40GB", 108)


def measured(plan: Plan, path: Path) -> Measures:
    write(plan, path / "trace.json")
    return Measures(Trace.load(path / "trace.json"), Definitions(), Scope())


def judged(plan: Plan, path: Path) -> dict[str, Judgement]:
    return {j.category: j for j in measured(plan, path).precision.judgements}


def ids(found: dict[str, Judgement]) -> dict[str, str]:
    return {category: j.id for category, j in found.items()}


def test_fp32_as_asked(tmp_path: Path) -> None:
    found = judged(replace(SMALL, asked="fp32"), tmp_path)
    assert ids(found) == {"gemm": "as-asked", "convolution": "as-asked", "attention": "3xtf32"}
    assert found["gemm"].text == "As asked (fp32), 100% of GEMM time ran in fp32 SIMT kernels (no tensor cores)."
    assert "this is not tf32" in found["attention"].text
    assert not any(j.surprising for j in found.values())


def test_fp32_whose_convolution_runs_in_tf32_by_default(tmp_path: Path) -> None:
    found = judged(replace(SMALL, asked="fp32", convolution="tf32"), tmp_path)
    assert ids(found)["convolution"] == "tf32-uninvited"
    assert "cudnn.allow_tf32 is on by default" in found["convolution"].text


def test_tf32_that_works(tmp_path: Path) -> None:
    found = judged(replace(SMALL, precision="tf32", asked="tf32"), tmp_path)
    assert ids(found) == {"gemm": "as-asked", "convolution": "as-asked", "attention": "3xtf32"}


@pytest.mark.parametrize(
    ("gpu", "says"),
    [
        (A100, "The A100 40GB offers 156 TFLOP/s in tf32 and 19.5 in fp32."),
        (("NVIDIA GeForce RTX 3060", 28), "The RTX 3060 offers 12.7 TFLOP/s in tf32 and 12.7 in fp32."),
        (("Tesla V100-SXM2-16GB", 80), "the V100 SXM2 has no tf32."),
        (("Synthetic GPU", 28), "kept it out."),
    ],
)
def test_tf32_that_changed_nothing(gpu: tuple[str, int], says: str, tmp_path: Path) -> None:
    found = judged(replace(SMALL, asked="tf32", gpu=gpu), tmp_path)
    gemm = found["gemm"]
    assert (gemm.id, gemm.share, gemm.surprising) == ("tf32-not-used", 1.0, True)
    assert gemm.text.startswith("Asked for tf32, 100% of GEMM time ran in fp32 SIMT kernels")
    assert gemm.text.endswith(says)
    assert "nothing changed" in gemm.text or "has no tf32" in gemm.text


def test_fp16_autocast_whose_convolution_stayed_in_tf32(tmp_path: Path) -> None:
    """The simulated flash kernel has no type in its name, and its op none recorded: nothing is said of it."""
    found = judged(replace(SMALL, precision="fp16", asked="fp16", amp=True, convolution="tf32"), tmp_path)
    assert ids(found) == {"gemm": "as-asked", "convolution": "other-precision", "attention": "not-said"}
    text = "Asked for fp16 autocast, 100% of convolution time ran in tf32 tensor-core kernels."
    assert found["convolution"].text == text


def test_a_surprise_is_on_the_one_screen_report_and_the_rest_is_not(tmp_path: Path) -> None:
    write(replace(SMALL, asked="tf32"), tmp_path / "trace.json")
    text = render(build_report(Trace.load(tmp_path / "trace.json")), "terminal")
    assert "Asked for tf32" in text
    write(replace(SMALL, asked="fp32"), tmp_path / "trace.json")
    text = render(build_report(Trace.load(tmp_path / "trace.json")), "terminal")
    assert "As asked" not in text


def test_without_a_wish_it_only_observes(tmp_path: Path) -> None:
    audit = measured(SMALL, tmp_path).precision
    assert {j.id for j in audit.judgements} == {"observed"}
    assert (audit.asked, audit.gpu) == ("", "")
    assert all(use.peak_flops_per_s is None for use in audit.uses)


def test_shares_sum_to_one_per_category(tmp_path: Path) -> None:
    uses = measured(replace(SMALL, gemm="tf32"), tmp_path).precision.uses
    for category in {use.category for use in uses}:
        assert sum(use.share for use in uses if use.category == category) == pytest.approx(1)


def test_names_that_do_not_tell_take_the_type_of_the_inputs(load: Callable[[TraceBuilder], Trace]) -> None:
    types = {"Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Dims": [[8, 8], [8, 8]]}
    b = TraceBuilder().op("aten::mm", 0, 20, **types).run("gemm_kernel", (5, 2), (30, 10))
    (use,) = Measures(load(b), Definitions(), Scope()).precision.uses
    assert (use.category, use.precision, use.told_by) == ("gemm", "bf16", "input types")


def test_split_k_sums_are_in_no_precision(load: Callable[[TraceBuilder], Trace]) -> None:
    """Sums of partial products are fp32 also behind tf32 GEMMs: no part of the GEMM that the switch left out."""
    b = TraceBuilder().op("aten::mm", 0, 40)
    b.run("ampere_sgemm_32x32_sliced1x4_tn", (1, 2), (50, 1))
    b.run("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>(Params)", (5, 2), (60, 60))
    b.run("void splitKreduce_kernel<float, float, float, float, true, false, false>(Params)", (10, 2), (130, 39))
    audit = Measures(load(b), Definitions(), Scope()).precision
    assert [(u.precision, u.tensor_core, u.sum_ns) for u in audit.uses] == [
        ("tf32", True, 60_000),
        ("none", None, 39_000),
        ("fp32", False, 1_000),
    ]
    assert {j.id for j in audit.judgements} == {"observed", "helper"}
    assert "39.0% of GEMM time ran in helpers that multiply nothing (split-K sums, epilogues, offsets)." in {
        j.text for j in audit.judgements
    }


def test_families_of_helpers_exist() -> None:
    assert set(HELPERS) <= {rule.family for rule in RULES}
