"""All rules on one case: findings by saving, what passed, what could not be measured, and what all would save."""

from __future__ import annotations

from collections.abc import Mapping

from analyze.findings.finding import SEVERITIES, Diagnosis, Finding, Passed, Saving, Unmeasured
from analyze.findings.rule import Case
from analyze.findings.rules import RULES, incomplete_records
from analyze.findings.verdict import doubt
from analyze.metrics import Measures
from analyze.metrics.device_time import headline
from analyze.settings import Definitions

_TOGETHER = (
    "Replay with the changes of all findings at once. Their savings do not add up: some end the same idle time, and "
    "some show only when another cost is gone."
)


def diagnose(
    measures: Measures, definitions: Definitions, *, cut: bool, limits: Mapping[str, float] | None = None
) -> Diagnosis:
    """Ask every rule.

    Args:
        measures: what was measured.
        definitions: limits of the measures.
        cut: the file ends early.
        limits: limits by rule id where they are not the rules' own.
    """
    device = headline(measures.devices)
    if device is None or not device.window_ns:
        reason = "no kernel, copy or memset with a time in the file"
        return Diagnosis(unmeasured=tuple(Unmeasured(rule.id, reason) for rule in RULES), limits=dict(limits or {}))
    case = Case(measures, device, doubt(measures, device, definitions, cut=cut), limits or {})
    outcomes = [(rule, rule.judge(case)) for rule in RULES]
    findings = [outcome for _, outcome in outcomes if isinstance(outcome, Finding)]
    told = [rule for rule, outcome in outcomes if isinstance(outcome, Finding) and outcome.saving]
    return Diagnosis(
        findings=tuple(sorted(findings, key=_by_saving)),
        passed=tuple(outcome for _, outcome in outcomes if isinstance(outcome, Passed)),
        unmeasured=tuple(outcome for _, outcome in outcomes if isinstance(outcome, Unmeasured)),
        together=_together(case, tuple(name for rule in told for name in rule.costs)),
        limits=dict(limits or {}),
    )


def _by_saving(finding: Finding) -> tuple[bool, int, int]:
    """Trust first, then the largest saving; what has no number comes last, by severity."""
    saved = finding.saving.ns if finding.saving else 0
    return finding.id != incomplete_records.RULE.id, -saved, SEVERITIES.index(finding.severity)


def _together(case: Case, costs: tuple[str, ...]) -> Saving | None:
    if not costs:
        return None
    savings = case.measures.savings
    ns = min(savings.saved_ns(*costs), case.device.idle_ns + savings.busy_ns(*costs))
    return Saving(ns, case.share(ns), bound=True, basis=_TOGETHER)
