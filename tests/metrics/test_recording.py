"""What capture stored is shown, set against the profiled time, and believed no further than it makes sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analyze.report import build_report, render
from analyze.trace import Trace
from analyze.trace.recorded import read_recorded
from tests.builder import TraceBuilder

BLOCK: dict[str, Any] = {
    "model": "vit_tiny_patch16_224", "batch_size": 64, "precision": "fp16", "amp": True, "compile": False,
    "cuda_graph": True, "versions": {"torch": "2.11.0"}, "output_finite": False, "load": {"busy": True},
    "latency": {"p50_ns": 9_000_000, "request_p50_ns": 10_000_000, "throughput_samples_per_s": 7111.1,
                "host_bound": True},
    "warmup": {"steady": False, "reason": "the cap of 200 iterations was reached"},
    "profile": {"profiled_wall_ns": 19_000_000, "steps": 1},
    "gpu_state": {"recorded": True, "unstable": ["the SM clock fell from 1,965 to 1,580 MHz"]},
}  # fmt: skip


def build(block: object) -> TraceBuilder:
    """Launches 1 ms apart, 100 us of work each: the host is what the device waits for."""
    b = TraceBuilder()
    for i in range(20):
        b.op("aten::mm", 1000 * i, 900).run("gemm_tile", (1000 * i + 890, 5), (1000 * i + 900, 100))
    b.metadata["gpuledger"] = block
    return b


def test_what_was_asked_for_and_what_the_profiler_did(load: Callable[[TraceBuilder], Trace]) -> None:
    """Profiled 19 ms against 10 ms: 1.9x, 9 ms too much at most, of a window of 19.1 ms (47.1 %)."""
    report = build_report(load(build(BLOCK)))
    text = render(report, "md")
    assert (
        "vit\\_tiny\\_patch16\\_224" in text or "vit_tiny_patch16_224, batch 64, fp16 by autocast, CUDA graph" in text
    )
    assert "torch 2.11.0" in text
    assert "p50 9.00 ms without the profiler, 7,111 samples/s; host-bound" in text
    assert "19.0 ms a forward, 10.0 ms without the profiler: 1.90x" in text
    notices = {n.id: n.text for n in report.measures.notices}
    assert notices["profiler-stretch"] == (
        "The profiler stretched this forward 1.9x; idle time caused by the host is overstated by up to 9.00 ms, "
        "47.1% of the window."
    )
    assert "1,965 to 1,580 MHz" in notices["clocks"]
    assert "the cap of 200 iterations was reached" in notices["not-steady"]
    assert {"busy-machine", "output-not-finite"} <= set(notices)
    assert "profiler-inflation" not in notices, "the measured stretch replaces the guess from the flags"


def test_a_recorded_loop_speaks_of_steps(load: Callable[[TraceBuilder], Trace]) -> None:
    report = build_report(load(build({**BLOCK, "unit": "step"})))
    text = render(report, "md")
    assert "19.0 ms a step, 10.0 ms without the profiler: 1.90x" in text
    assert "**Step**: p50 9.00 ms" in text
    assert "a forward" not in text
    assert "stretched this step 1.9x" in text


@pytest.mark.parametrize("junk", [
    {}, [], "x", None, 7, {"latency": 5, "profile": [], "gpu_state": "y", "versions": None, "warmup": 1, "load": []},
    {"model": 5, "batch_size": "64", "precision": ["fp16"], "amp": 1},
    {"latency": {"p50_ns": -1, "request_p50_ns": 2**80, "throughput_samples_per_s": "fast"},
     "profile": {"profiled_wall_ns": True, "steps": 0}, "gpu_state": {"unstable": [1, None, "x" * 10_000]}},
    {**BLOCK, "model": "\x1b[31m<script>|`" + "x" * 10_000},
])  # fmt: skip
def test_a_strangers_block_of_any_shape_is_no_danger(junk: object, load: Callable[[TraceBuilder], Trace]) -> None:
    report = build_report(load(build(junk)))
    for form in ("terminal", "md", "json"):
        text = render(report, form)
        assert "x" * 200 not in text
        if form != "json":
            assert "\x1b" not in text
    assert "<script>" not in render(report, "md")


def test_no_block() -> None:
    assert read_recorded(None) is None
