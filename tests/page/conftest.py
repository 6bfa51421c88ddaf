"""Pages to look at, and a browser to look at them with, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from analyze.report import build_report
from analyze.report.html.render import render
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.page.browser import Browser, chromium, find_chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium; tests that need it are skipped where it is not installed."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with chromium(program) as found:
        yield found


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[[TraceBuilder], Path]:
    """The page of a built trace, as a file."""

    def make(builder: TraceBuilder) -> Path:
        trace = Trace.load(builder.write(tmp_path / "trace.json"))
        path = tmp_path / "page.html"
        path.write_text(render(build_report(trace)), encoding="utf-8")
        return path

    return make


def lesson() -> TraceBuilder:
    """Two steps whose every instant is known.

    us        0    100   200   300   400   500   600   700   800   900  1000
    host      |L1  L2|   L3                |L4       |     L5|
    stream 7       gemm------  elementwise-            gemm--  copy--
    idle                       (none)      5 0 0 - 7 0 0
    """
    builder = TraceBuilder()
    builder.step(1, 0, 480).step(2, 480, 520)
    builder.op("aten::mm", 10, 60, **{"Input Dims": [[64, 64], [64, 64]]})
    builder.run("ampere_sgemm_128x64_tn", (20, 20), (100, 200))
    builder.op("aten::add", 80, 40)
    builder.run("void at::native::vectorized_elementwise_kernel<4>(int)", (90, 20), (300, 200))
    builder.frame("/home/me/train.py(42): step", 490, 500)
    builder.op("aten::mm", 600, 90)
    builder.run("ampere_sgemm_128x64_tn", (650, 30), (700, 100))
    builder.op("aten::copy_", 700, 40)
    builder.run("Memcpy DtoD (Device -> Device)", (705, 20), (850, 100), cat="gpu_memcpy", api="cudaMemcpyAsync")
    return builder
