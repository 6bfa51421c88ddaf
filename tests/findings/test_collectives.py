"""Collectives: what waits, what could be hidden, and what to change by kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.findings.test_blame import GEMM, found, judged, saved_us


@pytest.mark.parametrize(
    ("elements", "lasts", "reported"), [(57, 1_005, True), (57, 1_004, False), (500_000, 12_000, False)]
)
def test_a_collective_that_waits(elements: int, lasts: int, reported: bool, tmp_path: Path) -> None:
    """228 B need 100.456 us on a slow network, a tenth of 1,004.56; 2 MB need 4,100 us.

    What waits cannot be hidden; what transfers can. One collective takes 100.456 us once it waits no more.
    """
    builder, start = TraceBuilder(), 100.0
    group = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float"}
    for number in range(4):
        builder.run(GEMM, (10 * number, 4), (start, 3_000))
        builder.api("cudaLaunchKernel", 10 * number + 5, 4, correlation=50 + number)
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        builder.kernel(name, start + 3_001, lasts, correlation=50 + number, **group)
        start += 3_002 + lasts
    diagnosis = judged(builder, tmp_path)
    findings = found(diagnosis)
    assert ("collective-latency" in findings) is reported
    assert ("exposed-communication" in findings) is not reported
    if reported:
        assert findings["collective-latency"].title == "Collectives wait: 1.00 ms for 228 B"
        assert saved_us(findings["collective-latency"]) == pytest.approx(4 * (1_005 - 100.456), abs=1)


def test_the_tiny_all_reduce_that_waits(shared: Path) -> None:
    """cases/19: 4.00 ms for 228 B in each of 4 steps: nothing to overlap or compress, and it is a wait."""
    diagnosis = build_report(Trace.load(shared / "cases/19-tiny-allreduce-waits/trace.json")).diagnosis
    assert diagnosis.findings[0].title == "Collectives wait: 4.00 ms for 228 B"
    assert 0.9 * 16_000 <= saved_us(diagnosis.findings[0]) <= 16_000
    assert "ranks" in diagnosis.findings[0].change
    assert "exposed-communication" not in found(diagnosis)
    passed = {p.id: p.reason for p in diagnosis.passed}
    assert passed["collective-wait"] == "collective-latency reports waits that all steps have alike"
    assert "collective-latency" in passed["exposed-communication"]


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"


@pytest.mark.parametrize(
    ("kernel", "around", "trains", "words", "silent"),
    [
        (ALL_REDUCE, "", True, "DDP bucket_cap_mb", "fewer ranks"),
        (ALL_REDUCE, "", False, "fewer ranks per model", "DDP"),
        (SEND_RECV, "nccl:all_to_all", True, "halve the batch", "DDP"),
        (SEND_RECV, "", True, "of an all-to-all, halve the batch", "DDP"),
        (SEND_RECV, "nccl:recv 1<-0", False, "more requests in flight", "bucket"),
        (GENERIC, "nccl:_all_gather_base", True, "gather the next layer early", "DDP"),
        (GENERIC, "reduce_everything", False, "of an all-to-all", "DDP"),  # a user's own range says no kind
    ],
)
def test_the_change_is_by_kind_and_by_what_runs(
    kernel: str, around: str, trains: bool, words: str, silent: str, tmp_path: Path
) -> None:
    """A GEMM of 3 ms and a collective of 1 ms behind it, four times."""
    builder = TraceBuilder()
    if trains:
        builder.op("autograd::engine::evaluate_function: MmBackward0", 500, 5)
    for number in range(4):
        builder.run(GEMM, (20 * number, 4), (100 + 4_000 * number, 3_000))
        if around:
            builder.annotation(around, 20 * number + 5, 10)
        builder.run(kernel, (20 * number + 6, 4), (3_100 + 4_000 * number, 1_000))
    finding = found(judged(builder, tmp_path))["exposed-communication"]
    assert words in finding.change
    assert silent not in finding.change
    assert saved_us(finding) == pytest.approx(4_000, abs=10)
