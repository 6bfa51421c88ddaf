"""The common shape of rules: a question, a limit, texts, and a check on the measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from analyze.blocks import Column, Kind, Table
from analyze.findings.finding import Finding, Outcome, Passed, Saving, Severity, Unmeasured
from analyze.findings.rocm import in_words_of_rocm
from analyze.gpus import is_amd
from analyze.metrics.vocabulary import DOUBTED, WITHHELD
from analyze.units import duration, percent

if TYPE_CHECKING:
    from analyze.metrics import DeviceTime, Measures
    from analyze.metrics.whatif.scenario import Place, Scenario

_FREELY = ("launches",)
_WAITS = ("waits", "explicit-waits", "allocations")
_HELD_BACK = 1.1  # times the saving: what a host that is fast enough must add to be reported
HIGH, MEDIUM = 0.10, 0.03  # of the window: what a saving must reach to be called so


class Rule(Struct, frozen=True):
    """One rule.

    Attributes:
        id: stable name.
        question: the question that it answers, as a sentence.
        limit: the share of the window that a saving must reach to be reported; another share where `of` says so; None
            where there is nothing to set.
        of: what the limit is a share of.
        what: what the problem is.
        why: why it costs.
        fix: the exact change.
        exceptions: when it does not apply.
        measured: how the cost is measured and the saving estimated, and what that ignores.
        link: documentation of what to change.
        code_before: what costs, as a few lines of code or a command.
        code_after: the same, changed.
        finding: the finding of a cost that is worth reporting.
        check: from a case to an outcome, in place of `finding` where a rule asks for more than the cost.
        costs: the what-ifs (`metrics.savings.BUILDERS`) whose removal is its saving.
        after: what-ifs that are gone already when the saving is computed: they have the first claim on idle time that
            either could end.
        roots: rules whose finding comes before this one where both claim the same time: they name its cause.
        rivals: what-ifs that can stand for the same idle time as the last of `costs`; one that saves more by itself
            is the root, and has the first claim. Where two save the same, a wait is the root of a pause.
        idle: the cost is idle time: it is not judged where the records are in doubt, and never more than there is.
        bound: the saving is an upper bound.
    """

    id: str
    question: str
    limit: float | None
    what: str
    why: str
    fix: str
    exceptions: str
    measured: str
    link: str
    code_before: str
    code_after: str
    finding: Callable[[Case, Cost], Finding] | None = None
    check: Callable[[Case], Outcome] | None = None
    of: str = "window"
    costs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    idle: bool = False
    bound: bool = True

    def judge(self, case: Case) -> Outcome:
        """The outcome of the rule in a case, in the words of its platform."""
        outcome = self._judged(case)
        return in_words_of_rocm(outcome) if case.rocm else outcome

    def _judged(self, case: Case) -> Outcome:
        if self.check is not None:
            return self.check(case)
        assert self.finding is not None, "a rule has a finding or a check"
        cost = case.cost(self)
        return self.finding(case, cost) if isinstance(cost, Cost) else cost


class Cost(Struct, frozen=True):
    """A cost that is worth reporting, with what its removal saves."""

    scenario: Scenario
    saving: Saving | None
    severity: Severity


class Case(Struct, frozen=True):
    """What rules judge.

    Attributes:
        measures: what was measured.
        device: the headline device.
        doubt: why idle time cannot be judged, empty where it can.
        limits: limits by rule where they are not the rules' own.
    """

    measures: Measures
    device: DeviceTime
    doubt: str
    limits: Mapping[str, float]

    @property
    def rocm(self) -> bool:
        """The run is one of ROCm: an AMD device, or calls of HIP."""
        api = self.measures.launches.api_calls
        return is_amd(self.device.name) or any(call.name.startswith("hip") for call in api)

    def limit(self, rule: Rule) -> float:
        """The rule's limit in this case."""
        return self.limits.get(rule.id, rule.limit or 0.0)

    def share(self, ns: int) -> float:
        """Share of the window."""
        return ns / self.device.window_ns if self.device.window_ns else 0.0

    def cost(self, rule: Rule) -> Cost | Passed | Unmeasured:
        """What the rule's what-ifs cost, if it is worth reporting."""
        if rule.idle and self.doubt:
            return Unmeasured(rule.id, self.doubt)
        most_ns = self.device.idle_ns if rule.idle else self.device.window_ns
        savings = self.measures.savings
        if not any(savings.scenario(name) for name in rule.costs):
            return Passed(rule.id, "none in the window")
        most = self.share(savings.most_ns(*rule.costs))
        if most < self.limit(rule):
            return Passed(rule.id, f"takes at most {percent(most)} of the window")
        if savings.deviation > WITHHELD:
            reason = f"delays that the file does not explain make up {percent(savings.deviation)} of the window"
            return Unmeasured(rule.id, f"{reason}: no saving is stated")
        after = (*rule.after, *self._roots(rule))
        ns = min(self._saved_ns(rule, after), most_ns)
        share = self.share(ns)
        if share < self.limit(rule):
            return Passed(rule.id, f"would save {percent(share)} of the window", below_limit=True)
        basis = rule.measured
        freely = 0 if rule.idle else savings.saved_ns(*rule.costs, after=(*after, *_FREELY))
        if freely > _HELD_BACK * ns:
            basis += (
                " That is at the host's recorded pace, which the profiler slows: with launches that cost nothing it "
                f"would be {duration(min(freely, most_ns))}."
            )
        if savings.deviation > DOUBTED:
            basis += f" The unchanged replay differs from the record by {percent(savings.deviation)} of the window."
        return Cost(self._largest(rule, after), Saving(ns, share, rule.bound, basis), severity(share))

    def _roots(self, rule: Rule) -> tuple[str, ...]:
        """The rivals of a rule that have the first claim."""
        savings = self.measures.savings
        *sure, contested = rule.costs
        before = (*rule.after, *sure)

        def claim(name: str) -> tuple[int, bool]:
            return savings.saved_ns(name, after=before), name in _WAITS

        own = claim(contested)
        return tuple(name for name in rule.rivals if savings.scenario(name) and claim(name) > own)

    def _saved_ns(self, rule: Rule, after: tuple[str, ...]) -> int:
        """What the rule's costs save together; of several, only the last one yields to roots."""
        savings = self.measures.savings
        *sure, contested = rule.costs
        if not sure or after == rule.after:
            return savings.saved_ns(*rule.costs, after=after)
        return savings.saved_ns(*sure, after=rule.after) + savings.saved_ns(contested, after=(*after, *sure))

    def _largest(self, rule: Rule, after: tuple[str, ...]) -> Scenario:
        """The cost that saves most of a rule's, by time where they save the same."""
        savings = self.measures.savings
        found = [(name, scenario) for name in rule.costs if (scenario := savings.scenario(name))]
        if len(found) == 1:
            return found[0][1]
        return max(found, key=lambda one: (savings.saved_ns(one[0], after=after), one[1].time_ns))[1]

    def finding(
        self, rule: Rule, cost: Cost, title: str, observed: str, *, change: str = "", evidence: tuple[Table, ...] = ()
    ) -> Finding:
        """The finding of a cost; its evidence is where the cost arises, and what else is given."""
        return Finding(
            id=rule.id,
            title=title,
            severity=cost.severity,
            observed=observed,
            why=rule.why,
            change=change or rule.fix,
            saving=cost.saving,
            exceptions=rule.exceptions,
            link=rule.link,
            evidence=(*self.places(cost.scenario.places), *evidence),
        )

    def remark(self, rule: Rule, title: str, observed: str, level: Severity, *, change: str = "") -> Finding:
        """A finding whose effect on the time cannot be computed from the file."""
        return Finding(
            id=rule.id,
            title=title,
            severity=level,
            observed=observed,
            why=rule.why,
            change=change or rule.fix,
            saving=None,
            exceptions=rule.exceptions,
            link=rule.link,
            evidence=(),
        )

    def places(self, places: tuple[Place, ...], title: str = "Worst places") -> tuple[Table, ...]:
        """Where a cost arises, most time first."""
        if not places:
            return ()
        table = Table(
            title=title,
            columns=(
                Column("what", Kind.CODE),
                Column("where", Kind.CODE),
                Column("count", Kind.COUNT),
                Column("time", Kind.TIME),
                Column("longest, in window at", Kind.TIME),
            ),
            rows=tuple(
                (p.name, p.where or None, p.count, p.time_ns, max(p.at_ns - self.device.window_start_ns, 0))
                for p in places
            ),
        )
        return (table,)


def severity(share: float) -> Severity:
    """How a share of the window is called."""
    return "high" if share >= HIGH else "medium" if share >= MEDIUM else "low"
