"""Whole runs with a cause that must be told, and with look-alikes that must not: worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.findings import Diagnosis, Finding
from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder

GEMM = "volta_sgemm_64x64_nt"
CONVOLUTION = (
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>"
    "(int, int, int, float const*, int, float*, float*)"
)
LOADING = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def judged(builder: TraceBuilder, folder: Path) -> Diagnosis:
    return build_report(Trace.load(builder.write(folder / "trace.json"))).diagnosis


def found(diagnosis: Diagnosis) -> dict[str, Finding]:
    return {finding.id: finding for finding in diagnosis.findings}


def saved_us(finding: Finding) -> float:
    assert finding.saving is not None
    return finding.saving.ns / 1000


def test_loading_on_another_thread_is_not_counted(tmp_path: Path) -> None:
    """Ten steps of 1 ms: 60 us of loading on the launching thread, twice annotated; 990 us on a thread beside it."""
    builder = TraceBuilder()
    for start in range(0, 10_000, 1_000):
        builder.annotation(LOADING, start, 60).annotation("DataLoader fetch", start + 1, 58)
        builder.annotation("DataLoader worker", start + 5, 990, tid=777)
        builder.run(GEMM, (start + 100, 5), (start + 110, 700))
    finding = found(judged(builder, tmp_path))["input-wait"]
    assert finding.seen.startswith("DataLoader work on the launching thread: 600 µs.")
    assert saved_us(finding) == pytest.approx(9 * 60)


def test_a_busy_device_with_waits_that_cost_nothing(tmp_path: Path) -> None:
    """The host waits for the kernel of three launches ago, as throttling loops do; the device never runs dry."""
    builder, now, free, ends = TraceBuilder(), 0.0, 0.0, []
    for number in range(40):
        if number >= 3:
            wait = max(ends[number - 3] + 5 - now, 2)
            builder.api("cudaEventSynchronize", now, wait)
            now += wait
        start = max(free + 1.2, now + 7)
        builder.run(GEMM, (now + 1, 3), (start, 300))
        free = start + 300
        ends.append(free)
        now += 6
    assert not {"sync-stall", "iteration-sync", "launch-bound"} & set(found(judged(builder, tmp_path)))


def first_use() -> TraceBuilder:
    """The second launch call takes 5 ms, and its kernel begins when it returns: without it 4,940 us are saved."""
    builder = TraceBuilder().run(GEMM, (0, 5), (10, 100)).run(GEMM, (50, 5_000), (5_053, 100))
    return builder.run(GEMM, (5_060, 5), (5_160, 100)).run(GEMM, (5_070, 5), (5_262, 3_000))


def test_a_long_launch_call_is_first_use(tmp_path: Path) -> None:
    finding = found(judged(first_use(), tmp_path))["warm-up"]
    assert saved_us(finding) == pytest.approx(4_940, abs=5)


def test_the_profiler_inside_a_launch_call_is_not_first_use(tmp_path: Path) -> None:
    builder = first_use().overhead("Activity Buffer Request", 51, 4_990)
    findings = found(judged(builder, tmp_path))
    assert saved_us(findings["profiler-overhead"]) == pytest.approx(4_940, abs=5)
    assert "warm-up" not in findings


def test_start_up_inside_an_allocation_is_first_use(tmp_path: Path) -> None:
    """The driver starts inside cudaFree for 400 ms: no setting of the allocator would help."""
    builder = TraceBuilder().run(GEMM, (0, 5), (10, 100)).api("cudaFree", 20, 400_000)
    builder.run(GEMM, (400_100, 5), (400_110, 1_000))
    findings = found(judged(builder, tmp_path))
    assert saved_us(findings["warm-up"]) == pytest.approx(399_990, abs=100)
    assert "allocator-stall" not in findings


def test_a_long_wait_between_short_kernels_is_no_gap_between_them(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel("k", 10, 5).kernel("k", 5_000, 5)
    assert not judged(builder, tmp_path).findings


@pytest.mark.parametrize(
    ("gpu", "sms", "memory", "change"),
    [
        ("NVIDIA GeForce RTX 3060", 28, 12, "autocast to bfloat16"),  # its TF32 is as slow as its fp32
        ("Tesla V100-SXM2-16GB", 80, 16, "autocast to float16, in training with a GradScaler"),
        ("NVIDIA A100-SXM4-80GB", 108, 80, 'torch.set_float32_matmul_precision("high"), cudnn.allow_tf32'),
    ],
)
def test_fp32_products_are_sent_where_the_gpu_is_faster(
    gpu: str, sms: int, memory: int, change: str, tmp_path: Path
) -> None:
    builder = TraceBuilder()
    builder.metadata["deviceProperties"] = [{"id": 0, "name": gpu, "numSms": sms, "totalGlobalMem": memory << 30}]
    for number in range(20):
        builder.op("aten::cudnn_convolution", 10 * number, 8)
        builder.run(CONVOLUTION, (10 * number + 2, 4), (10 + 401.5 * number, 400))
    finding = found(judged(builder, tmp_path))["fp32-gemm"]
    assert finding.change.startswith(change)


def test_products_on_two_devices_are_no_more_than_everything(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for start in range(0, 9_200, 920):
        builder.run(GEMM, (start, 5), (start + 10, 900)).run(GEMM, (start + 10, 5), (start + 20, 890), device=1)
    assert "100.0% of activity time" in found(judged(builder, tmp_path))["fp32-gemm"].seen


def test_a_saving_that_the_host_holds_back_says_so(tmp_path: Path) -> None:
    """Every 100 us one kernel of 98 us is launched: on an eighth of it the device would wait for the host."""
    builder = TraceBuilder()
    builder.metadata["deviceProperties"] = [{"id": 0, "name": "Tesla V100-SXM2-16GB", "numSms": 80}]
    for number in range(40):
        builder.run(GEMM, (100 * number, 5), (100 * number + 6, 98))
    finding = found(judged(builder, tmp_path))["fp32-gemm"]
    assert finding.saving is not None
    assert saved_us(finding) < 100
    assert "with launches that cost nothing it would be 3.43 ms" in finding.saving.basis


def test_all_together_is_never_more_than_idle_time_and_shortened_work(tmp_path: Path) -> None:
    """Without the wait two streams would overlap: that the device is fast enough for both is not promised."""
    builder = TraceBuilder()
    for start in range(0, 8_000, 1_000):
        builder.run("own", (start, 5), (start + 10, 300)).run("own", (start + 8, 5), (start + 16, 500), stream=9)
        builder.op("aten::item", start + 20, 600)
        builder.run(
            "Memcpy DtoH (Device -> Pinned)",
            (start + 22, 4),
            (start + 311, 1),
            api="cudaMemcpyAsync",
            cat="gpu_memcpy",
        )
        builder.api("cudaStreamSynchronize", start + 28, 292).run("own", (start + 640, 5), (start + 650, 300))
    diagnosis = judged(builder, tmp_path)
    assert {"sync-stall", "launch-bound"} <= set(found(diagnosis))
    assert diagnosis.together is not None
    assert diagnosis.together.ns == 1_492_000


@pytest.mark.parametrize(("numbers", "told"), [((7, 7, 7, 7), False), ((7, 8, 9, 9), True)])
def test_gradients_that_are_allowed_are_no_graph(numbers: tuple[int, ...], told: bool, tmp_path: Path) -> None:
    """Ops of frozen weights carry a sequence number, but it never moves on."""
    builder = TraceBuilder()
    for turn, number in enumerate(numbers):
        builder.row("cpu_op", "aten::linear", 10 * turn, 8, **{"Sequence number": number})
        builder.run("own", (10 * turn + 1, 4), (20 + 100 * turn, 99))
    assert ("training-mode" in found(judged(builder, tmp_path))) is told


@pytest.mark.parametrize(("inside", "told"), [(True, False), (False, True)])
def test_what_a_library_launches_around_its_kernel_is_not_fusible(inside: bool, told: bool, tmp_path: Path) -> None:
    """Two transposes of 100 us before each convolution: its own, or those of ops that a compiler could join."""
    builder, transpose = TraceBuilder(), "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)"
    for number in range(10):
        host, device = 40 * number, 10 + 610 * number
        if inside:
            builder.op("aten::cudnn_convolution", host, 30)
        for turn, (name, length) in enumerate([(transpose, 100), (transpose, 100), (CONVOLUTION, 400)]):
            start = host + 2 + 8 * turn
            if not inside:
                builder.op("aten::cudnn_convolution" if turn == 2 else "aten::contiguous", start - 1, 7)
            builder.run(name, (start, 4), (device + 101 * turn, length))
    assert ("fusible-chain" in found(judged(builder, tmp_path))) is told
