"""Collectives of a single trace: sizes, exposure and lower bounds, by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyze.ranks.alone import measure_alone
from analyze.timeline import device_timelines
from analyze.trace import Trace
from tests.builder import TraceBuilder

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def args(elements: int) -> dict[str, Any]:
    return {
        "Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float",
        "Group size": 4, "Process Group Name": "0", "Process Group Description": "mesh_dp",
        "Process Group Ranks": "[0, 1, 2, 3]",
    }  # fmt: skip


def test_sizes_exposure_and_bounds(load: Callable[[TraceBuilder], Trace]) -> None:
    """
    gemm    |--------|                 0..100 us
    1 MiB        |--------|           50..150: exposed 50; 4/4 MiB x 3/2 in 100 us: 15.7 GB/s
    228 B                   |------|  200..4200: 57 floats in 4 ms are waiting
    """
    b = TraceBuilder()
    b.kernel("gemm", 0, 100)
    b.kernel(NCCL, 50, 100, stream=20, **args(262_144)).kernel(NCCL, 200, 4_000, stream=20, **args(57))
    trace = load(b)
    (line,) = device_timelines(trace.activities, trace.activities)
    small, large = measure_alone(trace, line)
    assert (large.kind, large.group, large.dimension, large.bucket_bytes) == ("all_reduce", "0", "dp", 1 << 20)
    assert (large.count, large.sum_ns, large.exposed_ns, large.waiting) == (1, 100_000, 50_000, 0)
    assert large.busbw_at_least == 15_728_640_000
    assert (small.bucket_bytes, small.exposed_ns, small.waiting, small.waiting_ns) == (128, 4_000_000, 1, 4_000_000)


def test_a_trace_without_collectives_has_no_such_section(report_of: Callable[..., dict[str, Any]]) -> None:
    found = report_of(TraceBuilder().run("k", (0, 2), (5, 10)))
    assert "collectives" not in {section["id"] for section in found["sections"]}


def test_few_bytes_are_said_to_wait(report_of: Callable[..., dict[str, Any]]) -> None:
    b = TraceBuilder().run("k", (0, 2), (5, 10))
    b.kernel(NCCL, 200, 4_000, stream=20, **args(57))
    (section,) = (s for s in report_of(b)["sections"] if s["id"] == "collectives")
    said = section["blocks"][0]["text"]
    assert "nearly all of that is waiting for other ranks" in said
    assert "128 B in 4.00 ms" in said
