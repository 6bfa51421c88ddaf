"""Files without device work say what they hold instead; a device's waits are no work, and other runtimes block too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.report import build_report
from analyze.timeline.blocking import find_blocking_calls
from analyze.trace import Trace
from tests.builder import TraceBuilder

Report = Callable[..., dict[str, Any]]
ASKED = "was activities=[CPU] recorded?"


def sentence(report: dict[str, Any]) -> str:
    assert report["verdict"]["id"] == "no-gpu-activity"
    return str(report["verdict"]["sentences"][0])


def test_ops_alone_ask_whether_only_the_cpu_was_recorded(report_of: Report) -> None:
    assert ASKED in sentence(report_of(TraceBuilder().op("aten::mm", 0, 50)))


@pytest.mark.parametrize("call", ["cudaGetDeviceCount", "cudaDeviceSynchronize", "hipGetDeviceCount", "cudaMalloc"])
def test_device_calls_without_a_launch_say_that_no_kernel_was_launched(call: str, report_of: Report) -> None:
    b = TraceBuilder().op("aten::mm", 0, 50).api(call, 60, 5).api(call, 70, 5)
    said = sentence(report_of(b))
    assert ASKED not in said
    assert said.startswith("2 device calls are in the file")
    assert "no kernel was launched: the ops ran on the CPU" in said


@pytest.mark.parametrize(
    "call", ["cudaLaunchKernel", "cuLaunchKernelEx", "urEnqueueKernelLaunch", "hipModuleLaunchKernel"]
)
def test_launches_without_kernels_are_missing_records(call: str, report_of: Report) -> None:
    said = sentence(report_of(TraceBuilder().op("aten::mm", 0, 50).api("cudaMalloc", 1, 2).api(call, 5, 3)))
    assert said == "Device records are missing: 1 launch call and no activity. This is not an idle GPU."


def test_ranges_of_the_range_profiler_are_named_when_they_are_all_there_is(report_of: Report) -> None:
    """CUPTI's range profiler writes one row per kernel on pid 0, thread 0, with counters and no kernels beside them."""
    b = TraceBuilder()
    for i in range(3):
        b.row("cuda_profiler_range", f"gemm_{i}", 10 * i, 8, pid=0, tid=0, smsp__warps_launched=132.0)
    report = report_of(b)
    assert "CUPTI's range profiler: performance counters" in sentence(report)
    (notice,) = [n for n in report["notices"] if n["id"] == "counter-ranges"]
    assert notice["count"] == 3


@pytest.mark.parametrize(
    ("name", "asked"), [("a100pcie_switch_nokernels", False), ("cpu_resnet18_windows", True)], ids=["calls", "none"]
)
def test_two_public_files(name: str, asked: bool, shared: Path) -> None:
    report = build_report(Trace.load(shared / "more" / f"{name}.json.gz"))
    (said,) = report.verdict.sentences
    assert (ASKED in said) is asked
    assert ("4 device calls are in the file" in said) is not asked


def test_a_devices_own_waits_are_no_computation(report_of: Report) -> None:
    """MTIA: a kernel of 30, a wait of 50 for an event, a kernel of 20: busy 50 of 100, and the wait is idle time."""
    b = TraceBuilder()
    for name, start, dur in (("matmul_kernel", 0, 30), ("event_wait", 30, 50), ("add_kernel", 80, 20)):
        b.kernel(name, start, dur, cat="mtia_ccp_events")
    report = report_of(b)
    (device,) = report["devices"]
    assert (device["activities"], device["busy_ns"], device["window_ns"]) == (2, 50_000, 100_000)
    (notice,) = [n for n in report["notices"] if n["id"] == "device-waits"]
    assert notice["count"] == 1


def test_a_file_of_waits_only_has_no_device_work(report_of: Report) -> None:
    assert ASKED in sentence(report_of(TraceBuilder().op("aten::mm", 0, 9).kernel("Stream Wait Event", 1, 5)))


BLOCKING = (
    "cudaStreamSynchronize", "cudaDeviceSynchronize", "cuCtxSynchronize", "hipStreamSynchronize",
    "musaDeviceSynchronize", "muStreamSynchronize", "zeEventHostSynchronize", "zeCommandListHostSynchronize",
    "urQueueFinish", "urEventWait", "aclrtSynchronizeStream", "aclrtSynchronizeDeviceWithTimeout",
    "AscendCL@aclrtSynchronizeEvent", "mtiaStreamSynchronize", "synchronize", "deviceSynchronize",
)  # fmt: skip
NOT_BLOCKING = (
    "cudaStreamWaitEvent", "cudaEventQuery", "cudaEventRecord", "aclrtStreamWaitEvent", "musaStreamWaitEvent",
    "zeCommandListAppendWaitOnEvents", "urEnqueueEventsWait", "hipStreamQuery", "cudaLaunchKernel",
)  # fmt: skip


def test_synchronisations_of_every_runtime_block(load: Callable[[TraceBuilder], Trace]) -> None:
    b = TraceBuilder().run("k", (0, 5), (10, 5))
    for i, name in enumerate((*BLOCKING, *NOT_BLOCKING)):
        b.api(name, 20 + 10 * i, 5, cat="privateuse1_runtime")
    assert find_blocking_calls(load(b))["name"].to_list() == list(BLOCKING)
