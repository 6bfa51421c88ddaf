"""What the evidence of findings counts, worked out by hand (times in us)."""

from __future__ import annotations

from pathlib import Path

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
    assert finding.seen == (
        "1 call of first use (module loads, compilation, memory from the driver): 3.00 ms of host time, "
        "3.00 ms of it in cudaLaunchKernel inside aten::mm."
    )


def test_a_module_load_outside_calls_is_counted(tmp_path: Path) -> None:
    builder = TraceBuilder().op("aten::mm", 0, 20).run(GEMM, (0, 5), (10, 100)).overhead(LOADING, 200, 2_800)
    builder.op("aten::mm", 100, 3_100).run(GEMM, (3_100, 5), (3_110, 100))
    finding = found(judged(builder, tmp_path))["warm-up"]
    assert finding.title == "Warm-up is in the window: Runtime Triggered Module Loading"
    assert "1 call of first use" in finding.seen
    assert "2.80 ms of host time" in finding.seen


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
    assert finding.seen.endswith("4 launches come 67.5 µs late on average, for work that takes 10.0 µs.")
