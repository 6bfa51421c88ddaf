"""What hides what: shares of each class by name, never of the smaller one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.builder import TraceBuilder

US = 1000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_communication_that_is_longer_than_computation(report_of: Callable[..., dict[str, Any]]) -> None:
    """20 of 25 us of computation run beside 100 us of communication: a fifth of it is hidden, not four fifths.

    stream 7   |gemm|                       100..125
    stream 20     |nccl ............|       105..205
    stream 21                    |cp|       195..215 copy
    """
    b = TraceBuilder().run("gemm_tile_a", (10, 5), (100, 25)).run(NCCL, (20, 5), (105, 100), stream=20)
    b.run("Memcpy HtoD (Pinned -> Device)", (30, 5), (195, 20), stream=21, cat="gpu_memcpy", api="cudaMemcpyAsync")
    report = report_of(b)
    first, second = report["overlap"][0]["pairs"][0], report["overlap"][0]["pairs"][2]
    assert (first["first"], first["second"], first["overlapped_ns"]) == ("computation", "communication", 20 * US)
    assert (first["share_of_first"], first["share_of_second"]) == (0.8, 0.2)
    assert (second["first"], second["second"], second["share_of_first"]) == ("communication", "copy", 0.1)
    texts = [
        block["text"]
        for section in report["sections"]
        if section["id"] == "overlap"
        for block in section["blocks"]
        if block["type"] == "stat"
    ]
    assert "computation hides 20.0% of communication; communication hides 50.0% of copies" in texts[0]
    assert "80.0%" not in texts[0]
