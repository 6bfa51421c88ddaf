"""The op table equals torch's own `key_averages()`: counts, CPU time to the nanosecond, memory, FLOPs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.metrics.ops import HostSide, measure_host
from analyze.settings import OpsView
from analyze.timeline import CallTree
from analyze.timeline.attribution import attribute
from analyze.trace import Trace
from tests.builder import TraceBuilder

Figures = dict[tuple[str, bool], tuple[int, int, int, int, int]]


def host_side(trace: Trace, view: OpsView | None = None, within: tuple[int, int] | None = None) -> HostSide:
    return measure_host(trace, attribute(trace, CallTree.of(trace), trace.activities), within, view or OpsView())


def ours(host: HostSide) -> Figures:
    return {
        (op.name, op.kind == "range"): (
            op.calls,
            op.self_cpu_ns,
            op.total_cpu_ns,
            op.self_cpu_memory_bytes,
            op.cpu_memory_bytes,
        )
        for op in host.ops
    }


def theirs(profiler: Any) -> Figures:
    return {
        (event.key, bool(event.is_user_annotation)): (
            event.count,
            round(event.self_cpu_time_total * 1000),
            round(event.cpu_time_total * 1000),
            event.self_cpu_memory_usage,
            event.cpu_memory_usage,
        )
        for event in profiler.key_averages()
    }


torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("default")


def model() -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GELU(), nn.Flatten(), nn.LayerNorm(512), nn.Linear(512, 10)
    )


def infer() -> None:
    with torch.profiler.record_function("inference"), torch.inference_mode():
        model()(torch.randn(4, 3, 16, 16)).softmax(-1)
    kept = [torch.randn(1000) for _ in range(3)]
    del kept


def train() -> None:
    net, data = model(), torch.randn(4, 3, 16, 16)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(data), torch.tensor([1, 2, 3, 4])).backward()
        optimizer.step()


def in_threads() -> None:
    threads = [threading.Thread(target=infer) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    infer()


def recorded(work: Callable[[], None], path: Path, **options: Any) -> tuple[Trace, Any]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
        work()
    profiler.export_chrome_trace(str(path))
    return Trace.load(path), profiler


SCENARIOS: dict[str, tuple[Callable[[], None], dict[str, Any]]] = {
    "plain": (infer, {}),
    "shapes-and-memory": (infer, {"record_shapes": True, "profile_memory": True}),
    "stacks": (infer, {"with_stack": True, "profile_memory": True}),
    "training": (train, {"profile_memory": True}),
    "training-with-stacks": (train, {"with_stack": True, "record_shapes": True, "profile_memory": True}),
    "threads": (in_threads, {"profile_memory": True}),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_equals_key_averages(name: str, tmp_path: Path) -> None:
    work, options = SCENARIOS[name]
    if name == "threads":
        from torch._C._profiler import _ExperimentalConfig

        options = {**options, "experimental_config": _ExperimentalConfig(profile_all_threads=True)}
    trace, profiler = recorded(work, tmp_path / "trace.json", **options)
    found = ours(host_side(trace))
    assert found == theirs(profiler)
    assert len(found) > 15


def test_equals_key_averages_over_a_schedule(tmp_path: Path) -> None:
    from torch.profiler import ProfilerActivity, profile, schedule

    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3), profile_memory=True
    ) as profiler:
        for _ in range(5):
            infer()
            profiler.step()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    host = host_side(Trace.load(tmp_path / "trace.json"))
    assert ours(host) == theirs(profiler)
    assert ours(host)["ProfilerStep*", True][0] == 3


@pytest.mark.slow
def test_equals_key_averages_of_a_compiled_model(tmp_path: Path) -> None:
    net = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()))
    data = torch.randn(4, 8)
    with torch.inference_mode():
        net(data)
        trace, profiler = recorded(lambda: net(data), tmp_path / "trace.json", profile_memory=True)
    assert ours(host_side(trace)) == theirs(profiler)


def test_flops_equal_those_of_torch(tmp_path: Path) -> None:
    """Of convolutions and products; torch counts only the outermost op of each."""
    trace, profiler = recorded(infer, tmp_path / "trace.json", with_flops=True)
    reference = {event.key: event.flops for event in profiler.key_averages() if event.flops}
    found = {op.name: op.flops for op in host_side(trace).ops}
    for name in ("aten::conv2d", "aten::addmm"):
        assert found[name] == reference[name]


def test_calls_by_shape_equal_those_of_torch(tmp_path: Path) -> None:
    trace, profiler = recorded(infer, tmp_path / "trace.json", record_shapes=True)
    reference: dict[str, list[int]] = {}
    for event in profiler.key_averages(group_by_input_shape=True):
        reference.setdefault(event.key, []).append(event.count)
    found: dict[str, list[int]] = {}
    for op in host_side(trace, OpsView(by_shape=True)).ops:
        found.setdefault(op.name, []).append(op.calls)
    assert {k: sorted(v) for k, v in found.items()} == {k: sorted(v) for k, v in reference.items()}


def test_device_time_goes_to_the_launching_op(load: Callable[[TraceBuilder], Trace]) -> None:
    """
    host   linear[ addmm[ launch ] ]   range[ graph launch ]      launch without op
    """
    b = TraceBuilder().op("aten::linear", 0, 100).op("aten::addmm", 10, 80).run("sgemm", (20, 5), (200, 30))
    b.annotation("replay", 110, 50).run("a", (120, 5), (240, 10), api="cudaGraphLaunch")
    b.kernel("b", 260, 20, correlation=b.rows[-1]["args"]["correlation"]).run("c", (170, 5), (300, 7))
    host = host_side(load(b))
    times = {op.name: (op.self_device_ns, op.total_device_ns) for op in host.ops if op.kind != "api"}
    assert times == {"aten::linear": (0, 30_000), "aten::addmm": (30_000, 30_000), "replay": (30_000, 30_000)}
    assert (host.self_device_ns, host.device_ns) == (60_000, 67_000)
    assert {op.name: op.wrapper for op in host.ops if op.kind == "op"} == {"aten::linear": False, "aten::addmm": False}


@pytest.mark.parametrize(("external_id", "found"), [(7, 30_000), (101, 0)])
def test_external_ids_serve_only_where_they_are_ids_of_ops(
    external_id: int, found: int, load: Callable[[TraceBuilder], Trace]
) -> None:
    """A launch on a thread without ops; older files repeat the correlation as External id."""
    b = TraceBuilder().op("aten::mm", 0, 100, External_id=external_id)
    b.api("cudaLaunchKernel", 20, 5, correlation=101, tid=9)
    b.kernel("sgemm", 200, 30, correlation=101, External_id=external_id)
    assert next(op for op in host_side(load(b)).ops if op.name == "aten::mm").self_device_ns == found


def test_calls_that_overlap_are_siblings_and_repeated_calls_are_one(load: Callable[[TraceBuilder], Trace]) -> None:
    b = TraceBuilder().op("a", 0, 10).op("b", 5, 10).op("c", 20, 10).op("c", 21, 8).op("d", 22, 2)
    found = ours(host_side(load(b)))
    assert found["a", False][:3] == (1, 10_000, 10_000)
    assert found["b", False][:3] == (1, 10_000, 10_000)
    assert found["c", False][:3] == (1, 8_000, 10_000)


def test_sorting(load: Callable[[TraceBuilder], Trace]) -> None:
    b = TraceBuilder().op("long", 0, 100).op("often", 200, 1).op("often", 300, 1).run("k", (200, 0.5), (400, 30))
    trace = load(b)
    for key, first in (("self_cpu", "long"), ("calls", "often"), ("self_device", "often"), ("", "often")):
        assert host_side(trace, OpsView(sort=key)).ops[0].name == first
