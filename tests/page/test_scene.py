"""What the page's script gets to draw, on timelines small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyze.findings.states import window_states
from analyze.metrics.device_time import headline
from analyze.ranks import Job
from analyze.report import build_report
from analyze.report.axis import series
from analyze.report.html import lanes
from analyze.report.html.columns import deltas
from analyze.report.html.memory_view import HEIGHT, memory_scene, memory_views
from analyze.report.html.ranks_view import heat_map, ranks_scene
from analyze.report.html.roofline import _Axis, roofline_view
from analyze.report.html.scene import build_scene
from analyze.report.html.slices import merge_runs, merge_to
from analyze.report.html.strip import HEIGHT as STRIP_HEIGHT
from analyze.report.html.strip import step_columns
from analyze.snapshot import Snapshot, measure_snapshot
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.page.conftest import lesson

US = 1000


def scene_of(trace: Trace, **wish: Any) -> dict[str, Any]:
    report = build_report(trace, **wish)
    scene = build_scene(report)
    assert scene is not None
    return scene.content


def sums(values: list[int]) -> list[int]:
    return [int(value) for value in np.cumsum(values)]


def test_slices_have_times_names_and_launches(load: Callable[[TraceBuilder], Trace]) -> None:
    scene = scene_of(load(lesson()))
    (device,) = scene["devices"]
    (stream,) = device["streams"]
    names = scene["names"]
    assert sums(stream["start"]) == [100 * US, 300 * US, 700 * US, 850 * US]
    assert stream["dur"] == [200 * US, 200 * US, 100 * US, 100 * US]
    assert [names[i].split("<")[0] for i in stream["name"]][::2] == ["ampere_sgemm_128x64_tn"] * 2
    assert [scene["categories"][i]["id"] for i in stream["category"]] == ["gemm", "elementwise", "gemm", "memcpy"]
    assert stream["lag"] == [80 * US, 210 * US, 50 * US, 145 * US]
    assert stream["call"] == [20 * US, 20 * US, 30 * US, 20 * US]
    assert names[stream["shape"][0]].replace(" ", "") == "[[64,64],[64,64]]"
    assert stream["shape"][1] == -1
    assert scene["window"] == [100 * US, 950 * US]


def test_gaps_say_who_owns_them(load: Callable[[TraceBuilder], Trace]) -> None:
    """500 to 700: 150 before the call, 30 inside it, 20 until the kernel; 800 to 850: the copy was launched before."""
    scene = scene_of(load(lesson()))
    gaps = scene["devices"][0]["gaps"]
    states = [one["id"] for one in scene["states"]]
    assert sums(gaps["start"]) == [500 * US, 800 * US]
    assert gaps["dur"] == [200 * US, 50 * US]
    assert [states[i] for i in gaps["state"]] == ["launch-bound", "kernel-gap"]
    assert gaps["launch"] == [150 * US, -95 * US]
    assert gaps["parts"] == {"launch-bound": [200 * US, 0], "kernel-gap": [0, 50 * US]}


@pytest.mark.parametrize("name", ["h100_owlv2_large", "a100_training_control", "mi300_resnet_training", "a100_triton"])
def test_gaps_add_up_to_the_ledger(name: str, shared: Path) -> None:
    report = build_report(Trace.load(shared / "traces" / f"{name}.json.gz"))
    scene = build_scene(report)
    device = headline(report.measures.devices)
    assert scene is not None
    assert device is not None
    mine = next(one for one in scene.content["devices"] if one["label"] == device.label)
    idle = {state.id: state.ns for state in window_states(device) if state.idle}
    assert {key: sum(mine["gaps"]["parts"].get(key, [0])) for key in idle} == idle
    assert sum(mine["gaps"]["dur"]) == device.idle_ns
    linked = sum(scene.content["stacks"]["device"])
    assert linked == report.measures.ops.self_device_ns


def test_queue_depth_counts_what_was_launched_and_has_not_begun(load: Callable[[TraceBuilder], Trace]) -> None:
    """Launched at 20, 90, 650, 705; begun at 100, 300, 700, 850."""
    queue = scene_of(load(lesson()))["devices"][0]["queue"]
    times = [time // US for time in sums(queue["time"])]
    assert list(zip(times, sums(queue["value"]), strict=True)) == [
        (20, 1), (90, 2), (100, 1), (300, 0), (650, 1), (700, 0), (705, 1), (850, 0)
    ]  # fmt: skip


def test_many_changes_keep_the_largest_of_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "_POINTS", 4)
    times, values = np.arange(16, dtype=np.int64) * 10, np.array([0, 3, 0, 0, 9, 0, 0, 0, 1, 1, 1, 2, 0, 0, 0, 7])
    reduced = series._reduced(times, values)
    assert reduced.part_ns == 38
    assert reduced.value.tolist() == [3, 9, 2, 7]


def test_a_later_value_of_one_instant_counts() -> None:
    reduced = series._reduced(np.array([5, 5, 7]), np.array([1, 4, 2]))
    assert reduced.time_ns.tolist() == [5, 7]
    assert reduced.value.tolist() == [4, 2]


def test_short_slices_that_follow_closely_become_one() -> None:
    """0-2, 3-5 and 6-7 in one run; 50-52 far away in another; the long one between stays itself."""
    start, end = np.array([0, 3, 6, 10, 50]), np.array([2, 5, 7, 40, 52])
    group, none = np.zeros(5, np.int64), np.empty(0, np.int64)

    merged = merge_runs(start, end, group, np.flatnonzero(end - start < 5), none, 5)
    assert merged.kept.tolist() == [3]
    assert merged.start_ns.tolist() == [0, 50]
    assert merged.end_ns.tolist() == [7, 52]
    assert merged.count.tolist() == [3, 1]


def test_slices_are_merged_only_beyond_the_budget() -> None:
    start = np.arange(100, dtype=np.int64) * 1500
    end, group, none = start + 1400, np.zeros(100, np.int64), np.empty(0, np.int64)

    def merge(limit: int) -> Any:
        return merge_runs(start, end, group, np.flatnonzero(end - start < limit), none, limit)

    assert merge_to(100, 100, merge).limit_ns == 0
    tight = merge_to(99, 100, merge)
    assert tight.limit_ns == 2000
    assert len(tight) == 1
    assert tight.count.tolist() == [100]


def test_stacks_hold_all_time_once(load: Callable[[TraceBuilder], Trace]) -> None:
    scene = scene_of(load(lesson()))
    stacks, names = scene["stacks"], scene["names"]
    parent = sums(stacks["parent"])
    assert all(up < at for at, up in enumerate(parent))
    assert sum(stacks["device"]) == 600 * US
    mm = [i for i, name in enumerate(stacks["name"]) if names[name] == "aten::mm"]
    assert sum(stacks["device"][i] for i in mm) == 300 * US
    assert sum(stacks["calls"][i] for i in mm) == 2
    tree = {names[stacks["name"][i]]: names[stacks["name"][parent[i]]] for i in range(len(parent)) if parent[i] >= 0}
    assert tree["home/me/train.py(42): step"] == "ProfilerStep*"


def test_host_lanes_have_every_call(load: Callable[[TraceBuilder], Trace]) -> None:
    scene = scene_of(load(lesson()))
    (thread,) = scene["threads"]
    assert len(thread["start"]) == 2 + 4 + 4 + 1
    assert sum(thread["dur"]) == (480 + 520 + 60 + 40 + 90 + 40 + 20 + 20 + 30 + 20 + 500) * US
    assert thread["label"] == "process 4127, thread 4127"


def test_a_page_of_a_selection_shows_its_window(load: Callable[[TraceBuilder], Trace]) -> None:
    scene = scene_of(load(lesson()), steps=(2, 3))
    assert scene["window"] == [700 * US, 950 * US]
    assert len(scene["devices"][0]["streams"][0]["start"]) == 4


def test_steps_are_as_high_as_they_are_long(load: Callable[[TraceBuilder], Trace]) -> None:
    """Step 1 launched 400 us of work; step 2 launched 200 and the gaps before it, 250."""
    columns = step_columns(build_report(load(lesson())).measures)
    assert [one.window_ns for one in columns] == [400 * US, 450 * US]
    heights = [sum(piece.height for piece in one.pieces) for one in columns]
    assert heights == [pytest.approx(STRIP_HEIGHT * 400 / 450), pytest.approx(STRIP_HEIGHT)]


def test_the_roofline_bends_at_its_ridge(shared: Path) -> None:
    measures = build_report(Trace.load(shared / "traces" / "h100_owlv2_large.json.gz")).measures
    view = roofline_view(measures)
    assert view is not None
    rates = [rate for rate in measures.roofline.rates if rate.flops and rate.size_bytes]
    assert len(view.dots) == min(len(rates), 200)
    for roof in view.roofs:
        (x0, y0), (x1, y1), (x2, y2) = (tuple(map(float, point.split(","))) for point in roof.points.split())
        assert x0 < x1 < x2
        assert y0 > y1 == y2
    for dot in view.dots:
        if dot.rate.flops_share is not None and dot.rate.flops_share < 1:
            roof = next(one for one in view.roofs if one.precision == dot.rate.precision)
            assert dot.y > roof.label_y


def test_a_logarithmic_axis() -> None:
    axis = _Axis(0, 3, 100, 400)
    assert [axis.at(value) for value in (1, 10, 100, 1000)] == pytest.approx([100, 200, 300, 400])


def test_deltas() -> None:
    assert deltas(np.array([5, 7, 4])) == [5, 2, -3]
    assert deltas(np.empty(0, np.int64)) == []


def test_bands_of_a_snapshot_add_up_to_its_peak(shared: Path) -> None:
    snapshot = Snapshot.load(shared / "snapshots" / "medium_128_training_snapshot.pickle")
    devices, _ = measure_snapshot(snapshot)
    (view,) = memory_views(snapshot, devices)
    top = max(devices[0].reserved_peak_bytes, devices[0].requested_peak_bytes)
    points = [tuple(map(float, point.split(","))) for band in view.bands for point in band.points.split()]
    highest = min(y for _, y in points)
    assert HEIGHT * (1 - devices[0].requested_peak_bytes / top) == pytest.approx(highest, abs=0.1)
    scene = memory_scene(snapshot, devices)
    assert sum(scene["stacks"]["bytes"]) == devices[0].requested_peak_bytes


@pytest.mark.parametrize(
    "case", ["01-one-allreduce", "06-all-to-all-uneven", "10-missing-rank", "13-inherited-lateness"]
)
def test_waits_of_ranks_point_to_the_last_one(case: str, shared: Path) -> None:
    job = Job.load(shared / "ranks" / "cases" / case, workers=1)
    document = job.document()
    found = ranks_scene(document)
    assert found is not None
    scene, note = found
    assert not note
    assert [device["label"] for device in scene["devices"]] == [f"rank {rank}" for rank in document["ranks"]]
    for device, (rank, figures) in zip(scene["devices"], document["ranks"].items(), strict=True):
        assert sum(device["gaps"]["dur"]) == figures["wait_ns"]
        assert len(device["streams"][0]["start"]) == figures["collectives"]
        assert int(rank) not in device["gaps"]["last"]
    heat = heat_map(document)
    assert heat is not None
    for rank, figures in document["ranks"].items():
        assert sum(ns for _, last, _, ns in heat.rows if last == int(rank)) == figures["caused_wait_ns"]


def test_a_run_of_short_kernels_has_the_category_of_most_of_its_time(
    load: Callable[[TraceBuilder], Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three short ones follow each other: an addition of 100 ns, then products of 300 and 200 ns."""
    monkeypatch.setattr(lanes, "_SLICES", 2)
    builder = TraceBuilder()
    builder.kernel("void at::native::vectorized_elementwise_kernel<4>(int)", 0, 0.1)
    builder.kernel("ampere_sgemm_128x64_tn", 0.2, 0.3).kernel("ampere_sgemm_64x64_tn", 0.6, 0.2)
    builder.kernel("ampere_sgemm_128x64_tn", 50, 10)
    scene = scene_of(load(builder))
    (stream,) = scene["devices"][0]["streams"]
    assert stream["count"] == [3, 1]
    assert stream["dur"] == [800, 10_000]
    assert [scene["categories"][i]["id"] for i in stream["category"]] == ["gemm", "gemm"]
    assert stream["name"][0] == -1
