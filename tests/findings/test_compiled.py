"""Advice where a compiler or graphs are at work already: what is left, and never what is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.findings.eager import all_compiled, fusing_change, launch_change
from analyze.metrics.whatif.dispatch import Dispatch
from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.findings.test_blame import GEMM, found, judged

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float> >(int)"
INDUCTOR = "triton_poi_fused_add_mul_0"


def chains(kernels: list[tuple[str, str]], around: str = "") -> TraceBuilder:
    """Ten times a GEMM of 100 us, then the kernels of 50 us with their ops, back to back; a GEMM ends it."""
    builder, start, launch = TraceBuilder(), 100.0, 0.0
    if around:
        builder.op(around, 0, 5_000)
    for op, kernel in [*([("aten::mm", GEMM), *kernels] * 10), ("aten::mm", GEMM)]:
        dur = 100 if kernel == GEMM else 50
        builder.op(op, launch, 8).run(kernel, (launch + 1, 5), (start, dur))
        launch, start = launch + 10, start + dur
    return builder


@pytest.mark.parametrize(
    ("kernels", "change"),
    [
        ([("aten::add", ELEMENTWISE), ("aten::mul", ELEMENTWISE)], "torch.compile(model)"),
        ([("aten::add", INDUCTOR), ("aten::mul", INDUCTOR)], None),
        (
            [("aten::add", INDUCTOR), ("aten::mul", ELEMENTWISE)],
            "Inductor compiled part of it already; left eager: aten::mul "
            "(not compiled, a graph break or a dynamic shape: TORCH_LOGS=graph_breaks,recompiles says which)",
        ),
    ],
)
def test_what_inductor_made_is_not_sent_to_it(
    kernels: list[tuple[str, str]], change: str | None, tmp_path: Path
) -> None:
    diagnosis = judged(chains(kernels), tmp_path)
    finding = found(diagnosis).get("fusible-chain")
    assert (finding and finding.change) == change
    if change is None:
        passed = {p.id: p.reason for p in diagnosis.passed}
        assert passed["fusible-chain"] == "Inductor made these kernels, and kept them apart"


def test_library_kernels_in_a_compiled_region_are_compiled(tmp_path: Path) -> None:
    kernels = [("aten::add", ELEMENTWISE), ("aten::mul", ELEMENTWISE)]
    builder = chains(kernels, around="Torch-Compiled Region: 0/0")
    assert "fusible-chain" not in found(judged(builder, tmp_path))


def test_a_graph_beside_which_a_kernel_is_launched(shared: Path) -> None:
    """cases/07: 8 of 70 idle us inside the graph, 62 before the one kernel that is outside it."""
    report = build_report(Trace.load(shared / "cases/07-one-graph-launch-many-kernels/trace.json"))
    finding = found(report.diagnosis)["launch-bound"]
    assert finding.change.startswith("graphs launch part of it already; outside them: aten::")
    assert "compile" not in finding.change
    assert "CUDAGraph" not in finding.change


@pytest.mark.parametrize("name", ["rtx3060_gpt_graphs_a", "rtx3060_gpt_graphs_b"])
def test_compiled_models_with_graphs(name: str, shared: Path) -> None:
    """Every chain of these runs is Inductor's own."""
    report = build_report(Trace.load(shared / f"more/{name}.json.gz"))
    assert not any("torch.compile" in f.change or "CUDAGraph" in f.change for f in report.diagnosis.findings)


def test_modules_that_are_left_eager_are_named(shared: Path) -> None:
    """The transformer is compiled without graphs; the text encoders and the decoder are not."""
    report = build_report(Trace.load(shared / "traces/mi300_stable_diffusion_3_5.json.gz"))
    findings = found(report.diagnosis)
    assert "T5EncoderModel" in findings["fusible-chain"].change
    assert "SD3Transformer2DModel" not in findings["fusible-chain"].change
    assert findings["launch-bound"].change.startswith("compiled already, but launched one by one")


@pytest.mark.parametrize(("share", "already"), [(0.099, False), (0.1, True)])
def test_from_a_tenth_on_it_is_there_already(share: float, already: bool) -> None:
    for graph, compiled in ((share, 0.0), (0.0, share)):
        dispatch = Dispatch(graph, compiled, 1 - share, ("aten::add",), ())
        for change in (
            launch_change("torch.compile(model)", dispatch),
            fusing_change("torch.compile(model)", dispatch),
        ):
            assert (change == "torch.compile(model), for what is left eager: aten::add") is not already
            assert "aten::add" in change
    assert launch_change("fix", None) == fusing_change("fix", None) == "fix"


@pytest.mark.parametrize(("compiled", "everything"), [(0.89, False), (0.9, True)])
def test_what_is_compiled_but_for_a_rest(compiled: float, everything: bool) -> None:
    assert all_compiled(Dispatch(0.0, compiled, 1 - compiled, (), ())) is everything
    assert not all_compiled(None)
