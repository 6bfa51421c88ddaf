"""A report with its baseline and its gates: what a CI job reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from analyze.blocks import Page
from analyze.compare.gates import Gate, GateResult, judge_gate
from analyze.compare.pair import Comparison, beside, compare
from analyze.compare.subject import Subject, subject_of
from analyze.report.plain import plain
from analyze.report.report import Report


@dataclass(frozen=True)
class JudgedReport:
    """A report on a trace, compared with a baseline and judged by gates.

    Attributes:
        report: the report by itself.
        comparison: with the baseline, None without one.
        gates: the gates that were judged.
        page: what text formats draw.
    """

    report: Report
    comparison: Comparison | None
    gates: tuple[GateResult, ...]
    page: Page

    @property
    def name(self) -> str:
        """Name of the trace."""
        return self.report.trace.name

    @property
    def version(self) -> str:
        """Version of the program."""
        return self.report.version

    @property
    def failed(self) -> bool:
        """Some gate failed, or could not be judged."""
        return any(gate.outcome != "passed" for gate in self.gates)

    def as_json(self) -> dict[str, Any]:
        """The report by the keys of its contract, with the comparison and the gates."""
        return {
            **replace(self.report, page=self.page).as_json(),
            "comparison": self.comparison.as_json() if self.comparison else None,
            "gates": plain(self.gates),
        }


def judged_report(report: Report, before: Subject | None, gates: tuple[Gate, ...], *, top: int) -> JudgedReport:
    """Compare a report with its baseline, and judge its gates.

    Args:
        report: on the run.
        before: the baseline, None without one.
        gates: to judge.
        top: how many differences the comparison lists.

    Raises:
        GateError: a gate names a rule that there is not.
        NotComparableError: the baseline's figures mean something else.
    """
    if before is None and not gates:
        return JudgedReport(report, None, (), report.page)
    this = subject_of(report)
    comparison = compare(before, this, top=top) if before else None
    results = tuple(judge_gate(gate, this, before, comparison) for gate in gates)
    page = beside(report.page, comparison) if comparison else report.page
    return JudgedReport(report, comparison, results, replace(page, gates=tuple(result.line for result in results)))
