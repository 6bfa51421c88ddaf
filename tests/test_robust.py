"""A rule, a measure or a section that raises loses itself, not the report."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace
from polars.exceptions import PanicException

from analyze.compare import comparable_of
from analyze.compare.gates import parse_gate
from analyze.compare.json_schema import json_schema
from analyze.compare.judged import judged_report
from analyze.errors import SelectionError
from analyze.findings import RULES, Rule
from analyze.guard import INTERNAL, Absent, AbsentError, Guard, present
from analyze.metrics import QUESTIONS
from analyze.report import Report, build_report, render
from analyze.report.redact import redacted
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.golden import SAMPLES

SAMPLE = next(path for path in SAMPLES if "fp32_synthetic" in path.name)
Make = Callable[[str, Callable[[], Any]], Any]


class PlantedError(Exception):
    """What the tests plant."""


def plant(monkeypatch: pytest.MonkeyPatch, wanted: str) -> list[str]:
    """Let the part of one name raise; the names of all parts that are asked for."""
    made: list[str] = []
    original = Guard.make

    def make(self: Guard, name: str, how: Callable[[], Any]) -> Any:
        made.append(name)

        def planted() -> Any:
            raise PlantedError(name)

        return original(self, name, planted if name == wanted else how)

    monkeypatch.setattr(Guard, "make", make)
    return made


def parts() -> tuple[str, ...]:
    """The parts of the report on the sample, by layer."""
    with pytest.MonkeyPatch.context() as patch:
        made = plant(patch, "")
        build_report(Trace.load(SAMPLE))
    return tuple(dict.fromkeys(made))


PARTS = parts()


@cache
def sample() -> Trace:
    """The trace that all reports here are on: reading it is not what is tested."""
    return Trace.load(SAMPLE)


@cache
def sound_report() -> Report:
    """The report of the program as it is."""
    return build_report(sample())


def whole(report: Report) -> None:
    """Everything that is made of a report can be made."""
    safe = redacted(report)
    for form in ("terminal", "md", "json"):
        assert render(report, form)
        assert render(safe, form)
    document = json.loads(render(report, "json"))
    jsonschema.validate(document, json_schema())
    judged_report(report, comparable_of(report), (parse_gate("idle_share > 10%"), parse_gate("finding:high")), top=5)


def published(report: Report) -> dict[str, Any]:
    return {one.key: report.measures.ask(one) for one in QUESTIONS if one.answer is not None}


def said(report: Report) -> str:
    """The notice on internal errors."""
    return next(notice.text for notice in report.page.notices if notice.id == "internal-error")


def test_every_measure_and_every_rule_is_made_under_the_guard() -> None:
    assert {question.key for question in QUESTIONS} <= set(PARTS)
    assert {rule.id for rule in RULES} <= set(PARTS)
    sections = {section.id for section in build_report(Trace.load(SAMPLE)).page.sections}
    assert len(sections) >= 12
    assert len([name for name in PARTS if name.startswith("section ")]) >= len(sections)


@pytest.mark.parametrize("name", PARTS)
def test_what_raises_loses_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = sound_report()
    plant(monkeypatch, name)
    report = build_report(sample())
    monkeypatch.undo()
    whole(report)
    if name in {rule.id for rule in RULES}:
        assert (name, INTERNAL) in [(rule.id, rule.reason) for rule in report.diagnosis.unmeasured]
        assert f"rule {name}" in said(report)
        lost = {f.id for f in sound.diagnosis.findings} - {f.id for f in report.diagnosis.findings}
        assert lost <= {name}
    elif name in ("order of findings", "hidden costs", "savings together"):
        assert (name, INTERNAL) in [(part.id, part.reason) for part in report.diagnosis.unmeasured]
        assert name in said(report)
        assert {f.id for f in sound.diagnosis.findings} == {f.id for f in report.diagnosis.findings}
    elif name not in ("case", "odd rows"):
        assert name in [missing.id for missing in report.page.not_measured]
        assert name in said(report)
        assert all(m.reason == INTERNAL for m in report.page.not_measured if m.id == name)
    if name.startswith("section "):
        assert len(report.page.sections) >= len(sound.page.sections) - 1
        assert published(report) == published(sound)
        assert report.verdict == sound.verdict
    assert report.page.whole == (
        sound.page.whole if present(report.measures.devices) and name not in ("ledger", "headline") else None
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_that_raises_itself(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted in the rule rather than in the guard."""

    def check(case: object) -> Any:
        raise PlantedError

    broken = tuple(replace(r, check=check, finding=None) if r.id == rule.id else r for r in RULES)
    monkeypatch.setattr(sys.modules["analyze.findings.diagnosis"], "RULES", broken)
    report = build_report(sample())
    assert (rule.id, INTERNAL) in [(missing.id, missing.reason) for missing in report.diagnosis.unmeasured]
    every = (*report.diagnosis.findings, *report.diagnosis.passed, *report.diagnosis.unmeasured)
    assert sorted(outcome.id for outcome in every) == sorted(r.id for r in RULES)


def test_without_the_ledger_it_is_not_said_that_the_gpu_did_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "devices")
    report = build_report(Trace.load(SAMPLE))
    assert report.verdict.id == "not-judged"
    assert "No GPU activity" not in render(report, "md")
    assert "no kernel" not in render(report, "md")


def test_a_gate_on_a_metric_that_was_lost_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "steps")
    report = judged_report(build_report(Trace.load(SAMPLE)), None, (parse_gate("step_time > 1 s"),), top=5)
    assert report.failed
    assert report.gates[0].outcome == "not-judged"


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, SystemExit, SelectionError])
def test_what_is_no_failure_of_a_part_passes(error: type[BaseException]) -> None:
    def how() -> None:
        raise error("planted")

    with pytest.raises(error):
        Guard().make("part", how)


@pytest.mark.parametrize("error", [ValueError, RecursionError, AssertionError, PanicException])
def test_what_a_part_raises_stays_with_it(error: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    def how() -> None:
        raise error("planted")

    guard = Guard()
    with caplog.at_level(logging.DEBUG, "gpuledger"):
        part: Any = guard.make("part", how)
    assert isinstance(part, Absent)
    assert [missing.id for missing in guard.raised()] == ["part"]
    assert caplog.records[0].exc_info is not None
    for ask in (bool, len, list, lambda p: p.field, lambda p: p[0], lambda p: p > 0):
        with pytest.raises(AbsentError):
            ask(part)
    later = guard.make("later", lambda: part.field)
    assert isinstance(later, Absent)
    assert [missing.id for missing in guard.raised()] == ["part"]
    assert [missing.id for missing in guard.not_measured()] == ["part", "later"]


def test_debug_prints_the_traceback_and_the_report_is_made(tmp_path: Path) -> None:
    code = (
        "import sys; import analyze.metrics.fusion as m\n"
        "def broken(*a): raise RuntimeError('planted here')\n"
        "m.measure_fusion = broken\n"
        "from analyze.cli.main import main; main()"
    )
    for debug in ((), ("--debug",)):
        done = subprocess.run(
            [sys.executable, "-c", code, str(SAMPLE), "--report", "md", *debug],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        assert INTERNAL in done.stdout
        assert ("planted here" in done.stderr) == bool(debug)
        assert ("Traceback" in done.stderr) == bool(debug)


def test_a_thread_that_never_pauses(tmp_path: Path) -> None:
    """Two threads launch; one pauses for 5 ms, the other is inside an op all the time: its stretches are none."""
    b = TraceBuilder().op("aten::normal_", 0, 20_000)
    for i in range(3):
        b.run("k", (10 + 6_000 * i, 5), (20 + 6_000 * i, 10))
        b.run("k", (500 + 6_000 * i, 5), (510 + 6_000 * i, 10), tid=7)
    report = build_report(Trace.load(b.write(tmp_path / "trace.json")))
    assert INTERNAL not in render(report, "md")
    assert "input-wait" in [finding.id for finding in report.diagnosis.findings]


def test_a_device_number_beyond_all_frames(tmp_path: Path) -> None:
    b = TraceBuilder().run("k", (10, 5), (20, 10))
    b.metadata["deviceProperties"][0]["id"] = 10**30
    assert INTERNAL not in render(build_report(Trace.load(b.write(tmp_path / "trace.json"))), "md")


@pytest.mark.parametrize(("name", "top"), [("trace.json", "Python"), ("main_thread_never_pauses.json", "")])
def test_the_backward_thread_first(shared: Path, name: str, top: str) -> None:
    (folder,) = (shared / "cases").glob("29-*")
    report = build_report(Trace.load(folder / name))
    (device,) = report.measures.devices
    assert (device.window_ns, device.busy_ns, device.idle_ns) == (64_979_000, 41_955_000, 23_024_000)
    assert [step.wall_ns for step in report.measures.steps[:2]] == [25_000_000] * 2
    assert [step.time_ns for step in report.measures.steps] == [25_000_000, 25_000_000, 14_979_000]
    assert INTERNAL not in render(report, "md")
    if top:
        assert top in report.diagnosis.findings[0].title
        assert report.diagnosis.findings[0].id == "input-wait"
    else:
        gaps = report.measures.gaps[:2]
        assert [gap.frame for gap in gaps] == [("aten::normal_",)] * 2
        assert all(gap.parts["host_op_ns"] >= 9_820_000 for gap in gaps)
