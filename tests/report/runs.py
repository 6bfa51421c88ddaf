"""Runs of one GEMM per step, for comparisons and gates: every figure follows from the numbers below.

host   |step 0 ..launch      |step 1 ..launch      |          a step begins every `wall` us
GPU              |k0|              |k1|                       20 us after its step, 8 us after its launch call
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analyze.compare import Comparable, comparable_of
from analyze.report import Report, build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder

SGEMM, TF32, FP16 = (
    "ampere_sgemm_128x64_tn",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_tn",
    "ampere_fp16_s16816gemm_fp16_128x64",
)
MM = {"Input_Dims": [[64, 64], [64, 64]], "Input_type": ["float", "float"]}
US = 1000


def run(
    kernels: Sequence[float], walls: Sequence[float] | None = None, name: str = SGEMM, gpu: str = "Example GPU"
) -> TraceBuilder:
    """Steps of these walls, each with a kernel of so many microseconds."""
    builder, start = TraceBuilder(), 0.0
    builder.metadata["deviceProperties"][0]["name"] = gpu
    for i, (kernel, wall) in enumerate(zip(kernels, walls or [1000] * len(kernels), strict=True)):
        builder.step(i, start, wall)
        args = {"Input Dims": MM["Input_Dims"], "Input type": MM["Input_type"]}
        builder.row("cpu_op", "aten::mm", start + 10, 20, **args)
        builder.run(name, (start + 12, 5), (start + 20, kernel))
        start += wall
    return builder


def report(builder: TraceBuilder, path: Path) -> Report:
    return build_report(Trace.load(builder.write(path)))


def subject(builder: TraceBuilder, path: Path) -> Comparable:
    return comparable_of(report(builder, path))


def edited(made: Report, path: Path, **keys: Any) -> Path:
    """The JSON report with some keys replaced."""
    path.write_text(json.dumps({**made.as_json(), **keys}, default=str))
    return path
