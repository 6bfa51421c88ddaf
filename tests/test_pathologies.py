"""Device records that are broken in ways seen in the wild: figures by hand, and what the report says of it.

`tests/pathologies.md` lists every public report with its test and result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.errors import DamagedTraceError, NotATraceError
from analyze.trace import Trace
from tests.builder import TraceBuilder

Report = Callable[..., dict[str, Any]]
US = 1000


def ids(report: dict[str, Any]) -> list[str]:
    return [n["id"] for n in report["notices"]]


def text(report: dict[str, Any], name: str) -> str:
    return next(n["text"] for n in report["notices"] if n["id"] == name)


def steady(kernels: int = 40, gap: float = 100) -> TraceBuilder:
    """So many kernels of 50 us, one each 100 us, each launched 10 us before it starts."""
    b = TraceBuilder()
    for i in range(kernels):
        b.run("gemm_tile", (1000 + gap * i, 5), (1010 + gap * i, 50))
    return b


def test_impossible_durations_end_at_the_next_start(report_of: Report) -> None:
    """One of 40 kernels claims 3 s; it ends where the next one starts (100 us), the rest is no one's time."""
    b = steady()
    b.rows[21]["dur"] = 3_000_000 * US
    report = report_of(b)
    device = report["devices"][0]
    assert device["busy_ns"] == (39 * 50 + 100) * US
    assert device["window_ns"] == (39 * 100 + 50) * US
    assert "1 activity has an impossible duration" in text(report, "impossible-durations")


def test_long_kernels_beside_others_are_left_alone(report_of: Report) -> None:
    """A long kernel alone on its stream, and a collective that spins beside others, are what they seem."""
    b = steady()
    b.run("long_but_true", (900, 5), (1000, 50_000), stream=20)
    b.run("ncclDevKernel_AllReduce_Sum_f32_RING_LL", (900, 5), (1005, 40_000))
    report = report_of(b)
    assert "impossible-durations" not in ids(report)
    assert report["devices"][0]["busy_ns"] == 50_000 * US


def test_activities_a_day_away_are_left_out(report_of: Report) -> None:
    b = steady()
    b.kernel("from_another_time", 86_400 * 1e6, 10)
    report = report_of(b)
    assert report["devices"][0]["window_ns"] == (39 * 100 + 50) * US
    assert "1 activity lies an hour or more away" in text(report, "far-outliers")


def test_records_that_were_not_collected_count_and_own_no_time(report_of: Report) -> None:
    b = TraceBuilder(offset_us=0)
    for i in range(40):
        b.run("gemm_tile", (1000 + 100 * i, 5), (1010 + 100 * i, 50))
    b.kernel("not_collected", 0, 0)
    report = report_of(b)
    assert report["devices"][0]["activities"] == 40
    assert "1 activity without times" in text(report, "untimed-activities")


def test_many_zero_times_forbid_a_judgement(report_of: Report) -> None:
    b = TraceBuilder(offset_us=0)
    for i in range(40):
        b.op("aten::mm", 0 if i % 2 else 1000 + 100 * i, 0 if i % 2 else 40)
        b.run("gemm_tile", (1000 + 100 * i, 5), (1010 + 100 * i, 5))
    report = report_of(b)
    assert "16.7% of ops" in text(report, "zero-timestamps")
    assert report["verdict"]["id"] == "not-judged"


def test_negative_durations_are_zero(report_of: Report) -> None:
    b = steady().kernel("unfinished", 2000, -77)
    report = report_of(b)
    assert report["devices"][0]["activities"] == 41
    assert report["devices"][0]["busy_ns"] == 40 * 50 * US


def test_a_start_before_the_launch_is_skew_and_never_a_latency(report_of: Report) -> None:
    b = steady(10).run("early", (3000, 5), (2993, 20))
    report = report_of(b)
    assert report["launches"]["skewed"] == 1
    assert "by up to 7.00 µs" in text(report, "clock-skew")
    assert report["launches"]["latency_ns"]["n"] == 10
    assert all(value >= 0 for value in report["devices"][0]["idle"].values())


def test_correlation_zero_links_nothing(report_of: Report) -> None:
    b = TraceBuilder().api("cudaGetDevice", 0, 1, correlation=0).kernel("k", 10, 5, correlation=0)
    report = report_of(b)
    assert (report["launches"]["linked"], report["launches"]["unlinked"]) == (0, 1)
    assert "unlinked-activities" in ids(report)


def test_no_device_row_at_all_is_missing_records_not_an_idle_gpu(report_of: Report) -> None:
    b = TraceBuilder()
    for i in range(5):
        b.op("aten::mm", 100 * i, 50).api("cudaLaunchKernel", 100 * i + 10, 5, correlation=50 + i)
    report = report_of(b)
    assert report["verdict"]["id"] == "no-gpu-activity"
    assert "5 launch calls and no activity. This is not an idle GPU" in report["verdict"]["sentences"][0]


def test_dropped_first_rows_are_named(report_of: Report) -> None:
    """Ten launches at the start have no activity: 20 % of them, so no advice on idle time."""
    b = TraceBuilder()
    for i in range(10):
        b.api("cudaLaunchKernel", 10 * i, 5, correlation=50 + i)
    b.rows += steady().rows
    report = report_of(b)
    assert "10 of 50 launch calls have no recorded activity" in text(report, "device-records-incomplete")
    assert "They are the first ones" in text(report, "device-records-incomplete")
    assert report["verdict"]["id"] == "not-judged"


@pytest.mark.parametrize(("missing", "judged"), [(2, True), (3, False)])
def test_the_limit_for_incomplete_records(missing: int, judged: bool, report_of: Report) -> None:
    """Of 50 launch calls 48 are enough (96 %), 47 are not (94 %)."""
    b = steady(50)
    kernels = [row for row in b.rows if row["cat"] == "kernel"]
    for row in kernels[10 : 10 + missing]:
        b.rows.remove(row)
    report = report_of(b)
    assert (report["verdict"]["id"] != "not-judged") is judged
    assert ("device-records-incomplete" in ids(report)) is not judged


def test_launches_inside_a_graph_capture_have_no_activity_by_nature(report_of: Report) -> None:
    b = TraceBuilder().api("cudaStreamBeginCapture", 0, 1)
    for i in range(20):
        b.api("cudaLaunchKernel", 5 + i, 0.5, correlation=50 + i)
    b.api("cudaStreamEndCapture", 30, 1)
    b.rows += steady().rows
    report = report_of(b)
    assert "graph-capture" in ids(report)
    assert "device-records-incomplete" not in ids(report)


def test_a_replay_with_fewer_kernels_than_its_twin_is_incomplete(report_of: Report) -> None:
    b = TraceBuilder()
    for launch, kernels in enumerate((20, 20, 12)):
        b.api("cudaGraphLaunch", 1000 * launch, 20, correlation=900 + launch)
        for i in range(kernels):
            b.kernel("node", 1000 * launch + 30 + 10 * i, 8, correlation=900 + launch, **{"graph id": 5})
    assert "1 of 3 graph launches" in text(report_of(b), "graph-kernels-missing")


def test_rocm_streams_that_overlap_are_soft(report_of: Report) -> None:
    b = TraceBuilder()
    for i in range(4):
        b.run("Cijk_Ailk_Bljk_SB_MT64x64", (10 * i, 2), (10 * i + 5, 12), api="hipLaunchKernel")
    assert "3 activities start before an earlier one" in text(report_of(b), "soft-streams")


def test_merged_ranks_are_kept_apart(report_of: Report, tmp_path: Path) -> None:
    """Two ranks in one file, same device number, same correlation ids: no join across, a ledger each."""
    rows: list[dict[str, Any]] = []
    for rank, late in (("TP00", 0), ("TP01", 5000)):
        host, device = f"[{rank}] 83", f"[{rank}] 0"
        for i in range(3):
            launch = 100 * i + late
            rows.append(
                {
                    "ph": "X",
                    "cat": "cuda_runtime",
                    "name": "cudaLaunchKernel",
                    "pid": host,
                    "tid": 9,
                    "ts": launch,
                    "dur": 5,
                    "args": {"correlation": 7 + i},
                }
            )
            rows.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": device, "tid": 7, "ts": launch + 10,
                         "dur": 50, "args": {"correlation": 7 + i, "stream": 7, "device": 0}})  # fmt: skip
    (tmp_path / "merged.json").write_text(json.dumps({"traceEvents": rows}))
    from analyze.report import build_report

    report = build_report(Trace.load(tmp_path / "merged.json"))
    assert [(d.process, d.id, d.window_ns, d.busy_ns) for d in report.measures.devices] == [
        ("TP00", 0, 250 * US, 150 * US), ("TP01", 0, 250 * US, 150 * US),
    ]  # fmt: skip
    assert report.measures.launches.latency_ns is not None
    assert report.measures.launches.latency_ns.max_ns == 10 * US


def test_views_of_work_are_no_work(report_of: Report) -> None:
    """Synchronisation rows, events, counters, GPU ranges, overhead: none of them is busy time."""
    b = steady(10)
    before = report_of(b)["devices"][0]["busy_ns"]
    views = (
        "cuda_sync cuda_event gpu_user_annotation gpu_user_Annotation cuda_profiler_range overhead Trace mtia_counters"
    )
    for cat in (*views.split(), "a_category_of_tomorrow"):
        b.row(cat, "something", 900, 5000, pid=0, tid=7, device=0, stream=7)
    report = report_of(b)
    assert report["devices"][0]["busy_ns"] == before
    assert "'a_category_of_tomorrow' (1)" in text(report, "unknown-category")


def test_the_profilers_own_cost_is_its_own(report_of: Report) -> None:
    """An Activity Buffer Request of 30 us inside 85 us of host time; the program's own overhead rows are not taken out.

    device  |====|                                     |====|     1010..1060, 1200..1250
    host               [op 1080 ................ 1195] [1190 launch 1195]
    cost                    [1100..1130 profiler] [1140..1150 lazy loading]
    """
    b = TraceBuilder().run("k", (1000, 5), (1010, 50)).op("aten::mm", 1080, 115)
    b.overhead("Activity Buffer Request", 1100, 30).overhead("Lazy Function Loading", 1140, 10)
    b.run("k", (1190, 5), (1200, 50))
    idle = {k: v // US for k, v in report_of(b)["devices"][0]["idle"].items() if v}
    assert idle == {
        "host_other_ns": 20, "profiler_ns": 30, "host_op_ns": 80, "launch_call_ns": 5, "launch_delay_ns": 5,
    }  # fmt: skip


def test_crossing_ranges_and_open_frames_crash_nothing(report_of: Report) -> None:
    b = steady(5).op("a", 1000, 100).op("b", 1050, 100).op("c", 1060, 10_000).frame("f.py(1): g", 1000, 9_000)
    b.frame("f.py(2): h", 1500, 90_000).step(1, 1000, 300).step(2, 1290, 300)
    assert len(report_of(b)["steps"]) == 2


def test_torch_npu_is_named(tmp_path: Path) -> None:
    rows = [{"ph": "M", "name": "process_name", "pid": 4, "args": {"name": "Ascend Hardware"}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "1715000000123456.789"},
            {"ph": "X", "name": "MatMul", "pid": 4, "tid": 2, "ts": "1715000000123480.001", "dur": 2.34,
             "args": {"Task Type": "AI_CORE", "Stream Id": 2}}]  # fmt: skip
    (tmp_path / "trace_view.json").write_text(json.dumps(rows))
    with pytest.raises(NotATraceError, match="torch_npu"):
        Trace.load(tmp_path / "trace_view.json")


@pytest.mark.parametrize("content", ["[[1, 2, 3], [4, 5, 6]]", '["a"]', "[1]", "[null]"])
def test_lists_of_anything_else(content: str, tmp_path: Path) -> None:
    """A memory timeline is a list of lists."""
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(NotATraceError):
        Trace.load(tmp_path / "t.json")


def test_one_endless_event_is_refused_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from analyze.trace import pieces

    monkeypatch.setattr(pieces, "EVENT_LIMIT_BYTES", 1 << 22)
    (tmp_path / "t.json").write_text('{"traceEvents": [{"name": "' + "x" * (8 << 20) + '"}]}')
    with pytest.raises(DamagedTraceError, match="without an end of an event"):
        Trace.load(tmp_path / "t.json")
