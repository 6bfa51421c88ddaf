"""Why the host was late, in one word for ledger, verdict and finding; worked out by hand (times in us)."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.findings import Finding, window_states
from analyze.report import Report, build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder

GEMM = "volta_sgemm_64x64_nt"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def judged(builder: TraceBuilder, folder: Path) -> Report:
    return build_report(Trace.load(builder.write(folder / "trace.json")))


def found(report: Report) -> dict[str, Finding]:
    return {finding.id: finding for finding in report.diagnosis.findings}


def saved_us(finding: Finding) -> float:
    assert finding.saving is not None
    return finding.saving.ns / 1000


def states(report: Report) -> dict[str, float]:
    """The states of the window that are not zero, in us."""
    (device,) = report.measures.devices
    return {state.id: state.ns / 1000 for state in window_states(device) if state.ns}


def test_one_gap_of_each_cause(tmp_path: Path) -> None:
    """Kernels of 100 us, each launched by a call of 5 us and begun 5 us after its start; gaps by what lies in them.

    At 0: the first. 10,000: compilation of 9,000 us, with a cudaMalloc of 50 inside it, which is compilation.
    20,000: a capture of 2,000 and an instantiation of 500. 30,000: cudaMalloc of 300 in an op of 400; the rest of the
    gap is a pause. 400,000: cudaFree of 300,000, start-up.
    """
    builder = TraceBuilder().run(GEMM, (0, 5), (5, 100))
    builder.annotation("_compile.compile_inner (dynamo_timed)", 500, 9_000).api("cudaMalloc", 700, 50)
    builder.op("aten::mm", 110, 390).op("aten::mm", 9_500, 500).run(GEMM, (10_000, 5), (10_005, 100))
    builder.op("aten::mm", 10_110, 890).api("cudaStreamBeginCapture", 11_000, 10)
    builder.api("cudaStreamEndCapture", 12_990, 10).api("cudaGraphInstantiate", 13_000, 500)
    builder.op("aten::mm", 13_500, 6_500).run(GEMM, (20_000, 5), (20_005, 100))
    builder.op("aten::empty", 29_600, 400).api("cudaMalloc", 29_650, 300).run(GEMM, (30_000, 5), (30_005, 100))
    builder.op("aten::mm", 30_110, 69_890).api("cudaFree", 100_000, 300_000).run(GEMM, (400_000, 5), (400_005, 100))
    report = judged(builder, tmp_path)
    assert states(report) == {
        "computation": 500,
        "compilation": 9_000,
        "capture": 2_500,
        "allocator": 300,
        "pause": 29_600 - 20_105,
        "first-use": 300_000,
        "launch-bound": 400_100 - 500 - 9_000 - 2_500 - 300 - 9_495 - 300_000,
    }
    assert report.verdict.id == "first-use"
    assert sum(report.measures.devices[0].idle.values()) == report.measures.devices[0].idle_ns


@pytest.mark.parametrize(("pause", "first"), [(1_500, "iteration-sync"), (9_000, "input-wait")])
def test_a_wait_and_the_pause_behind_it_share_idle_time(pause: int, first: str, tmp_path: Path) -> None:
    """Four steps: a kernel of 4,000 us, a wait for it, a pause. What costs more by itself is the root."""
    builder, now = TraceBuilder(), 0
    for number in range(4):
        builder.step(number, now, 4_060 + pause).op("aten::mm", now + 10, 30).run(
            GEMM, (now + 20, 5), (now + 30, 4_000)
        )
        builder.api("cudaDeviceSynchronize", now + 50, 3_990)
        now += 4_060 + pause
    report = judged(builder, tmp_path)
    findings = report.diagnosis.findings
    assert findings[0].id == first
    # Without the wait the device is busy throughout, or the pause is what remains: 9,060 - 4,000 us of each step.
    each = {"iteration-sync": 60 + pause, "input-wait": pause}[first]
    assert saved_us(findings[0]) == pytest.approx(3 * each, rel=0.02)
    # Each gap: 10 us of the wait, the pause up to the next op, 10 us of that op, 5 of the launch call, 5 behind it.
    behind = {"sync": 3 * (55 + pause)}
    expected = behind if first == "iteration-sync" else {"pause": 3 * (30 + pause), "sync": 3 * 25}
    assert states(report) == {"computation": 16_000, "queued": 15, **expected}


@pytest.mark.parametrize(("at", "reported"), [((0,), False), ((0, 1), True), ((0, 1, 2), True)])
def test_one_synchronisation_is_no_loop(at: tuple[int, ...], reported: bool, tmp_path: Path) -> None:
    """Four steps of 2,600 us; a wait of 1,990 us for the kernel in some of them, and 500 us of ops behind it."""
    builder = TraceBuilder()
    for number in range(4):
        now = 2_600 * number
        builder.step(number, now, 2_590).op("aten::mm", now + 10, 30).run(GEMM, (now + 20, 5), (now + 30, 2_000))
        if number in at:
            builder.api("cudaDeviceSynchronize", now + 50, 1_990)
        builder.op("aten::add_", now + 2_045, 500)
    assert ("iteration-sync" in found(judged(builder, tmp_path))) is reported


def test_a_harness_that_synchronises_around_all_steps(tmp_path: Path) -> None:
    builder = TraceBuilder().api("cudaDeviceSynchronize", 0, 10)
    for number in range(3):
        now = 100 + 100 * number
        builder.step(number, now, 99).run(GEMM, (now + 20, 5), (now + 30, 60))
    builder.api("cudaDeviceSynchronize", 410, 10).run(GEMM, (460, 5), (470, 60)).api("cudaDeviceSynchronize", 470, 80)
    assert "iteration-sync" not in found(judged(builder, tmp_path))


@pytest.mark.parametrize("beside", [False, True])
def test_the_backward_thread_waits_and_pauses_for_no_python(beside: bool, tmp_path: Path) -> None:
    """Four steps of 20 ms: a forward kernel, then 15 ms of ops that launch nothing, then the backward kernel.

    Beside: the main thread's op runs on while the backward thread works, so that both work side by side.
    """
    builder, node = TraceBuilder(), "autograd::engine::evaluate_function: MmBackward0"
    for number in range(4):
        now = 20_000 * number
        builder.step(number, now, 19_990).op("aten::mm", now + 10, 30).run(GEMM, (now + 20, 5), (now + 30, 1_000))
        builder.op("aten::normal_", now + 60, 19_900 if beside else 15_000)
        builder.op(node, now + 15_100, 60, tid=5000)
        builder.run(GEMM, (now + 15_120, 5), (now + 15_130, 1_000), tid=5000)
        if not beside:
            builder.op("aten::add_", now + 15_200, 4_700)
    report = judged(builder, tmp_path)
    assert "input-wait" not in found(report)
    assert "pause" not in states(report)


@pytest.mark.parametrize(
    ("shrinking", "reported"), [(False, "The DataLoader's workers cannot keep up"), (True, "late")]
)
def test_waits_for_workers(shrinking: bool, reported: str, tmp_path: Path) -> None:
    """Eight steps: a wait of 5 ms each; or one of 40 ms where an epoch begins, and 50 us then."""
    builder, now = TraceBuilder(), 0
    for number in range(8):
        wait = (40_000 if number == 4 else 50) if shrinking else 5_000
        builder.step(number, now, wait + 140).annotation(WORKERS, now + 10, wait)
        now += wait + 150
        builder.run(GEMM, (now - 120, 5), (now - 110, 2_000))
        now += 1_900
    finding = found(judged(builder, tmp_path))["input-wait"]
    assert reported in finding.title
    assert "on the launching thread" not in finding.title
    assert ("persistent_workers=True)" in finding.change) is shrinking
    if shrinking:
        assert "1 wait over ten times the median takes 40.0 ms of it" in finding.observed


@pytest.mark.parametrize(("tid", "time", "named"), [(4203, 3_000, True), (4203, 2_000, False), (4127, 3_000, False)])
def test_pinned_memory_allocated_in_waits(tid: int, time: int, named: bool, tmp_path: Path) -> None:
    """Waits of 5,000 us: more than half of them on a thread that launches nothing, or not."""
    builder = TraceBuilder()
    for number in range(4):
        now = 8_000 * number
        builder.annotation(WORKERS, now, 5_000).api("cudaHostAlloc", now + 100, time, tid=tid)
        builder.run(GEMM, (now + 5_020, 5), (now + 5_030, 2_500))
    finding = found(judged(builder, tmp_path))["input-wait"]
    assert ("pinned" in finding.title) is named
    assert ("calls cudaHostAlloc 4 times: 12.0 ms" in finding.observed) is named


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [("0/0", "0/1", True), ("0/0", "1/0", False), ("", "0/0", False), ("1/0", "1/0", True)],
)
def test_what_was_compiled_before_is_recompiled(before: str, after: str, again: bool, tmp_path: Path) -> None:
    """Two steps; in the second 50 ms of compilation before the region runs."""
    builder = TraceBuilder().step(4, 0, 5_000).step(5, 5_000, 60_000)
    if before:
        builder.op(f"Torch-Compiled Region: {before}", 10, 40)
    builder.run(GEMM, (20, 5), (30, 4_000)).annotation("_compile.compile_inner (dynamo_timed)", 5_010, 50_000)
    builder.op(f"Torch-Compiled Region: {after}", 55_100, 40).run(GEMM, (55_110, 5), (55_120, 4_000))
    finding = found(judged(builder, tmp_path))["warm-up"]
    assert finding.title == ("Step 5 recompiles" if again else "Step 5 compiles")
    assert ("mark_dynamic" in finding.change) is again
    assert "reduce-overhead" not in finding.change


@pytest.mark.parametrize(("plain", "reported"), [(0, False), (3, True)])
def test_custom_functions_record_no_graph(plain: int, reported: bool, tmp_path: Path) -> None:
    """Each MatMul4Bit takes a number, gradients or not; an op that takes one as well records a graph."""
    builder, number = TraceBuilder(), 9
    for turn in range(6):
        for at, name in enumerate(("aten::t", "MatMul4Bit")):
            builder.row("cpu_op", name, 20 * turn + 10 * at, 8, **{"Sequence number": number})
            number += at or (turn < plain)
        builder.run("own", (20 * turn + 11, 4), (30 + 100 * turn, 99))
    assert ("training-mode" in found(judged(builder, tmp_path))) is reported


@pytest.mark.parametrize(
    ("frees", "steps", "word"), [(1, 0, "first-use"), (3, 0, "allocator"), (0, 1, "first-use"), (0, 4, "allocator")]
)
def test_a_cache_that_only_fills_is_first_use(frees: int, steps: int, word: str, tmp_path: Path) -> None:
    """Calls of cudaMalloc, 1,000 us each, two a step: in the first of four steps, or in all; some are cudaFree."""
    builder, calls = TraceBuilder().run(GEMM, (0, 2), (3, 4)), 0
    for number in range(4):
        now = 4_000 * number
        if steps:
            builder.step(number, now, 3_990)
        for turn in range(2):
            builder.op("aten::empty", now + 10 + 1_100 * turn, 1_020)
            name = "cudaFree" if calls >= 8 - frees else "cudaMalloc"
            if number < steps or not steps:
                builder.api(name, now + 15 + 1_100 * turn, 1_000)
            calls += 1
        builder.run(GEMM, (now + 2_300, 5), (now + 2_310, 1_000))
    report = judged(builder, tmp_path)
    rule = {"first-use": "warm-up", "allocator": "allocator-stall"}[word]
    assert rule in found(report)
    assert not {"warm-up", "allocator-stall"} - {rule} & set(found(report))
    assert states(report)[word] == 2_000 * (1 if steps == 1 else 4)
