"""Kinds of collectives, by the first name that says one."""

from __future__ import annotations

import pytest

from analyze.metrics.collectives import kind_of


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("allreduce",), "all_reduce"),
        (("_allgather_base", "ncclDevKernel_AllReduce_Sum"), "all_gather"),
        ((None, "ncclDevKernel_ReduceScatter_Sum_bf16"), "reduce_scatter"),
        ((None, "nccl:all_to_all", "ncclKernel_SendRecv_RING_SIMPLE"), "all_to_all"),
        ((None, "c10d::alltoall_base_"), "all_to_all"),
        ((None, "void vllm::cross_device_reduce_1stage<half, 2>(RankData*)"), "all_reduce"),
        ((None, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"), "sendrecv"),
        ((None, "ncclDevKernel_Generic_1"), "sendrecv"),
        (("send",), "send"),
        (("recv",), "recv"),
        (("send_recv",), "sendrecv"),
        (("broadcast", "ncclDevKernel_Broadcast_RING_LL"), "broadcast"),
        (("reduce",), "reduce"),
        ((None, ""), "sendrecv"),
    ],
)
def test_kinds(names: tuple[str | None, ...], kind: str) -> None:
    assert kind_of(*names) == kind
