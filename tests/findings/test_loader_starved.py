"""Workers that cannot keep up: step by step, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.findings.test_blame import GEMM, LOADING, found, judged

WORKERS = LOADING.replace("Single", "Multi").replace("MultiProcess", "MultiProcessing")


def steps(waits: Sequence[int], loader: str = WORKERS, pinned_by: int = 0) -> TraceBuilder:
    """Steps of 1,000 us that begin with a wait; the kernel begins 10 us behind it and ends with the step.

    The first wait lies before the window: nothing is idle in it.
    """
    builder = TraceBuilder()
    for number, wait in enumerate(waits):
        start = 1_000 * number
        builder.step(number, start, 1_000).annotation(loader, start, wait)
        if pinned_by:
            builder.api("cudaHostAlloc", start, wait, tid=pinned_by)
        builder.run(GEMM, (start + wait + 2, 5), (start + wait + 10, 990 - wait))
    return builder


@pytest.mark.parametrize(
    ("waits", "reported"),
    [
        ((300, 300, 300, 50, 50), False),  # 2 of 5: that of the first step is not in the window
        ((300, 300, 300, 300, 50), True),  # 3 of 5
        ((50, 100, 100, 100, 50), True),  # a tenth of the step
        ((50, 99, 99, 99, 50), False),
        ((300, 300), False),  # two steps are too few
    ],
)
def test_most_steps_wait_for_workers(waits: tuple[int, ...], reported: bool, tmp_path: Path) -> None:
    assert ("loader-starved" in found(judged(steps(waits), tmp_path))) is reported


def test_how_much_faster_batches_would_have_to_come(tmp_path: Path) -> None:
    """4 of 5 steps of 1,000 us idle for 600 of them: batches for 400 us of work have to come 2.5 times as fast."""
    finding = found(judged(steps((600,) * 5), tmp_path))["loader-starved"]
    assert finding.title == "The loader starves 4 of 5 steps"
    assert "2.40 ms, 60.0% of these steps. Batches would have to come 2.5 times as fast." in finding.observed
    assert finding.change.startswith("2.5 times the workers")
    assert finding.saving is None, "input-wait has it"


@pytest.mark.parametrize(("loader", "pinned_by"), [(LOADING, 0), (WORKERS, 777)])
def test_loading_without_workers_and_pinning_are_not_the_workers_fault(
    loader: str, pinned_by: int, tmp_path: Path
) -> None:
    assert "loader-starved" not in found(judged(steps((600,) * 5, loader, pinned_by), tmp_path))


def test_case_15_waits_for_pinned_memory(shared: Path) -> None:
    """cases/15: cudaHostAlloc on the pin_memory thread fills the waits: more workers would not help."""
    diagnosis = build_report(Trace.load(shared / "cases/15-pin-memory-hostalloc/trace.json")).diagnosis
    assert "loader-starved" not in found(diagnosis)
