"""Host time around the window of a lone step: where the verdict speaks of the step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.findings import RULES, Finding, Passed, Unmeasured
from analyze.findings.rule import Case
from analyze.metrics import Measures
from analyze.metrics.lead import Lead
from analyze.report import build_report, render
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder

MS = 1_000_000
Made = Callable[..., dict[str, Any]]
RULE = next(rule for rule in RULES if rule.id == "host-lead")


def preprocessing(lead_ms: int = 218, tail_ms: int = 0) -> TraceBuilder:
    """A lone step: preprocessing, 160 ms of GPU work, and perhaps more work of the host.

    host  |ProfilerStep#0  [preprocess  [resize][resize]...]launch                 |post|
    GPU                                                     |gemm 160 ms           |
    """
    lead = 1000 * lead_ms
    b = TraceBuilder().step(0, 0, lead + 160_000 + 1000 * tail_ms)
    b.frame("/home/me/app/train.py(10): main", 0, lead + 160_000 + 1000 * tail_ms)
    b.frame("/home/me/app/data.py(20): preprocess", 1_000, lead - 4_000)
    for i in range(10):
        b.frame("<built-in method resize>", 2_000 + i * (lead - 8_000) / 10, (lead - 8_000) / 10 - 10)
    b.run("gemm_tile_a", (lead - 20, 10), (lead, 160_000))
    return b


def test_the_verdict_speaks_of_the_step(report_of: Made) -> None:
    """218 ms before 160 ms of a GPU that is busy all the time: 57.7 % and 42.3 % of the step."""
    report = report_of(preprocessing())
    verdict = report["verdict"]
    assert verdict["id"] == "mixed"
    assert "compute-bound" not in str(verdict)
    first = verdict["sentences"][0]
    assert "host time around the window 57.7% and computation 42.3% of the step" in first.lower()
    assert "covers 160 ms, 42.3% of the step; for 218 ms, 57.7%, the host works before it" in first
    assert "mostly in <built-in method resize> under me/app/data.py(20): preprocess." in first
    assert report["findings"][0]["id"] == "host-lead"
    assert report["findings"][0]["title"] == "The host works around the GPU: preprocess"
    assert report["findings"][0]["severity"] == "high"
    lead = report["lead"]
    assert (lead["length_ns"], lead["window_ns"], lead["tail_ns"]) == (218 * MS, 160 * MS, 0)


def test_host_bound(report_of: Made) -> None:
    verdict = report_of(preprocessing(lead_ms=400))["verdict"]
    assert (verdict["id"], verdict["share"]) == ("host-bound", 400 / 560)
    assert "71.4% of the step" in verdict["rule"]


def test_around_the_window(report_of: Made) -> None:
    """300 ms before and 300 ms behind: no frame but main covers half."""
    report = report_of(preprocessing(lead_ms=300, tail_ms=300))
    first = report["verdict"]["sentences"][0]
    assert "for 600 ms, 78.9%, the host works around it, mostly in me/app/train.py(10): main." in first


def test_ranges_and_ops_name_the_place_too(report_of: Made) -> None:
    b = TraceBuilder().step(0, 0, 1_000).annotation("load images", 10, 700).op("aten::stack", 300, 100)
    b.run("k", (795, 4), (800, 200))
    assert "mostly in load images." in report_of(b)["verdict"]["sentences"][0]
    bare = TraceBuilder().step(0, 0, 1_000).op("aten::stack", 300, 100).run("k", (795, 4), (800, 200))
    assert "mostly outside the ops, ranges and frames" in report_of(bare)["verdict"]["sentences"][0]


def test_a_range_that_is_selected_is_a_lone_row(report_of: Made) -> None:
    b = TraceBuilder().annotation("request", 0, 1_000).run("k", (795, 4), (800, 200)).run("k", (1_500, 4), (1_510, 900))
    assert report_of(b, range="request")["verdict"]["id"] == "host-bound"
    assert report_of(b)["lead"] is None


def test_several_steps_speak_of_the_window(report_of: Made) -> None:
    b = preprocessing().step(1, 378_000, 10).run("k", (378_001, 2), (378_005, 3))
    report = report_of(b)
    assert report["verdict"]["id"] == "compute-bound"
    assert "host-lead" in report["checks_passed"]
    assert report_of(b, steps=(0, 1))["verdict"]["id"] == "mixed"


def test_doubtful_records_speak_of_nothing(report_of: Made) -> None:
    """Launches without activities: the window may be longer than it seems."""
    b = preprocessing()
    for i in range(5):
        b.api("cudaLaunchKernel", 100 + i, 1, correlation=900 + i)
    report = report_of(b)
    assert report["verdict"]["id"] == "not-judged"
    assert "of the step" not in " ".join(report["verdict"]["sentences"])
    assert "host-lead" in [missing["id"] for missing in report["checks_not_measured"]]


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> Measures:
    path = preprocessing().write(tmp_path_factory.mktemp("lead") / "trace.json")
    return Measures(Trace.load(path), Definitions(), Scope())


def lead(window: int, *, row: int = 1_000, lone: bool = True) -> Lead:
    return Lead(row - window, {"host_other_ns": row - window}, row, lone, window, 0, (), 0, 0)


@pytest.mark.parametrize(
    ("window", "kind", "speaks"), [(601, Passed, False), (600, Passed, False), (599, Finding, True), (1, Finding, True)]
)
def test_just_above_the_limit_it_is_found_and_said(measures: Measures, window: int, kind: type, speaks: bool) -> None:
    found = measures.given(lead=lead(window))
    assert isinstance(RULE.judge(Case(found, found.devices[0], "", {})), kind)
    assert lead(window).speaks is speaks
    doubted = RULE.judge(Case(found, found.devices[0], "Cut.", {}))
    assert doubted == Unmeasured("host-lead", "Cut.")
    several = measures.given(lead=lead(window, lone=False))
    assert isinstance(RULE.judge(Case(several, several.devices[0], "", {})), Passed)
    assert isinstance(RULE.judge(Case(found, found.devices[0], "", {"host-lead": 1.0})), Passed)


def test_graph_work_around_one_kernel(shared: Path) -> None:
    report = build_report(Trace.load(shared / "traces" / "a100_triton.json.gz"))
    assert report.verdict.id == "host-bound"
    assert "compute-bound" not in render(report, "md").lower()
    assert report.diagnosis.findings[0].id == "host-lead"
