"""How costs stand to one another: which findings claim the same time, and what shows only when another one is gone."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from analyze.findings.finding import Finding, Hidden, Outcome, Passed, Saving
from analyze.findings.rule import Case, Rule

_SAME = 0.8  # of the later finding's saving: sharing this much with an earlier finding, it claims the same time
_ROOT = 0.5  # of the larger saving: what the cause of both must save by itself to come first
_LARGE = 0.05  # of the window: what a cost must take, and save once another one is gone, to be worth a line

Asked = Sequence[tuple[Rule, Outcome]]


def related(case: Case, findings: Sequence[Finding], rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """The findings with causes before their effects, and each marked that claims the time of an earlier one.

    Two findings claim the same time when removing both saves hardly more than removing one of them.

    Args:
        case: the case.
        findings: most saving first.
        rules: all rules.
    """
    by_id = {rule.id: rule for rule in rules}
    ordered = list(findings)
    for effect in findings:
        for cause in findings:
            at, to = ordered.index(cause), ordered.index(effect)
            if at > to and cause.id in by_id[effect.id].roots and _is_root(case, by_id, cause, effect):
                ordered.insert(to, ordered.pop(at))
    return tuple(_marked(case, by_id, ordered, i) for i in range(len(ordered)))


def _is_root(case: Case, rules: dict[str, Rule], cause: Finding, effect: Finding) -> bool:
    a, b = _ns(cause), _ns(effect)
    return a >= _ROOT * b and _shared_ns(case, rules, cause, effect) >= _SAME * min(a, b)


def _marked(case: Case, rules: dict[str, Rule], ordered: list[Finding], at: int) -> Finding:
    """The finding at a place, with the first earlier one that claims its time."""
    finding = ordered[at]
    for earlier in ordered[:at]:
        if _shared_ns(case, rules, earlier, finding) >= _SAME * max(_ns(finding), 1):
            idle = rules[earlier.id].idle and rules[finding.id].idle
            return replace(finding, same_as=earlier.id, same_idle=idle)
    return finding


def _shared_ns(case: Case, rules: dict[str, Rule], one: Finding, other: Finding) -> int:
    """How much of what two findings save both of them claim."""
    if not (one.saving and other.saving):
        return 0
    a, b = rules[one.id], rules[other.id]
    costs = (*a.costs, *b.costs)
    gone = tuple(name for name in (*a.after, *b.after) if name not in costs)
    savings = case.measures.savings
    both_ns = min(savings.saved_ns(*costs, after=gone), case.device.idle_ns + savings.busy_ns(*costs))
    return _ns(one) + _ns(other) - max(both_ns, _ns(one), _ns(other))


def hidden(case: Case, asked: Asked, findings: Sequence[Finding]) -> tuple[Hidden, ...]:
    """Large costs that save next to nothing by themselves, and much once the cost of a finding is gone.

    Args:
        case: the case.
        asked: all rules with their outcomes.
        findings: the findings, in their order.
    """
    rules = {rule.id: rule for rule, _ in asked}
    first = [(finding, rules[finding.id]) for finding in findings if finding.saving]
    found = (
        _behind(case, rule, first)
        for rule, outcome in asked
        if isinstance(outcome, Passed) and outcome.below_limit
        if case.share(case.measures.savings.most_ns(*rule.costs)) >= _LARGE
    )
    return tuple(sorted((one for one in found if one), key=lambda one: -one.saving.ns))


def _behind(case: Case, rule: Rule, findings: Sequence[tuple[Finding, Rule]]) -> Hidden | None:
    """The cost of a rule behind the finding that hides most of it, if that is worth a line."""
    savings = case.measures.savings
    after = {
        finding.id: savings.saved_ns(*rule.costs, after=(*rule.after, *other.costs))
        for finding, other in findings
        if not set(other.costs) & set(rule.costs)
    }
    if not after:
        return None
    behind = max(after, key=lambda name: after[name])
    ns = after[behind]
    if case.share(ns) < max(_LARGE, case.limit(rule)):
        return None
    time_ns = sum(scenario.time_ns for name in rule.costs if (scenario := savings.scenario(name)))
    return Hidden(rule.id, behind, time_ns, Saving(ns, case.share(ns), rule.bound, rule.measured))


def _ns(finding: Finding) -> int:
    return finding.saving.ns if finding.saving else 0
