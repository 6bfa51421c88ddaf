"""Memory from `[memory]` rows: by hand, and against torch's own arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.metrics import Measures
from analyze.metrics.memory_use import Memory
from analyze.report import build_report, render
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder

Load = Callable[[TraceBuilder], Trace]
MIB = 1 << 20


def event(
    b: TraceBuilder,
    at: float,
    size: int,
    address: int,
    *,
    total: int | None = None,
    reserved: int | None = None,
    kind: int = 1,
    device: int = 0,
    ph: str = "i",
) -> None:
    """A memory row as the native exporter (ph i) or the Python one (ph X, with a duration of no meaning) writes it."""
    args: dict[str, Any] = {"Bytes": size, "Addr": address, "Device Type": kind, "Device Id": device}
    if total is not None:
        args["Total Allocated"] = total
    if reserved is not None:
        args["Total Reserved"] = reserved
    b.row("cpu_instant_event", "[memory]", at, 7 if ph == "X" else None, ph=ph, **args)


def memory_of(trace: Trace, wish: Scope | None = None) -> Memory:
    return Measures(trace, Definitions(), wish or Scope()).memory


def scene(ph: str = "i") -> TraceBuilder:
    """100 MiB are there before; two steps; what `mm` makes outlives both.

    step 1: mm +30 (130), gelu +50 (180: the peak), -50      step 2: gelu +40 (170), -40, then -20 from before (110)
    """
    b = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
    b.op("aten::mm", 10, 10).op("aten::gelu", 30, 30).op("aten::gelu", 110, 30)
    rows = ((15, 30, 1), (35, 50, 2), (90, -50, 2), (115, 40, 3), (160, -40, 3), (170, -20, 99))
    total = 100
    for at, size, address in rows:
        total += size
        event(b, at, size * MIB, address, total=total * MIB, reserved=256 * MIB, ph=ph)
    return b


@pytest.mark.parametrize("ph", ["i", "X"])
def test_peak_owners_and_churn(load: Load, ph: str) -> None:
    (use,) = memory_of(load(scene(ph))).devices
    assert (use.label, use.level_known, use.start_bytes) == ("GPU 0", True, 100 * MIB)
    assert (use.peak_bytes, use.peak_after_ns) == (180 * MIB, 20_000)
    assert (use.peak_step, use.peak_op) == ("ProfilerStep#1", "aten::gelu")
    assert use.end_bytes == 110 * MIB
    assert (use.reserved_peak_bytes, use.unmade_peak_bytes) == (256 * MIB, 100 * MIB)
    assert [(m.op, m.size_bytes, m.count) for m in use.alive_at_peak] == [
        ("aten::gelu", 50 * MIB, 1),
        ("aten::mm", 30 * MIB, 1),
    ]
    assert [(a.op, a.outlives) for a in use.largest_at_peak] == [("aten::gelu", False), ("aten::mm", True)]
    assert [(m.op, m.size_bytes) for m in use.outliving] == [("aten::mm", 30 * MIB)]
    assert [(c.step, c.allocated_bytes, c.freed_bytes) for c in use.churn] == [
        ("ProfilerStep#1", 80 * MIB, 50 * MIB),
        ("ProfilerStep#2", 40 * MIB, 60 * MIB),
    ]
    assert (use.allocated_points[0], max(use.allocated_points), use.allocated_points[-1]) == (
        100 * MIB,
        180 * MIB,
        110 * MIB,
    )


def test_the_peak_is_dated_from_the_first_memory_event(load: Load) -> None:
    """Rows begin at 15 us of a recording that began at 0; the peak at 35 us is 20 us after the first one."""
    assert "20.0 µs after the first memory event in ProfilerStep#1, aten::gelu" in render(
        build_report(load(scene())), "json"
    )


def test_several_devices_are_kept_apart(load: Load) -> None:
    """The same address on two devices and on the host is three allocations."""
    b = scene()
    event(b, 20, 64, 1, total=1064, device=1)
    event(b, 25, 32, 1, total=32, kind=0, device=-1)
    event(b, 26, -32, 1, total=0, kind=0, device=-1)
    uses = {use.label: use for use in memory_of(load(b)).devices}
    assert list(uses) == ["GPU 0", "GPU 1", "CPU"]
    assert (uses["GPU 1"].peak_bytes, uses["GPU 1"].outliving_bytes) == (1064, 64)
    assert (uses["CPU"].peak_bytes, uses["CPU"].level_known, uses["CPU"].outliving) == (32, False, ())
    assert uses["GPU 0"].peak_bytes == 180 * MIB


def test_an_unknown_level_is_said(load: Load) -> None:
    """Old files have no totals: what is freed without having been made shows how much there was at least."""
    b = TraceBuilder().op("aten::mm", 5, 10)
    event(b, 10, 40, 1)
    event(b, 20, -100, 2)
    event(b, 30, 10, 3)
    trace = load(b)
    (use,) = memory_of(trace).devices
    assert (use.level_known, use.start_bytes, use.peak_bytes, use.end_bytes) == (False, 60, 100, 10)
    from analyze.metrics.memory import section

    assert "level at the start is unknown" in section(memory_of(trace)).blocks[0].text  # type: ignore[union-attr]


def test_missing_rows_are_said(load: Load) -> None:
    b = TraceBuilder()
    event(b, 10, 40, 1, total=140)
    event(b, 20, 10, 2, total=950)
    found = memory_of(load(b))
    (use,) = found.devices
    assert (use.jumps, use.peak_bytes, use.unmade_peak_bytes) == (1, 950, 900)
    assert [notice.id for notice in found.notices()] == ["memory-rows-missing"]


def test_a_peak_before_the_first_event(load: Load) -> None:
    b = TraceBuilder()
    event(b, 10, -40, 1, total=60)
    (use,) = memory_of(load(b)).devices
    assert (use.peak_bytes, use.unmade_peak_bytes, use.alive_at_peak, use.end_bytes) == (100, 100, (), 60)


def test_a_total_of_the_host_below_the_size_starts_at_nothing(load: Load) -> None:
    """40 bytes that leave a total of 10: the total lacks some, and nothing is not less than nothing."""
    b = TraceBuilder()
    event(b, 10, 40, 1, total=10, kind=0)
    (use,) = memory_of(load(b)).devices
    assert (use.start_bytes, use.end_bytes, use.peak_bytes) == (0, 10, 10)


def test_a_selection_takes_its_own_time(load: Load) -> None:
    (use,) = memory_of(load(scene()), Scope(steps=(2, 3))).devices
    assert (use.events, use.start_bytes, use.peak_bytes) == (3, 130 * MIB, 170 * MIB)


def test_parameters_and_activations_where_both_can_be_told(load: Load) -> None:
    b = scene()
    b.metadata["gpuledger"] = {"precision": "fp16", "parameter_count": 10 * MIB}
    (use,) = memory_of(load(b)).devices
    assert (use.parameters_bytes, use.activations_bytes) == (20 * MIB, 80 * MIB)
    b.metadata["gpuledger"] = {"precision": "fp32", "parameter_count": 100 * MIB}
    (use,) = memory_of(load(b)).devices
    assert use.activations_bytes is None, "400 MiB of parameters cannot lie in 100 MiB"


def test_without_rows_it_is_not_measured(load: Load) -> None:
    found = memory_of(load(TraceBuilder().op("aten::mm", 0, 5)))
    assert [missing.id for missing in found.not_measured()] == ["memory"]


@pytest.mark.parametrize("python_export", [False, True])
def test_torch_agrees(tmp_path: Path, python_export: bool) -> None:
    """The running sum equals torch's own total, and each op's bytes equal `key_averages()`."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8))
    batch = torch.ones(16, 64)
    model(batch)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        for _ in range(3):
            model(batch).sum().backward()
    path = tmp_path / "trace.json"
    try:
        recorded.export_chrome_trace(str(path), **({"use_python_export": True} if python_export else {}))
    except TypeError:
        pytest.skip("this torch has one exporter only")
    rows = [row["args"] for row in json.loads(path.read_text())["traceEvents"] if row["name"] == "[memory]"]
    trace = Trace.load(path)
    measures = Measures(trace, Definitions(), Scope())
    (use,) = measures.memory.devices
    assert use.peak_bytes == max(row["Total Allocated"] for row in rows)
    assert use.end_bytes == rows[-1]["Total Allocated"]
    assert use.end_bytes - use.start_bytes == sum(row["Bytes"] for row in rows)
    assert use.jumps == 0
    assert 0 <= use.unmade_peak_bytes <= use.start_bytes, "torch keeps counting what an earlier recording made"
    told = {op.name: (op.self_cpu_memory_bytes, op.cpu_memory_bytes) for op in measures.ops.ops}
    expected = {one.key: (one.self_cpu_memory_usage, one.cpu_memory_usage) for one in recorded.key_averages()}
    assert {name: told[name] for name, bytes_ in expected.items() if any(bytes_)} == {
        name: bytes_ for name, bytes_ in expected.items() if any(bytes_)
    }


def test_a_real_trace_of_two_devices(shared: Path) -> None:
    found = memory_of(Trace.load(shared / "traces" / "v100_training_memory_events.json.gz"))
    use = found.devices[0]
    rows = Trace.load(shared / "traces" / "v100_training_memory_events.json.gz").memory.filter(device_type=1)
    assert use.peak_bytes == rows["allocated_bytes"].max()
    assert sum(made.size_bytes for made in use.alive_at_peak) + use.unmade_peak_bytes == use.peak_bytes
