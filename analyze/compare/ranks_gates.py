"""Gates on a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from analyze.blocks import Page
from analyze.compare.amounts import Amount
from analyze.compare.gates import Gate, Gated, GateResult, judge_gate
from analyze.findings import RULES, Unmeasured
from analyze.ranks.merged import MergedFinding
from analyze.report.plain import plain
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

    def amount(self, wanted: Amount) -> tuple[float | int | None, str]:
        """Nothing: a job has no kernels of its own."""
        return None, f"a job of many ranks has no {wanted.kind} of its own; --rank N reports on one"


class JudgedRanks(Gated, Struct, frozen=True):
    """A report on a job with its gates judged.

    Attributes:
        report: the report by itself.
        gates: the gates that were judged.
        page: what text formats draw.
    """

    report: RanksReport
    gates: tuple[GateResult, ...]
    page: Page

    @property
    def name(self) -> str:
        """Name of the job's folder."""
        return self.report.name

    @property
    def version(self) -> str:
        """Version of the program."""
        return self.report.version

    def as_json(self) -> dict[str, Any]:
        """The report by key, with its gates."""
        return {**replace(self.report, page=self.page).as_json(), "gates": plain(self.gates)}


def judged_ranks(report: RanksReport, gates: tuple[Gate, ...]) -> JudgedRanks:
    """Judge the gates of a job.

    Raises:
        GateError: a gate names a rule that there is not.
    """
    results: tuple[GateResult, ...] = tuple(judge_gate(gate, Ranks(report), None) for gate in gates)
    return JudgedRanks(report, results, replace(report.page, gates=tuple(one.line for one in results)))
