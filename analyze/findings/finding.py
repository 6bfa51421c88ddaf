"""What a rule can conclude: a finding with its saving, a pass, or that it could not be measured."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from analyze.blocks import Table

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


class Saving(Struct, frozen=True):
    """What the window would lose if the cost were gone, by replay.

    Attributes:
        ns: nanoseconds of the window.
        share: of the window, 0..1.
        bound: an upper bound ("at most") rather than an estimate.
        basis: how it was computed and what it ignores, one or two sentences.
    """

    ns: int
    share: float
    bound: bool
    basis: str


class Finding(Struct, frozen=True, kw_only=True):
    """A problem, what it costs and what to change.

    Attributes:
        id: the rule.
        title: the problem with its culprit, in at most eight words.
        severity: by the share of the window.
        observed: what was measured, with wholes.
        why: why it costs.
        change: the exact change.
        saving: what the change would save, None where the records cannot support a number.
        exceptions: when it does not apply.
        link: documentation of what to change.
        evidence: the worst places.
        same_as: the first earlier finding that claims most of the same time, None without one: the savings of both do
            not add up.
        same_idle: that is idle time.
    """

    id: str
    title: str
    severity: Severity
    observed: str
    why: str
    change: str
    saving: Saving | None
    exceptions: str
    link: str
    evidence: tuple[Table, ...]
    same_as: str | None = None
    same_idle: bool = False


class Passed(Struct, frozen=True):
    """A rule that found nothing worth a change.

    Attributes:
        id: the rule.
        reason: what was measured instead.
        below_limit: the cost is there, but its removal saves less than the rule's limit.
    """

    id: str
    reason: str
    below_limit: bool = False


class Unmeasured(Struct, frozen=True):
    """A rule whose question this file cannot answer.

    Attributes:
        id: the rule.
        reason: what is missing.
    """

    id: str
    reason: str


class Hidden(Struct, frozen=True):
    """A cost that saves next to nothing until another cost is gone.

    Attributes:
        id: the rule.
        behind: the finding whose cost hides it.
        time_ns: how long it takes, added up over its calls or activities.
        saving: what its removal saves once the other cost is gone.
    """

    id: str
    behind: str
    time_ns: int
    saving: Saving


Outcome = Finding | Passed | Unmeasured


class Diagnosis(Struct, frozen=True):
    """The outcomes of all rules.

    Attributes:
        findings: most saving first, but a cause before its effect where both claim the same time.
        hidden: costs that show only once the cost of a finding is gone, most saving first.
        passed: in the order of the rules.
        unmeasured: in the order of the rules.
        together: what the changes of all findings with a saving would save at once, None without any.
        limits: limits by rule that were not the rules' own.
    """

    findings: tuple[Finding, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    passed: tuple[Passed, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    together: Saving | None = None
    limits: dict[str, float] = field(default_factory=dict)
