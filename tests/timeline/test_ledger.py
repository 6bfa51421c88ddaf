"""The ledger against the brute-force oracle on random timelines, and the properties that always hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyze.metrics import DeviceTime, Measures
from analyze.settings import Definitions
from analyze.timeline import IDLE_PARTS, Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.oracles.ledger import Row, ledger

KERNEL_NAMES = {
    "kernel": "gemm_tile",
    "collective": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "memset": "Memset (Device)",
}
COPIES = ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)", "Memcpy DtoD (Device -> Device)")
CALLS = {
    "kernel": "cudaLaunchKernel",
    "collective": "cudaLaunchKernelExC",
    "memset": "cudaMemsetAsync",
    "memcpy": "cudaMemcpyAsync",
}
FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def random_rows(seed: int) -> list[Row]:
    """A timeline with overlaps, zero lengths, streams, devices, graphs, missing launches, nested calls and ops."""
    r = random.Random(seed)
    rows: list[Row] = []
    for correlation in range(1, r.randint(2, 14)):
        kind = r.choice(("kernel", "kernel", "collective", "memcpy", "memset"))
        thread, start = r.randint(0, 1), r.randint(0, 300)
        call = r.randint(0, 25)
        if r.random() < 0.85:
            rows.append(Row("api", CALLS[kind], start, call, thread, correlation=correlation))
        for _ in range(r.choice((1, 1, 1, 3))):
            name = r.choice(COPIES) if kind == "memcpy" else KERNEL_NAMES[kind]
            begin = start + r.randint(-3, 60)
            rows.append(
                Row(
                    kind,
                    name,
                    max(begin, 1),
                    r.choice((0, 1, 5, 20)),
                    device=r.randint(0, 1),
                    stream=r.choice((7, 20)),
                    correlation=correlation,
                )
            )
    for _ in range(r.randint(0, 8)):
        kind, name = r.choice(
            (
                ("op", "aten::mm"),
                ("op", "enumerate(DataLoader)#x"),
                ("range", "my dataloader"),
                ("range", "other"),
                ("api", "cudaDeviceSynchronize"),
                ("api", "cudaMalloc"),
                ("overhead", "Activity Buffer Request"),
                ("overhead", "Buffer Flush"),
            )
        )
        rows.append(Row(kind, name, r.randint(0, 320), r.randint(0, 60), r.randint(0, 1)))
    r.shuffle(rows)
    return rows


def build(rows: list[Row]) -> TraceBuilder:
    b = TraceBuilder()
    cats = {
        "api": "cuda_runtime",
        "op": "cpu_op",
        "range": "user_annotation",
        "overhead": "overhead",
        "collective": "kernel",
        "memcpy": "gpu_memcpy",
        "memset": "gpu_memset",
    }
    for row in rows:
        cat = cats.get(row.kind, row.kind)
        us = (row.start, row.dur)
        if row.kind in ("kernel", "collective", "memcpy", "memset"):
            b.kernel(row.name, *us, correlation=row.correlation, stream=row.stream, device=row.device, cat=cat)
        else:
            b.row(cat, row.name, *us, tid=row.thread, **({"correlation": row.correlation} if row.kind == "api" else {}))
    return b


def devices(trace: Trace) -> dict[int, DeviceTime]:
    return {d.id: d for d in Measures(trace, Definitions(), Scope()).devices}


def assert_same(device: DeviceTime | None, rows: list[Row], number: int) -> None:
    expected = ledger(rows, number)
    if device is None:
        assert expected.window == 0
        return
    assert device.window_ns == expected.window * 1000
    assert device.computation_ns == expected.computation * 1000
    assert device.exposed_communication_ns == expected.communication * 1000
    assert device.exposed_copy_ns == expected.copy * 1000
    assert {k: v for k, v in device.idle.items() if v} == {k: v * 1000 for k, v in expected.idle.items() if v}


@pytest.mark.parametrize("seed", range(150))
def test_equals_the_oracle(seed: int, load: Callable[[TraceBuilder], Trace]) -> None:
    rows = random_rows(seed)
    found = devices(load(build(rows)))
    for number in (0, 1):
        assert_same(found.get(number), rows, number)


@FAST
@given(st.integers(1000, 10**9))
def test_equals_the_oracle_on_new_timelines_each_run(tmp_path: Path, seed: int) -> None:
    rows = random_rows(seed)
    found = devices(Trace.load(build(rows).write(tmp_path / "t.json")))
    for number in (0, 1):
        assert_same(found.get(number), rows, number)


def totals(trace: Trace) -> dict[int, dict[str, Any]]:
    return {
        number: {
            "window": d.window_ns,
            "busy": d.busy_ns,
            "idle": d.idle,
            "sync": d.exposed_sync_ns,
            "computation": d.computation_ns,
            "copy": d.exposed_copy_ns,
            "concurrent": d.concurrent_ns,
        }
        for number, d in devices(trace).items()
    }


@FAST
@given(seed=st.integers(0, 10**6), change=st.sampled_from(("shift", "reorder", "rename", "split", "annotate")))
def test_nothing_else_changes_the_totals(tmp_path: Path, seed: int, change: str) -> None:
    rows = random_rows(seed)
    before = totals(Trace.load(build(rows).write(tmp_path / "a.json")))
    changed = build(rows)
    if change == "shift":
        changed.offset_us += 12_345
    elif change == "reorder":
        distinct = {r.correlation for r in rows if r.kind == "api"}
        assert len(distinct - {0}) == sum(1 for r in rows if r.kind == "api" and r.correlation)
        changed = build(random.Random(seed + 1).sample(rows, len(rows)))
    elif change == "rename":
        changed = build([Row(**{**row.__dict__, "stream": row.stream + 100}) for row in rows])
    elif change == "annotate":
        changed.annotation("forward", 0, 300).row("ac2g", "x", 5, None, ph="C", value=1).row("brand_new", "y", 5, 200)
    elif change == "split":
        halves = [
            half
            for row in rows
            for half in (
                (
                    Row(**{**row.__dict__, "dur": row.dur // 2}),
                    Row(**{**row.__dict__, "start": row.start + row.dur // 2, "dur": row.dur - row.dur // 2}),
                )
                if row.kind == "kernel" and row.dur > 1
                else (row,)
            )
        ]
        changed = build(halves)
    after = totals(Trace.load(changed.write(tmp_path / "b.json")))
    assert after == before


def test_the_reference_ledgers_to_the_nanosecond(shared: Path) -> None:
    """All 22 traces with devices: every key of the reference, 0 ns off; the two without devices have none."""
    import json

    reference = json.loads((shared / "traces" / "ledger.json").read_text())
    assert sum(bool(v) for v in reference.values()) == 22
    for name, expected in reference.items():
        found = devices(Trace.load(shared / "traces" / name))
        assert sorted(str(n) for n in found) == sorted(expected), name
        for number, figures in expected.items():
            device = found[int(number)]
            assert sorted(device.idle) == sorted(IDLE_PARTS)
            for key, value in figures.items():
                got = getattr(device, key)
                got = {k: v for k, v in got.items() if v} if key == "idle" else got
                assert got == value, (name, number, key)
