"""A report with its baseline and its gates: what a CI job reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from analyze.blocks import Page
from analyze.compare.comparable import Comparable, comparable_of
from analyze.compare.gates import Gate, Gated, GateResult, judge_gate
from analyze.compare.lineup import Lineup
from analyze.compare.pair import Comparison, compare, with_comparison
from analyze.report.notebook import Shown
from analyze.report.plain import plain
from analyze.report.report import Report


class JudgedReport(Shown, Gated, Struct, frozen=True):
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
        """Base name of the trace."""
        return self.report.trace.name

    @property
    def version(self) -> str:
        """Version of the program."""
        return self.report.version

    def as_json(self) -> dict[str, Any]:
        """The report by the keys of its contract, with the comparison and the gates."""
        return {
            **replace(self.report, page=self.page).as_json(),
            "comparison": self.comparison.as_json() if self.comparison else None,
            "gates": plain(self.gates),
        }


def judged_report(report: Report, before: Comparable | None, gates: tuple[Gate, ...], *, top: int) -> JudgedReport:
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
    this = comparable_of(report)
    comparison = compare(before, this, top=top) if before else None
    results = tuple(judge_gate(gate, this, before, comparison) for gate in gates)
    page = with_comparison(report.page, comparison) if comparison else report.page
    return JudgedReport(report, comparison, results, replace(page, gates=tuple(result.line for result in results)))


class JudgedComparison(Shown, Gated, Struct, frozen=True):
    """A comparison with its gates judged: each run against the first.

    Attributes:
        comparison: the comparison by itself.
        gates: the gates that were judged; of several runs, each gate once for each run but the first.
        page: what text formats draw.
    """

    comparison: Comparison | Lineup
    gates: tuple[GateResult, ...]
    page: Page

    @property
    def name(self) -> str:
        """Names of the runs."""
        return self.comparison.page.name

    @property
    def version(self) -> str:
        """Version of the program."""
        return self.comparison.version

    def as_json(self) -> dict[str, Any]:
        """The comparison by the keys of its contract, with the gates."""
        made = replace(self.comparison, page=self.page).as_json()
        return {**made, "gates": plain(self.gates)} if self.gates else made


def judged_comparison(
    comparison: Comparison | Lineup, subjects: Sequence[Comparable], labels: Sequence[str], gates: tuple[Gate, ...]
) -> JudgedComparison:
    """Judge the gates of a comparison.

    Args:
        comparison: of the subjects.
        subjects: the runs; the first is the baseline.
        labels: how a gate's line names the run where there are several.
        gates: to judge.

    Raises:
        GateError: a gate names a rule that there is not.
    """
    before, *others = subjects
    results = []
    for this, label in zip(others, labels[1:], strict=True):
        pair = comparison if isinstance(comparison, Comparison) else compare(before, this)
        found = (judge_gate(gate, this, before, pair) for gate in gates)
        named = f"{label}: " if len(others) > 1 else ""
        results += [replace(result, text=f"{named}{result.text}") for result in found]
    page = replace(comparison.page, gates=tuple(result.line for result in results))
    return JudgedComparison(comparison, tuple(results), page)
