"""All rules on one case: findings by saving, what passed, what could not be measured, and what all would save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from analyze.findings.finding import SEVERITIES, Diagnosis, Finding, Outcome, Passed, Saving, Unmeasured
from analyze.findings.relate import hidden, related
from analyze.findings.rule import Case, Rule
from analyze.findings.rules import RULES, host_lead, incomplete_records
from analyze.findings.verdict import doubt
from analyze.guard import INTERNAL, Guard
from analyze.settings import Definitions

if TYPE_CHECKING:
    from analyze.metrics import Measures

_TOGETHER = (
    "Replay with the changes of all findings at once. Their savings do not add up: some end the same idle time, and "
    "some show only when another cost is gone."
)

_FIRST = (incomplete_records.RULE.id, host_lead.RULE.id)


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
    guard, limits = Guard(), dict(limits or {})
    case = guard.make("case", lambda: _case(measures, definitions, limits, cut=cut))
    if case is None:
        reason = "no kernel, copy or memset with a time in the file"
        return Diagnosis(unmeasured=tuple(Unmeasured(rule.id, reason) for rule in RULES), limits=limits)
    outcomes = [(rule, _asked(guard, rule, case)) for rule in RULES]
    found = sorted((outcome for _, outcome in outcomes if isinstance(outcome, Finding)), key=_by_saving)
    findings = guard.make_or("order of findings", lambda: related(case, found, RULES), tuple(found))
    found_rules = [rule for rule, outcome in outcomes if isinstance(outcome, Finding) and outcome.saving]
    costs = tuple(name for rule in found_rules for name in rule.costs)
    behind = guard.make_or("hidden costs", lambda: hidden(case, outcomes, findings), ())
    together = guard.make_or("savings together", lambda: _together(case, costs), None)
    unmeasured = {outcome.id: outcome for _, outcome in outcomes if isinstance(outcome, Unmeasured)}
    return Diagnosis(
        findings=findings,
        hidden=behind,
        passed=tuple(outcome for _, outcome in outcomes if isinstance(outcome, Passed)),
        unmeasured=tuple({**{name: Unmeasured(name, INTERNAL) for name in guard.failed}, **unmeasured}.values()),
        together=together,
        limits=limits,
    )


def _case(measures: Measures, definitions: Definitions, limits: Mapping[str, float], *, cut: bool) -> Case | None:
    """What rules judge, None without device time."""
    device = measures.headline
    if device is None or not device.window_ns:
        return None
    return Case(measures, device, doubt(measures, device, definitions, cut=cut), limits)


def _asked(guard: Guard, rule: Rule, case: Case) -> Outcome:
    """The outcome of a rule; one that raises could not be measured."""
    return guard.make_or(rule.id, lambda: rule.judge(case), Unmeasured(rule.id, INTERNAL))


def _by_saving(finding: Finding) -> tuple[int, int, int]:
    """Trust first, what the window does not show next, then the largest saving; what has no number comes last."""
    saved = finding.saving.ns if finding.saving else 0
    before = _FIRST.index(finding.id) if finding.id in _FIRST else len(_FIRST)
    return before, -saved, SEVERITIES.index(finding.severity)


def _together(case: Case, costs: tuple[str, ...]) -> Saving | None:
    if not costs:
        return None
    savings = case.measures.savings
    ns = min(savings.saved_ns(*costs), case.device.idle_ns + savings.busy_ns(*costs))
    return Saving(ns, case.share(ns), bound=True, basis=_TOGETHER)
