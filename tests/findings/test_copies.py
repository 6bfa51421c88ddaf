"""Copies to the device, inside it, and changes of layout: worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.findings.test_blame import GEMM, found, judged, saved_us


@pytest.mark.parametrize(
    ("case", "least_us", "most_us", "pin"),
    [("26-cuda-copy-blocks", 9_400, 10_328, True), ("31-copy-stream-no-overlap", 5_820, 6_000, False)],
)
def test_copies_that_nothing_hides(case: str, least_us: int, most_us: int, pin: bool, shared: Path) -> None:
    """cases/26: 9.4 ms of pageable copies and 928 us idle; cases/31: of 8 ms of pinned ones the first stays: 6 ms.

    A kernel of cases/31 is launched 40 us behind the copy of its step, and so begins that much later than at once.
    """
    finding = build_report(Trace.load(shared / "cases" / case / "trace.json")).diagnosis.findings[0]
    assert finding.id == "exposed-copies"
    assert least_us <= saved_us(finding) <= most_us
    assert ("pin_memory" in finding.change) is pin
    assert ("could hide 6.00 ms" in finding.observed) is not pin


@pytest.mark.parametrize(("before", "saved"), [(500, 500), (2_000, 1_300), (0, 0)])
def test_computation_hides_copies_behind_it_and_no_more_than_it_lasts(before: int, saved: int, tmp_path: Path) -> None:
    """Two pinned copies of 400 and 900 us between a kernel that may hide them and one of 5,000 that may not.

    500 us of computation hide the first copy and 100 us of the second; without any before them, none moves.
    """
    builder, end = TraceBuilder(), 10.0
    if before:
        builder.run(GEMM, (0, 1), (end, before))
        end += before + 1
    for at, dur in enumerate((400, 900)):
        builder.api("cudaMemcpyAsync", 2 + 2 * at, 1, correlation=50 + at)
        builder.kernel("Memcpy HtoD (Pinned -> Device)", end, dur, correlation=50 + at, cat="gpu_memcpy")
        end += dur + 1
    builder.run(GEMM, (7, 1), (end, 5_000))
    finding = found(judged(builder, tmp_path)).get("exposed-copies")
    assert (saved_us(finding) if finding else 0) == pytest.approx(saved, abs=1)


@pytest.mark.parametrize(("lasts", "reported"), [(9, False), (11, True)])
def test_many_copies_inside_the_device(lasts: int, reported: bool, tmp_path: Path) -> None:
    """100 copies of 9 or 11 us, 1 us apart, behind 107,900 us of computation: 1,000 us of 109,000 are below 1 %."""
    builder, start = TraceBuilder(), 107_910.0
    builder.run(GEMM, (0, 5), (10, 107_900))
    for number in range(100):
        launch = 10.0 * number + 10
        builder.op("torch.distributed.ddp.reducer::copy_bucket_to_grad", launch, 9).op("aten::copy_", launch + 1, 7)
        builder.run(
            "Memcpy DtoD (Device -> Device)",
            (launch + 2, 5),
            (start + 1, lasts),
            api="cudaMemcpyAsync",
            cat="gpu_memcpy",
        )
        start += lasts + 1
    findings = found(judged(builder, tmp_path))
    assert ("device-copies" in findings) is reported
    if reported:
        finding = findings["device-copies"]
        assert saved_us(finding) == pytest.approx(1_200, abs=1)
        assert finding.title == "100 copies inside the GPU: copy_bucket_to_grad"
        assert finding.change == "DistributedDataParallel(model, gradient_as_bucket_view=True)"


@pytest.mark.parametrize(("name", "env"), [("nchw", False), ("batched_transpose_32x32_half", True)])
@pytest.mark.parametrize(("lasts", "reported"), [(9, False), (11, True)])
def test_transposes_around_convolutions(name: str, env: bool, lasts: int, reported: bool, tmp_path: Path) -> None:
    """Two transposes of 4.5 or 5.5 us with a gap of 0.5 us each, in each of ten ms: 10 or 12 us of 1,000."""
    transpose = name if env else "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)"
    builder, start, other = TraceBuilder(), 100.0, 998.5 - lasts
    for number in range(10):
        builder.op("aten::_convolution", 20 * number, 18)
        for at, (kernel, dur) in enumerate([(transpose, lasts / 2), (transpose, lasts / 2), ("own_kernel", other)]):
            builder.run(kernel, (20 * number + 1 + 5 * at, 4), (start, dur))
            start += dur + 0.5
    findings = found(judged(builder, tmp_path))
    assert ("layout" in findings) is reported
    if reported:
        assert saved_us(findings["layout"]) == pytest.approx(10 * (lasts + 1) - 0.5, abs=1)
        assert "channels_last" in findings["layout"].change
        assert ("PYTORCH_MIOPEN_SUGGEST_NHWC=1" in findings["layout"].change) is env


@pytest.mark.parametrize(("region", "words"), [("", 'backend="inductor"'), ("Torch-Compiled Region: 0/0", "out=")])
def test_copies_of_a_traced_graph_are_no_line_of_the_program(region: str, words: str, tmp_path: Path) -> None:
    """100 clones of 100 us by AOTAutograd: a backend that runs op by op, or Inductor's code."""
    builder = TraceBuilder().run(GEMM, (0, 5), (10, 5_000))
    for number in range(100):
        launch = 10.0 * number + 10
        if region:
            builder.op(region, launch - 1, 10)
        builder.op("CompiledFunction", launch, 9).op("aten::clone", launch + 1, 7)
        builder.run("Memcpy DtoD (Device -> Device)", (launch + 2, 5), (5_010 + 101 * number, 100), cat="gpu_memcpy")
    assert words in found(judged(builder, tmp_path))["device-copies"].change
