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
    assert finding.observed.startswith("DataLoader work on the launching thread: 600 µs.")
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


V100 = ("Tesla V100-SXM2-16GB", 80, 16)


def products(gpu: tuple[str, int, int], kernel: str, folder: Path, op: str = "aten::f", **properties: int) -> Diagnosis:
    """20 kernels of 400 us, launched in time."""
    name, sms, memory = gpu
    builder = TraceBuilder()
    device = {"id": 0, "name": name, "numSms": sms, "totalGlobalMem": memory << 30, **properties}
    builder.metadata["deviceProperties"] = [device]
    for number in range(20):
        builder.op(op, 10 * number, 8)
        builder.run(kernel, (10 * number + 2, 4), (10 + 401.5 * number, 400))
    return judged(builder, folder)


@pytest.mark.parametrize(
    ("gpu", "gemm", "convolution"),
    [
        (("NVIDIA GeForce RTX 3060", 28, 12), "autocast to bfloat16", "autocast to bfloat16"),  # TF32 as slow as fp32
        (V100, "autocast to float16, in training with a GradScaler", "autocast to float16, in training"),
        (
            ("NVIDIA A100-SXM4-80GB", 108, 80),
            'torch.set_float32_matmul_precision("high")',
            "torch.backends.cudnn.allow_tf32 = True",
        ),
    ],
)
def test_fp32_products_are_sent_where_the_gpu_is_faster(
    gpu: tuple[str, int, int], gemm: str, convolution: str, tmp_path: Path
) -> None:
    (one,) = (f for f in products(gpu, GEMM, tmp_path).findings if f.id.startswith("fp32"))
    assert (one.id, one.title) == ("fp32-gemm", "FP32 GEMMs leave tensor cores idle")
    assert one.observed.startswith("20 GEMM kernels in fp32 on CUDA cores: 8.00 ms, 100.0% of activity time.")
    assert one.change.startswith(gemm)
    (other,) = (f for f in products(gpu, CONVOLUTION, tmp_path).findings if f.id.startswith("fp32"))
    assert (other.id, other.title) == ("fp32-convolution", "FP32 convolutions leave tensor cores idle")
    assert other.observed.startswith("20 convolution kernels in fp32 on CUDA cores: 8.00 ms, 100.0% of activity time.")
    assert other.change.startswith(convolution)


def test_a_gemm_that_a_convolution_runs_as_is_a_convolution(tmp_path: Path) -> None:
    findings = found(products(V100, GEMM, tmp_path, op="aten::cudnn_convolution"))
    assert "fp32-gemm" not in findings
    assert findings["fp32-convolution"].observed.startswith("20 convolution kernels in fp32 on CUDA cores: 8.00 ms")


def test_depthwise_convolutions_are_limited_by_memory(tmp_path: Path) -> None:
    kernel = "void at::native::conv_depthwise2d_forward_kernel<3, float, int>(int)"
    assert "fp32-convolution" not in found(products(V100, kernel, tmp_path))


def test_a_chip_without_tensor_cores_is_told_of_half_precision_only(tmp_path: Path) -> None:
    """P100: 9.3 and 18.7 TFLOP/s, so 400 us become 199 us; cuDNN adds up in fp32, and gains nothing."""
    p100 = ("Tesla P100-PCIE-16GB", 56, 16)
    finding = found(products(p100, GEMM, tmp_path))["fp32-gemm"]
    assert finding.title == "GEMMs run in fp32; fp16 is faster"
    assert "9.3 TFLOP/s in fp32, 18.7 in fp16" in finding.observed
    assert finding.change == "autocast to float16, in training with a GradScaler"
    assert saved_us(finding) == pytest.approx(20 * (400 - 400 * 9.3 / 18.7), abs=1)
    texts = " ".join((finding.title, finding.observed, finding.why, finding.change, finding.exceptions)).lower()
    assert not any(word in texts for word in ("tf32", "bf16", "bfloat16", "tensor"))
    convolutions = products(p100, CONVOLUTION, tmp_path)
    assert not any(finding.id.startswith("fp32") for finding in convolutions.findings)
    assert {p.id: p.reason for p in convolutions.passed}["fp32-convolution"].endswith("nothing on this GPU is faster")


@pytest.mark.parametrize(
    ("name", "capability", "title", "change"),
    [
        ("Quadro GP100", (6, 0), "GEMMs run in fp32; fp16 is faster", "autocast to float16"),
        ("Quadro RTX 8000", (7, 5), "FP32 GEMMs leave tensor cores idle", "autocast to float16"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", (8, 6), "FP32 GEMMs leave tensor cores idle", "autocast to bfloat16"),
        ("NVIDIA GeForce GTX 1650", (7, 5), None, None),
        ("NVIDIA GeForce GTX 1060 6GB", (6, 1), None, None),
    ],
)
def test_a_gpu_without_figures_is_judged_by_its_kind(
    name: str, capability: tuple[int, int], title: str | None, change: str | None, tmp_path: Path
) -> None:
    major, minor = capability
    diagnosis = products((name, 48, 16), GEMM, tmp_path, computeMajor=major, computeMinor=minor)
    finding = found(diagnosis).get("fp32-gemm")
    assert (finding and finding.title) == title
    if finding and change:
        assert finding.saving is None
        assert finding.change.startswith(change)
        assert finding.observed.endswith("is not stated: the GPU is not in gpus.toml.")


@pytest.mark.parametrize("name", ["", "NVIDIA Unheard Of"])
def test_of_an_unknown_gpu_nothing_is_said_about_tensor_cores(name: str, tmp_path: Path) -> None:
    finding = found(products((name, 48, 16), GEMM, tmp_path))["fp32-gemm"]
    assert finding.title == "GEMMs run in fp32 on CUDA cores"


def test_asking_for_what_the_gpu_has_not(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.metadata["deviceProperties"] = [{"id": 0, "name": V100[0], "numSms": V100[1]}]
    builder.metadata["gpuledger"] = {"precision": "tf32"}
    for number in range(20):
        builder.run(GEMM, (10 * number + 2, 4), (10 + 401.5 * number, 400))
    findings = found(judged(builder, tmp_path))
    assert findings["precision-not-used"].title == "This GPU is no faster in tf32"
    assert findings["precision-not-used"].saving is None
    assert findings["fp32-gemm"].change.startswith("autocast to float16")


def test_three_convolutions_and_three_gemms_a_step(shared: Path) -> None:
    """cases/20: 18 kernels of 6,395 us, half of them convolutions; RTX 3090: 35.6 and 71 TFLOP/s."""
    diagnosis = build_report(Trace.load(shared / "cases/20-kernel-95-percent/host.88.pt.trace.json")).diagnosis
    assert [finding.id for finding in diagnosis.findings[:2]] == ["fp32-gemm", "fp32-convolution"]
    for finding, noun in zip(diagnosis.findings, ("GEMM", "convolution"), strict=False):
        assert finding.observed.startswith(f"9 {noun} kernels in fp32 on CUDA cores: 57.6 ms, 50.0% of activity time.")
        assert "35.6 TFLOP/s in fp32, 71 in bf16" in finding.observed
        assert finding.change == "autocast to bfloat16 or float16"
        assert saved_us(finding) == pytest.approx(57_555 * (1 - 35.6 / 71), abs=1)


def test_a_p100_in_a_container(shared: Path) -> None:
    """cases/24: compute-bound, 12 SGEMMs of 4,895 us; the only advice on precision is fp16 at 18.7 against 9.3."""
    report = build_report(Trace.load(shared / "cases/24-container-pid-p100/trace.json"))
    (finding,) = (f for f in report.diagnosis.findings if f.id.startswith("fp32"))
    assert saved_us(finding) == pytest.approx(58_740 * (1 - 9.3 / 18.7), abs=1)
    assert report.verdict.id == "compute-bound"
    advice = " ".join(
        f"{f.title} {f.observed} {f.why} {f.change} {f.exceptions}" for f in report.diagnosis.findings
    ).lower()
    assert not any(word in advice for word in ("tf32", "bf16", "bfloat16", "tensor core"))


@pytest.mark.parametrize("wait", ["inside", "sync"])
def test_a_read_back_hides_no_slow_product(wait: str, shared: Path) -> None:
    """cases/32: 30 ms of fp32 GEMM at 19.5 of 156 TFLOP/s, with the wait inside the copy call or behind it."""
    diagnosis = build_report(Trace.load(shared / f"cases/32-wait-inside-the-copy/item_{wait}.json")).diagnosis
    assert diagnosis.findings[0].id == "fp32-gemm"
    assert saved_us(diagnosis.findings[0]) == pytest.approx(30_000 * (1 - 19.5 / 156), abs=1)


def test_a_gap_is_not_named_after_an_op_that_took_little_of_it(shared: Path) -> None:
    """cases/17: 41.5 ms outside ops, then 20 us of aten::mm."""
    report = build_report(Trace.load(shared / "cases/17-gc-pause/trace.json"))
    assert report.measures.gaps[0].frame == ()
    assert "aten::mm" not in " ".join(report.verdict.sentences)


@pytest.mark.parametrize(("middle", "found_it"), [("softmax", True), ("exp", False)])
def test_attention_by_hand_without_module_frames(middle: str, found_it: bool, tmp_path: Path) -> None:
    """Two batched products of 100 us around a scaling of 50 us and a softmax of 80 us: 130 us and two gaps go."""
    kernels = {
        "softmax": "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)",
        "exp": "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda>(int)",
    }
    scale = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float> >(int)"
    row = [("aten::bmm", GEMM, 100), ("aten::div", scale, 50), (f"aten::{middle}", kernels[middle], 80)]
    builder, start = TraceBuilder(), 100
    for at, (op, kernel, dur) in enumerate([*row, ("aten::bmm", GEMM, 100)]):
        builder.op(op, 10 * at, 8).run(kernel, (10 * at + 1, 5), (start, dur))
        start += dur + 1
    findings = found(judged(builder, tmp_path))
    assert ("unfused-attention" in findings) is found_it
    if found_it:
        assert saved_us(findings["unfused-attention"]) == pytest.approx(132, abs=2)


def test_products_on_two_devices_are_no_more_than_everything(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for start in range(0, 9_200, 920):
        builder.run(GEMM, (start, 5), (start + 10, 900)).run(GEMM, (start + 10, 5), (start + 20, 890), device=1)
    assert "100.0% of activity time" in found(judged(builder, tmp_path))["fp32-gemm"].observed


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
