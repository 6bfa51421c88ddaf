"""Half-precision GEMMs of unaligned operands: which kernels they are, and what their sizes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.findings import Finding
from analyze.metrics import Measures
from analyze.metrics.alignment import Alignment, odd_sizes
from analyze.metrics.shapes import read_inputs
from analyze.report import build_report
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder

UNALIGNED = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(int)"
ALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align8>(int)"


def traced(folder: Path, *names: str, gpu: str = "NVIDIA H100 80GB HBM3") -> Trace:
    """Kernels of 10 us, one after the other, in bmm of (2, 5185, 64) and (2, 64, 5185)."""
    b = TraceBuilder()
    b.metadata["deviceProperties"] = [{"id": 0, "name": gpu}]
    for at, name in enumerate(names):
        dims = {"Input Dims": [[2, 5185, 64], [2, 64, 5185]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
        b.op("aten::bmm", 20 * at, 9, **dims).run(name, (20 * at + 1, 5), (20 * at + 10, 10))
    return Trace.load(b.write(folder / "trace.json"))


def alignment(trace: Trace) -> Alignment:
    return Measures(trace, Definitions(), Scope()).alignment


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (UNALIGNED, 1),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(int)", 1),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_128x1_tn_align2>(int)", 1),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg1_f2f_nn", 1),
        (ALIGNED, 0),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", 0),
        ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x64_nn_align8>(int)", 0),
        ("void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x64_nn_align16>(int)", 0),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align1>(int)", 0),  # tf32
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)", 0),
        ("void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_128x64_nn>(int)", 1),  # of Turing, on Hopper
    ],
)
def test_which_kernels(name: str, count: int, tmp_path: Path) -> None:
    assert alignment(traced(tmp_path, name)).count == count


def test_kernels_of_turing_are_at_home_on_turing(tmp_path: Path) -> None:
    name = "void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_128x64_nn>(int)"
    assert alignment(traced(tmp_path, name, gpu="Tesla T4")).count == 0


@pytest.mark.parametrize(
    ("op", "dims", "sizes"),
    [
        ("aten::bmm", "[[16,5185,64],[16,64,5185]]", (5185,)),
        ("aten::bmm", "[[16,5185,5185],[16,5185,64]]", (5185,)),
        ("aten::addmm", "[[30522],[512,768],[768,30522],[],[]]", (30522,)),
        ("aten::mm", "[[7,768],[768,30522]]", (30522,)),  # rows need no alignment beside such columns
        ("aten::mm", "[[7,768],[768,64]]", (7,)),
        ("aten::mm", "[[8,768],[768,64]]", ()),
        ("aten::mm", "[[8],[768,64]]", ()),
        ("aten::conv2d", "[[1,3,7,7],[5,3,3,3]]", ()),
        ("aten::mm", "", ()),
    ],
)
def test_sizes(op: str, dims: str, sizes: tuple[int, ...]) -> None:
    assert odd_sizes(op, read_inputs(dims, "[]")) == sizes


@pytest.mark.parametrize(("aligned", "told"), [(20, False), (19, True), (5, True), (0, True)])
def test_just_below_and_at_the_limit(aligned: int, told: bool, tmp_path: Path) -> None:
    """One unaligned kernel of 20 is 5% of the time, one of 21 less."""
    diagnosis = build_report(traced(tmp_path, UNALIGNED, *[ALIGNED] * aligned)).diagnosis
    findings = {f.id: f for f in diagnosis.findings}
    assert ("misaligned-gemm" in findings) is told
    if not told:
        assert {p.id: p.reason for p in diagnosis.passed}["misaligned-gemm"] == "4.8% of activity time"


def test_the_sizes_are_named_and_no_saving_is(tmp_path: Path) -> None:
    diagnosis = build_report(traced(tmp_path, UNALIGNED, UNALIGNED, ALIGNED)).diagnosis
    finding = next(f for f in diagnosis.findings if f.id == "misaligned-gemm")
    assert isinstance(finding, Finding)
    assert (finding.saving, finding.severity) == (None, "medium")
    assert finding.observed == (
        "2 half-precision GEMM kernels for unaligned operands: 20.0 µs, 66.7% of activity time. "
        "Most of it multiplies sizes that are not multiples of 8: 5,185."
    )
    assert finding.change == "pad 5,185 to a multiple of 8 (the shapes are listed)"
    assert finding.evidence[0].rows == (("aten::bmm", "[[2,5185,64],[2,64,5185]]", "5185", 2, 20_000),)


def test_object_detector_with_an_odd_number_of_tokens(shared: Path) -> None:
    found = alignment(Trace.load(shared / "traces" / "h100_owlv2_large.json.gz"))
    assert found.count == 365
    assert found.worst[0].sizes == (5185,)
    assert found.share == pytest.approx(0.405, abs=0.001)  # 41.7% of what is not a copy
