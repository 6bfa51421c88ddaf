"""Ledgers step by step: worked by hand, and their sum on real traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder

US = 1000
Made = Callable[..., dict[str, Any]]


def test_each_step_has_what_it_launched(report_of: Made) -> None:
    """The kernel of step 0 runs on into step 1; the gap before a kernel counts for the step that launched it.

    host   |step 0         |step 1                      |      0..100, 100..400
            ^10 ^20          ^110  [sync 130..260] ^270
    GPU        |kkkkkkkkkkkkkk|cc|                  |kk|       20..120 (step 0), 130..140 copy, 290..310 (step 1)
    """
    b = TraceBuilder().step(0, 0, 100).step(1, 100, 300)
    b.run("gemm_tile_a", (10, 5), (20, 100))
    b.run("Memcpy HtoD (Pinned -> Device)", (110, 5), (130, 10), cat="gpu_memcpy", api="cudaMemcpyAsync")
    b.api("cudaStreamSynchronize", 130, 130)
    b.run("gemm_tile_a", (270, 10), (290, 20))
    report = report_of(b)
    zero, one = report["step_ledgers"]
    assert (zero["name"], one["name"]) == ("ProfilerStep#0", "ProfilerStep#1")
    assert (zero["computation_ns"], one["computation_ns"], one["exposed_copy_ns"]) == (100 * US, 20 * US, 10 * US)
    assert sum(zero["idle"].values()) == 0
    assert sum(one["idle"].values()) == (10 + 150) * US
    assert one["idle"]["device_queue_ns"] == 10 * US
    assert one["idle"]["host_sync_ns"] == 120 * US
    assert (one["blocking_calls"], one["blocked_ns"], one["exposed_sync_ns"]) == (1, 130 * US, 130 * US)
    assert (zero["launches"], one["launches"]) == (1, 2)
    assert (zero["launch_latency_p50_ns"], one["launch_latency_p50_ns"]) == (10 * US, 20 * US)
    assert one["categories"] == {"gemm": 20 * US, "memcpy": 10 * US}
    gemm = next(work for work in report["activity_times"] if work["name"] == "gemm_tile_a")
    assert (gemm["count"], gemm["step_count"], gemm["step_sum_ns"]) == (2, 2, 120 * US)


def test_steps_add_up_to_the_window_where_they_launched_all_of_it(shared: Path) -> None:
    path = shared / "traces" / "a100_training_control.json.gz"
    report = build_report(Trace.load(path)).as_json()
    (device,) = report["devices"]
    ledgers = report["step_ledgers"]
    for part in ("computation_ns", "exposed_communication_ns", "exposed_copy_ns", "exposed_sync_ns"):
        assert sum(ledger[part] for ledger in ledgers) == device[part], part
    for part, ns in device["idle"].items():
        assert sum(ledger["idle"][part] for ledger in ledgers) == ns, part
    assert sum(ledger["blocked_ns"] for ledger in ledgers) == report["blocking_calls"]["blocked_ns"]
    assert json.dumps(report["activity_times"])


def test_no_steps_no_ledgers(report_of: Made) -> None:
    assert report_of(TraceBuilder().run("k", (0, 5), (10, 10)))["step_ledgers"] == []
    assert report_of(TraceBuilder().step(0, 0, 100).op("aten::mm", 10, 10))["step_ledgers"] == []
