"""What the figures stand on, and between what bounds that leaves idle time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builder import TraceBuilder

ReportOf = Callable[..., dict[str, Any]]


def test_one_figure_where_everything_is_recorded(report_of: ReportOf) -> None:
    """Kernel 10 to 20, gap to 30, kernel to 40: idle for a third."""
    builder = TraceBuilder().api("cudaLaunchKernel", 0, 2, correlation=1).api("cudaLaunchKernel", 24, 2, correlation=2)
    trust = report_of(builder.kernel("a", 10, 10, correlation=1).kernel("b", 30, 10, correlation=2))["trust"]
    assert trust["linked_share"] == trust["complete_share"] == 1.0
    assert trust["idle_low_share"] == trust["idle_high_share"] == pytest.approx(1 / 3)
    assert trust["readings"] == []


def test_a_head_of_unlinked_work_leaves_two_readings(report_of: ReportOf) -> None:
    """Unlinked work for 60 us, idle to 80, then 5 of busy, 10 of idle and 5 of busy time: idle 30%, or 50% after it."""
    builder = TraceBuilder().api("cudaLaunchKernel", 70, 2, correlation=2).api("cudaLaunchKernel", 88, 1, correlation=3)
    builder.kernel("old", 0, 60).kernel("a", 80, 5, correlation=2).kernel("b", 95, 5, correlation=3)
    trust = report_of(builder)["trust"]
    assert trust["idle_low_share"] == pytest.approx(0.30)
    assert trust["idle_high_share"] == pytest.approx(0.50)
    assert len(trust["readings"]) == 1
    assert "before the recording" in trust["readings"][0]
