"""What the evidence of findings counts, worked out by hand (times in us)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from tests.findings.test_blame import GEMM, found, judged

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
LOADING = "Runtime Triggered Module Loading"


def test_first_use_counts_host_time_once_and_only_in_the_window(tmp_path: Path) -> None:
    """A launch of 5,000 ends before the first kernel; one of 3,000 in the window has a module load of 2,800 inside."""
    builder = TraceBuilder().op("aten::mm", 0, 5_001).run(GEMM, (0, 5_000), (5_005, 100))
    builder.op("aten::mm", 5_100, 3_150).run(GEMM, (5_200, 3_000), (8_205, 100)).overhead(LOADING, 5_300, 2_800)
    finding = found(judged(builder, tmp_path))["warm-up"]
    assert finding.title == "Warm-up is in the window: cudaLaunchKernel"
    assert finding.observed == (
        "1 call of first use (module loads, compilation, memory from the driver): 3.00 ms of host time, "
        "3.00 ms of it in cudaLaunchKernel inside aten::mm."
    )


def test_a_module_load_outside_calls_is_counted(tmp_path: Path) -> None:
    builder = TraceBuilder().op("aten::mm", 0, 20).run(GEMM, (0, 5), (10, 100)).overhead(LOADING, 200, 2_800)
    builder.op("aten::mm", 100, 3_100).run(GEMM, (3_100, 5), (3_110, 100))
    finding = found(judged(builder, tmp_path))["warm-up"]
    assert finding.title == "Warm-up is in the window: Runtime Triggered Module Loading"
    assert "1 call of first use" in finding.observed
    assert "2.80 ms of host time" in finding.observed


def chain(launch: int) -> TraceBuilder:
    """Two additions of 100 us between products of 100; the second one's launch call takes so long."""
    builder = TraceBuilder().op("aten::mm", 0, 10).run(GEMM, (2, 5), (10, 100))
    builder.op("aten::add", 20, 10).run(ADD, (22, 5), (110, 100))
    builder.op("aten::add", 40, launch + 15).run(ADD, (45, launch), (50 + launch, 100))
    return builder.op("aten::mm", 60 + launch, 10).run(GEMM, (62 + launch, 5), (150 + launch, 100))


def test_what_takes_the_place_of_an_op_has_a_first_use_of_its_own(tmp_path: Path) -> None:
    """Of 3,000 us, 3,000 are a module load inside the addition: fusing it saves its kernel and its own host time.

    The window is 3,240 us: the kernels end at 3,250. Without the second addition the last product, whose op begins
    15 us of host time earlier, starts at about 3,050, right behind its launch: not more than 200 us are saved.
    """
    finding = found(judged(chain(3_000), tmp_path))["fusible-chain"]
    assert finding.saving is not None
    assert finding.saving.ns <= 200_000


def test_launches_are_late_by_the_idle_time_that_they_end(tmp_path: Path) -> None:
    """Four kernels of 10 us, 100 apart: 270 us idle, 67.5 for each launch."""
    builder = TraceBuilder()
    for at in range(0, 400, 100):
        builder.op("aten::mm", at, 95).run(GEMM, (at, 5), (at + 10, 10))
    finding = found(judged(builder, tmp_path))["launch-bound"]
    assert "4 launches come 67.5 µs late on average, for work that takes 10.0 µs." in finding.observed


def test_launches_are_late_somewhere(tmp_path: Path) -> None:
    """Gaps of 90 us before two products and one addition; 1.5 us of each stay, as between two kernels in a row."""
    builder = TraceBuilder()
    for at, op, kernel in (
        (0, "aten::mm", GEMM),
        (100, "aten::mm", GEMM),
        (200, "aten::add", ADD),
        (300, "aten::mm", GEMM),
    ):
        builder.op(op, at, 95).run(kernel, (at, 5), (at + 10, 10))
    finding = found(judged(builder, tmp_path))["launch-bound"]
    assert finding.observed.endswith("Most before aten::mm: 2 gaps, 177 µs.")
    (table,) = finding.evidence
    assert table.title == "Where the GPU waits for launches"
    assert [row[:4] for row in table.rows] == [(GEMM, "aten::mm", 2, 177_000), (ADD, "aten::add", 1, 88_500)]


@pytest.mark.parametrize(("second", "free"), [(64, "84.0 µs"), (76, None)])
def test_what_computation_could_still_hide(second: int, free: str | None, tmp_path: Path) -> None:
    """A collective of 200, 10 of it beside a product of 30: 190 exposed. Free are 20 and the second product."""
    builder = TraceBuilder().op("autograd::engine::evaluate_function: MmBackward0", 0, 9)
    builder.op("aten::mm", 1, 7).run(GEMM, (2, 5), (10, 30))
    builder.op("c10d::allreduce_", 12, 10).run(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", (14, 5), (30, 200), stream=20
    )
    builder.op("aten::mm", 30, 10).run(GEMM, (32, 5), (230, second))
    finding = found(judged(builder, tmp_path))["exposed-communication"]
    assert ("no more can be hidden" in finding.observed) is (free is not None)
    assert finding.change.startswith("exchange less" if free else "start them during the backward")
    if free:
        assert f"Computation without a collective beside it takes {free}: no more" in finding.observed


@pytest.mark.parametrize(("later", "level"), [(890, "medium"), (910, "low")])
def test_small_grids_matter_where_the_device_works(later: int, level: str, tmp_path: Path) -> None:
    """Two kernels of 50 us on one block each, 100 of 990 or of 1,010 us: just above and just below a tenth."""
    builder = TraceBuilder()
    for at, number in ((0, 1), (later + 50, 2)):
        builder.op("aten::add", at, 20).api("cudaLaunchKernel", at + 2, 5, correlation=number)
        builder.kernel(ADD, at + 10, 50, correlation=number, grid=[1, 1, 1], block=[128, 1, 1])
    assert found(judged(builder, tmp_path))["small-batch"].severity == level


@pytest.mark.parametrize("averages", [True, False])
def test_attention_of_the_module_that_returns_weights(averages: bool, tmp_path: Path) -> None:
    """Two batched products around a softmax, in the module's own op; the weights are summed over heads, or not."""
    builder = TraceBuilder().op("aten::_native_multi_head_attention", 0, 80)
    softmax = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)"
    total = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::sum_functor<float> > >(int)"
    work = [("aten::bmm", GEMM), ("aten::_softmax", softmax), ("aten::bmm", GEMM), ("aten::sum", total)]
    for at, (op, kernel) in enumerate(work if averages else work[:3]):
        builder.op(op, 2 + 12 * at, 10).run(kernel, (3 + 12 * at, 5), (100 + 100 * at, 100))
    change = found(judged(builder, tmp_path))["unfused-attention"].change
    assert ("need_weights=False" in change) is averages
    assert ("F.scaled_dot_product_attention" in change) is not averages


@pytest.mark.parametrize("kernel", ["kDequantizeBlockwise<__half, 512, 64, 8, 2>(float*)", ADD])
def test_kernels_that_no_compiler_fuses(kernel: str, tmp_path: Path) -> None:
    builder = TraceBuilder()
    for at, (op, name) in enumerate([("aten::mm", GEMM), ("MatMul", kernel), ("aten::add", ADD), ("aten::mm", GEMM)]):
        builder.op(op, 12 * at, 10).run(name, (2 + 12 * at, 5), (100 + 100 * at, 100))
    change = found(judged(builder, tmp_path))["fusible-chain"].change
    assert change.startswith("torch.compile(model)" if kernel == ADD else "no compiler fuses the bitsandbytes kernels")


@pytest.mark.parametrize(("name", "change"), [("Optimizer.step#SGD.step", "fused=True"), ("log", "another thread")])
def test_python_of_an_optimizer_stays_on_its_thread(name: str, change: str, tmp_path: Path) -> None:
    """A pause of 2,000 us inside a range between two kernels."""
    builder = TraceBuilder().op("aten::mm", 0, 20).run(GEMM, (2, 5), (10, 100)).annotation(name, 30, 2_100)
    builder.op("aten::mm", 2_040, 20).run(GEMM, (2_042, 5), (2_050, 100))
    assert change in found(judged(builder, tmp_path))["input-wait"].change
