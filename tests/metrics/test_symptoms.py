"""Grids that do not fill the device: which kernels' grids say something about the size of the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.metrics import Measures
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder

FEW, MANY = [8, 1, 1], [132, 1, 1]


def underfilled_us(folder: Path, name: str, grid: list[int]) -> float:
    """Of a kernel of 100 us on 132 multiprocessors."""
    b = TraceBuilder().api("cudaLaunchKernel", 1, 5, correlation=1)
    path = b.kernel(name, 10, 100, correlation=1, grid=grid).write(folder / "trace.json")
    symptoms = Measures(Trace.load(path), Definitions(), Scope()).symptoms
    assert symptoms.kernel_ns == 100_000
    return symptoms.underfilled_ns / 1000


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_tn",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
        "triton_per_fused_add_native_layer_norm_0",  # Inductor's persistent reductions: one block per row
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(int)",
        "Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x1_SN_SK0_TLDS1",
    ],
)
def test_a_grid_that_follows_from_the_work(name: str, tmp_path: Path) -> None:
    assert underfilled_us(tmp_path, name, FEW) == 100
    assert underfilled_us(tmp_path, name, MANY) == 0


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void deep_ep::intranode::dispatch<2, 768, 8192>(int4*)",
        "void vllm::cross_device_reduce_1stage<__half, 8>(int)",
        "__amd_rocclr_copyBuffer",
        "matmul_kernel_persistent",
        "matmul_kernel_tma_persistent",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::StaticPersistentTileScheduler<false> > >(int)",
        "void deep_gemm::fp8_gemm_kernel<7168u, 2048u, 128u>(int)",
        "nvjet_tst_128x64_64x8_1x2_h_bz_TNT",
        "void marlin::Marlin<256, 4, 16, 4, 3, false, 8>(int4 const*)",
        "Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x1_SN_SK3_TLDS1",
        "streamk_gemm_kernel",
        "RNN_blockPersist_fp_LSTM",
    ],
)
def test_a_grid_that_is_chosen(name: str, tmp_path: Path) -> None:
    assert underfilled_us(tmp_path, name, FEW) == 0
