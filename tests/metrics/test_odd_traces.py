"""Every measure survives rows that make no sense together, and its sums still agree."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analyze.report import build_report, render
from analyze.trace import Trace
from tests.builder import TraceBuilder

KERNELS = (
    "ampere_sgemm_128x64_tn",
    "no_such_kernel",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
    "ncclKernel_AllReduce_RING_LL_Sum_float",
)
OPS = ("aten::mm", "aten::copy_", "aten::to", "aten::_to_copy", "aten::conv2d", "aten::linear", "")
FRAMES = ("nn.Module: Attention_0", "nn.Module: Block", "model.py(1): forward")
DIMS = ([[4, 4], [4, 4]], [], "x", None, [[[1, 2], [3]], []], [[-1]], [["a"]])
TYPES = (["float", "float"], [], None, "q", ["c10::Half"])
VALUES = ([], ["", "[1, 1]"], 3)


def odd_trace(seed: int) -> TraceBuilder:
    r = random.Random(seed)
    b = TraceBuilder().run(KERNELS[0], (0, 1), (2, 3))
    for _ in range(r.randint(0, 14)):
        start, dur, tid = r.randint(0, 200), r.randint(0, 60), r.choice([1, 2])
        match r.choice(("op", "op", "range", "frame", "run", "run")):
            case "op":
                shapes = {
                    "Input Dims": r.choice(DIMS),
                    "Input type": r.choice(TYPES),
                    "Concrete Inputs": r.choice(VALUES),
                }
                b.op(r.choice(OPS), start, dur, tid=tid, **(shapes if r.random() < 0.6 else {}))
            case "range":
                b.annotation(r.choice(["ProfilerStep#1", "forward"]), start, dur, tid=tid)
            case "frame":
                b.frame(r.choice(FRAMES), start, dur, tid=tid)
            case _:
                kernel = start + r.randint(0, 100), r.choice([0, 5, 30])
                cat = r.choice(["kernel", "gpu_memcpy"])
                b.run(r.choice(KERNELS), (start, r.randint(0, 10)), kernel, tid=tid, stream=r.choice([7, 8]), cat=cat)
    return b


@pytest.mark.parametrize("seed", range(60))
def test_sums_agree(seed: int, tmp_path: Path) -> None:
    report = build_report(Trace.load(odd_trace(seed).write(tmp_path / "trace.json")))
    measures = report.measures
    total = sum(d.activity_sum_ns for d in measures.devices)
    purpose, host = measures.op_categories, measures.ops
    assert purpose.total_ns == host.device_ns == sum(c.sum_ns for c in purpose.categories) == total
    assert sum(op.self_device_ns for op in host.ops) == host.self_device_ns <= total
    assert all(op.self_device_ns <= op.total_device_ns <= total for op in host.ops if op.calls == 1)
    assert sum(c.sum_ns for c in measures.categories) == total
    assert measures.fusion.chain_ns <= total
    assert sum(m.self_device_ns for m in measures.modules) <= total
    for form in ("terminal", "md", "json"):
        assert render(report, form)
