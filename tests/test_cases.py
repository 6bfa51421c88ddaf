"""Inputs that broke other tools, rebuilt by hand; the right results were worked out on paper (times in us)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.errors import NotATraceError
from analyze.findings import Finding, window_states
from analyze.metrics import Measures
from analyze.report import Report as Whole
from analyze.report import build_report
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace, Writer
from tests.builder import TraceBuilder

Report = Callable[..., dict[str, Any]]
US = 1000


def notice(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(n for n in report["notices"] if n["id"] == name)


def test_gpu_annotations_are_no_work(report_of: Report) -> None:
    """A second view of work, widened by 1 ns a side, adds nothing: busy 350 of 1000, 50 overlapped.

    stream 7   |aaaa|                 |aaaa|      1000..1100, 1900..2000
    stream 20    |nnnnnnnn|                       1050..1250 (NCCL)
    """
    b = TraceBuilder().step(5, 900, 1200)
    b.op("aten::mm", 940, 30).run("gemm_tile_a", (950, 10), (1000, 100))
    b.run(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", (980, 10), (1050, 200), stream=20
    )
    b.run("gemm_tile_a", (1890, 5), (1900, 100))
    for start, dur, stream in ((999.999, 1000.002, 7), (1049.999, 200.002, 20)) * 2:
        b.row("gpu_user_annotation", "forward_pass", start, dur, pid=0, tid=stream, stream=stream)
    report = report_of(b)
    device = report["devices"][0]
    assert device["activities"] == 3
    assert device["activity_sum_ns"] == 400 * US
    assert (device["busy_ns"], device["window_ns"], device["idle_ns"]) == (350 * US, 1000 * US, 650 * US)
    assert device["computation_ns"] == 200 * US
    assert device["exposed_communication_ns"] == 150 * US
    pair = report["overlap"][0]["pairs"][0]
    assert (pair["overlapped_ns"], pair["share_of_first"], pair["share_of_second"]) == (50 * US, 0.25, 0.25)
    assert device["idle"]["launch_delay_ns"] == 5 * US
    assert device["idle"]["launch_call_ns"] == 5 * US


def test_kernels_launched_before_recording(report_of: Report) -> None:
    """Three residual kernels count as busy and as nothing else; two launches queue behind them.

    stream 7  |rrr||rrr||rrr||k||k|     5..203, 205..403, 405..603, 607..657, 659..709
    host          ^100 ^130
    """
    b = TraceBuilder()
    for correlation, start in ((71, 5), (72, 205), (73, 405)):
        b.kernel("gemm_tile_a", start, 198, correlation=correlation)
    b.step(2, 60, 300).op("aten::mm", 95, 20).run("gemm_tile_a", (100, 10), (607, 50))
    b.op("aten::mm", 125, 20).run("gemm_tile_a", (130, 10), (659, 50))
    b.api("cudaDeviceSynchronize", 410, 305).span(0, 730)
    report = report_of(b)
    device, launches = report["devices"][0], report["launches"]
    assert (device["busy_ns"], device["window_ns"], device["idle_ns"]) == (694 * US, 704 * US, 10 * US)
    assert (launches["linked"], launches["unlinked"], launches["calls"]) == (2, 3, 2)
    assert launches["latency_ns"] is None, "no launch met an idle stream: both queued"
    assert (launches["queue_time_ns"]["n"], launches["queue_time_ns"]["p50_ns"]) == (2, (607 - 110) * US)
    assert launches["max_queue_depth"] == 2
    assert report["steps"] == [
        {
            "name": "ProfilerStep#2",
            "time_ns": 102 * US,
            "basis": "device",
            "wall_ns": 300 * US,
            "device_ns": 100 * US,
            "activities": 2,
            "edge": "only",
        }
    ]
    assert report["blocking_calls"]["calls"] == 0, "the only one is the profiler's own"
    assert report["blocking_calls"]["profiler_final_ns"] == 305 * US
    found = notice(report, "unlinked-activities")
    assert found["count"] == 3
    assert "594 µs, 84.4% of the window, 85.6% of busy time" in found["text"]


def test_legitimate_overlap_zero_length_and_unsigned_ids(report_of: Report) -> None:
    """Programmatic dependent launch overlaps 0.8; a zero-length kernel counts and owns no time; ids need 64 bits.

    stream 7   |----------|  1000..1010
                        |-------|  1009.2..1016.2    (1015: zero length)    |----| 1016.3..1020.3
    stream 20    |nnnn|   1002..1006
    """
    b = TraceBuilder().step(1, 900, 200)
    for i, (start, dur) in enumerate(((1000, 10), (1009.2, 7), (1015, 0), (1016.3, 4))):
        b.op("aten::mm", 949 + 6 * i, 5).run(
            f"pdl_stage_{i}", (950 + 6 * i, 3), (start, dur), api="cudaLaunchKernelExC"
        )
    b.row("cpu_op", "record_param_comms", 980, 5, **{"Comms Id": 17093776592125785438, "big": "9223372036854775807"})
    b.api("cuLaunchKernelEx", 981, 3, correlation=90, cat="cuda_driver")
    b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1002, 4, correlation=90, stream=20)
    report = report_of(b)
    device = report["devices"][0]
    assert device["activities"] == 5
    assert device["activity_sum_ns"] == 25_000
    assert (device["busy_ns"], device["window_ns"], device["idle_ns"]) == (20_200, 20_300, 100)
    assert report["launches"]["calls"] == 5


def test_one_graph_launch_many_kernels(report_of: Report) -> None:
    """One call starts five kernels: one launch, one latency, five activities; idle is 4 x 2 inside and 62 between.

    host      [100..125 graph launch]          [250..255]
    stream 7     |--||--||--||--||--|                |--|     140 152 164 176 186..198, 260..270
    """
    b = TraceBuilder().step(9, 50, 300).annotation("graph_replay", 90, 60)
    b.api("cudaStreamIsCapturing", 95, 1, correlation=899).api("cudaGraphLaunch", 100, 25, correlation=900)
    for i, start in enumerate((140, 152, 164, 176, 188)):
        b.kernel(f"node_kernel_{i}", start, 10, correlation=900, **{"graph id": 3, "graph node id": 12884901888 + i})
    b.op("aten::add", 245, 15).api("cudaLaunchKernel", 250, 5, correlation=901)
    b.kernel("eager_kernel", 260, 10, correlation=901)
    report = report_of(b)
    launches, device = report["launches"], report["devices"][0]
    assert (launches["calls"], launches["linked"], launches["unlinked"]) == (2, 6, 0)
    assert launches["latency_ns"] == {
        "n": 2,
        "p50_ns": 10 * US,
        "p90_ns": 40 * US,
        "p99_ns": 40 * US,
        "max_ns": 40 * US,
    }
    assert (device["busy_ns"], device["window_ns"], device["idle_ns"]) == (60 * US, 130 * US, 70 * US)
    assert device["gaps"] == 5
    gap = report["gaps"][0]
    assert (gap["length_ns"], gap["launch"], gap["op"]) == (62 * US, "cudaLaunchKernel", "aten::add")


def test_graph_kernels_have_no_op(load: Callable[[TraceBuilder], Trace]) -> None:
    b = TraceBuilder().annotation("graph_replay", 90, 60).api("cudaGraphLaunch", 100, 25, correlation=900)
    b.kernel("node_kernel", 140, 10, correlation=900)
    row = load(b).activities.row(0, named=True)
    assert row["op"] is None
    assert row["launch"] == 0


LEGACY = [
    {"name": "aten::linear", "ph": "X", "ts": 0, "dur": 100, "tid": 1, "pid": "CPU functions", "args": {}},
    {"name": "aten::addmm", "ph": "X", "ts": 20, "dur": 70, "tid": 1, "pid": "CPU functions", "args": {}},
    {"name": "aten::relu", "ph": "X", "ts": 120, "dur": 30, "tid": 1, "pid": "CPU functions", "args": {}},
    {"name": "aten::mul", "ph": "X", "ts": 10, "dur": 25, "tid": 2, "pid": "CPU functions", "args": {}},
    {"name": "aten::addmm", "ph": "s", "ts": 20, "tid": 1, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda"},
    {"name": "rpc_async#remote_add", "ph": "X", "ts": 160, "dur": 40, "tid": " node_id:1, thread_id:3 ",
     "pid": "CPU functions", "args": {}},
]  # fmt: skip


def test_bare_list_written_without_kineto(tmp_path: Path) -> None:
    """Host operators only; it cannot contain kernels, and that is said rather than 'GPU 0 % busy'."""
    path = tmp_path / "legacy.json"
    path.write_text(json.dumps(LEGACY))
    trace = Trace.load(path)
    assert trace.writer is Writer.LEGACY
    measures = Measures(trace, Definitions(), Scope())
    assert measures.devices == ()
    ops = {op.name: (op.total_cpu_ns // US, op.self_cpu_ns // US) for op in measures.ops.ops}
    assert ops == {
        "aten::linear": (100, 30),
        "aten::addmm": (70, 70),
        "aten::relu": (30, 30),
        "aten::mul": (25, 25),
        "rpc_async#remote_add": (40, 40),
    }
    threads = {t.label: (t.span_ns // US, t.covered_ns // US) for t in measures.ops.threads}
    assert threads["process CPU functions, thread 1"] == (150, 130)
    assert "process CPU functions, thread node_id:1, thread_id:3" in threads
    assert any("cannot contain kernels" in n.text for n in measures.notices)


def test_another_frameworks_trace_is_named(tmp_path: Path) -> None:
    document = {
        "displayTimeUnit": "ns",
        "traceEvents": [
            {"args": {"name": "/device:GPU:0"}, "name": "process_name", "ph": "M", "pid": 1},
            {"args": {"name": "/host:CPU"}, "name": "process_name", "ph": "M", "pid": 701},
            {"args": {"hlo_op": "dot.1"}, "dur": 15.5, "name": "fusion", "ph": "X", "pid": 1, "tid": 13, "ts": 2987.5},
            {},
        ],
    }
    path = tmp_path / "jax.json"
    path.write_text(json.dumps(document))
    with pytest.raises(NotATraceError, match="JAX or TensorFlow"):
        Trace.load(path)


@pytest.mark.parametrize("number", ["02", "03", "05", "07", "11", "14"])
def test_the_original_inputs_give_the_same(shared: Path, number: str) -> None:
    """The files that the tests above rebuild, where they are at hand."""
    folder = next((shared / "cases").glob(f"{number}-*"))
    path = next(folder.glob("trace.json*"))
    if number == "14":
        with pytest.raises(NotATraceError, match="JAX"):
            Trace.load(path)
        return
    measures = Measures(Trace.load(path), Definitions(), Scope())
    found = [(d.activities, d.busy_ns, d.window_ns) for d in measures.devices]
    expected = {
        "02": [(3, 350_000, 1_000_000)],
        "03": [(5, 694_000, 704_000)],
        "05": [(5, 20_200, 20_300)],
        "07": [(6, 60_000, 130_000)],
        "11": [],
    }
    assert found == expected[number]


@pytest.mark.parametrize(
    ("case", "window", "computation", "communication", "copy", "idle"),
    [
        ("19-tiny-allreduce-waits", 43_040, 24_080, 16_000, 0, 2_960),
        ("26-cuda-copy-blocks", 39_848, 29_520, 0, 9_400, 928),
        ("31-copy-stream-no-overlap", 23_607, 14_400, 0, 8_000, 1_207),
    ],
)
def test_collectives_and_copies_that_nothing_hides(
    case: str, window: int, computation: int, communication: int, copy: int, idle: int, shared: Path
) -> None:
    """The ledgers, in us; what is said about them is in tests/findings (test_collectives, test_copies)."""
    (device,) = Measures(Trace.load(shared / "cases" / case / "trace.json"), Definitions(), Scope()).devices
    assert device.window_ns == window * US
    assert device.computation_ns == computation * US
    assert device.exposed_communication_ns == communication * US
    assert device.exposed_copy_ns == copy * US
    assert device.idle_ns == idle * US


def original(shared: Path, number: str) -> Whole:
    """The report on the only file of a case."""
    folder = next((shared / "cases").glob(f"{number}-*"))
    return build_report(Trace.load(folder / "trace.json"))


def first_of(report: Whole) -> tuple[Finding, float]:
    """The first finding and its saving in us."""
    first = report.diagnosis.findings[0]
    assert first.saving is not None
    return first, first.saving.ns / US


def state_of(report: Whole, name: str) -> float:
    """Time in one state of the window in us."""
    (device,) = report.measures.devices
    return next(state.ns for state in window_states(device) if state.id == name) / US


def test_the_pin_memory_thread_allocates_anew_each_step(shared: Path) -> None:
    """15: input wait 2 x 38,000 of 141,001; thread 4203 is in cudaHostAlloc 3 times, 102 ms; workers change nothing."""
    report = original(shared, "15")
    finding, saved = first_of(report)
    assert (report.measures.devices[0].window_ns, state_of(report, "input-wait")) == (141_001 * US, 76_000)
    assert (finding.id, saved) == ("input-wait", 76_000)
    assert "thread 4203" in finding.observed
    assert "cudaHostAlloc 3 times: 102 ms" in finding.observed
    assert "pinned" in finding.title
    assert "num_workers" not in finding.change
    assert "waiting for the DataLoader's workers" in " ".join(report.verdict.sentences)


def test_empty_cache_in_every_step(shared: Path) -> None:
    """16: allocator calls are 2 x 15,200 of 160,000; without them both gaps of 20 ms go, for no other cause."""
    report = original(shared, "16")
    finding, saved = first_of(report)
    assert (finding.id, saved) == ("allocator-stall", 40_000)
    assert "empty_cache()" in finding.title
    assert "trainer.py(3200): training_step" in finding.observed
    assert state_of(report, "allocator") == 30_400
    assert [f.id for f in report.diagnosis.findings] == ["allocator-stall"]
    assert report.verdict.sentences[1].startswith(
        "For 19.0% of the window (76.0% of the idle time), the host was inside the driver"
    )


def test_one_pause_of_the_host(shared: Path) -> None:
    """17: in step 22 the host is outside ops for 41.5 ms; without stacks nothing says where; it may be gc."""
    report = original(shared, "17")
    finding, saved = first_of(report)
    assert finding.id == "input-wait"
    assert finding.title == "One host pause outside ops in step 22"
    assert 41_500 <= saved <= 42_300, "the pause with the usual time between two ops around it"
    assert "no Python frame" in finding.observed
    assert "gc.freeze()" in finding.change
    assert 41_500 <= state_of(report, "pause") <= 41_590
    assert report.verdict.id == "mixed"
    lines = " ".join(report.verdict.sentences)
    assert lines.startswith("Host pause 56.7% and computation 38.2% of the window.")
    assert "The longest gap takes 41.6 ms, 91.8% of the idle time, in step 22, with the host outside ops" in lines
    assert "launch" not in lines


def test_the_users_synchronisation_comes_first(shared: Path) -> None:
    """18: it costs at most the two gaps of 1,301 us; the Python behind it fits into the wait that is then gone."""
    report = original(shared, "18")
    finding, saved = first_of(report)
    assert finding.id == "iteration-sync"
    assert 2_500 <= saved <= 2_602
    assert [f.id for f in report.diagnosis.findings] == ["iteration-sync"]
    assert 2_500 <= state_of(report, "sync") <= 2_602
    assert "inside a blocking call, or launching again" in report.verdict.sentences[1]


def test_a_recompilation_names_its_step(shared: Path) -> None:
    """30: 4.0 s in compile ranges of step 10; other steps are busy."""
    report = original(shared, "30")
    finding, saved = first_of(report)
    assert (finding.id, finding.title) == ("warm-up", "Step 10 recompiles")
    assert saved == pytest.approx(4_000_000, rel=0.001)
    assert all(word in finding.change for word in ("mark_dynamic", "TORCH_LOGS=recompiles", "warm-up"))
    assert report.verdict.id == "compilation-bound"
    assert "in step 10" in " ".join(report.verdict.sentences)
    assert "reduce-overhead" not in " ".join(f.change for f in report.diagnosis.findings)
