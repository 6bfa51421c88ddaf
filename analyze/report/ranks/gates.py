"""Gates on a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from analyze.findings import RULES, Unmeasured
from analyze.ranks.merged import MergedFinding
from analyze.report.gates import Gate, GateResult, judge_gate

if TYPE_CHECKING:
    from analyze.report.ranks.build import RanksReport


class Ranks:
    """A job as gates see it.

    Attributes:
        findings: of single ranks, together.
        checks_passed: rules that found nothing on any rank.
        checks_not_measured: none: what single ranks could not be asked is in their own reports.
    """

    def __init__(self, report: RanksReport) -> None:
        self._metrics: Mapping[str, float | int | None] = report.metrics
        self.findings: tuple[MergedFinding, ...] = report.findings
        found = {one.id for one in report.findings}
        self.checks_passed = tuple(rule.id for rule in RULES if rule.id not in found)
        self.checks_not_measured: tuple[Unmeasured, ...] = ()

    def metric(self, name: str) -> float | int | None:
        """A figure by name, None where it was not measured."""
        return self._metrics.get(name)


def judged_ranks(report: RanksReport, gates: tuple[Gate, ...]) -> RanksReport:
    """A report with its gates judged, in its page too.

    Raises:
        GateError: a gate names a rule that there is not.
    """
    if not gates:
        return report
    results: tuple[GateResult, ...] = tuple(judge_gate(gate, Ranks(report), None) for gate in gates)
    return replace(report, gates=results, page=replace(report.page, gates=tuple(one.line for one in results)))
