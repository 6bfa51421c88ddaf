"""Collectives that wait for other ranks."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.units import duration, plural


def check(case: Case) -> Outcome:
    """What would be saved if all ranks arrived at once."""
    savings = case.measures.savings
    if savings.scenario("collective-waits") is None and savings.scenario("collective-latency"):
        return Passed(RULE.id, "collective-latency reports waits that all steps have alike")
    if savings.scenario("communication") and savings.scenario("collective-waits") is None:
        return Unmeasured(RULE.id, "fewer than three steps, or collectives that differ from step to step")
    cost = case.cost(RULE)
    if isinstance(cost, Passed | Unmeasured):
        return cost
    observed = (
        f"{plural(cost.scenario.count, 'collective takes', 'collectives take')} longer than the same one in its "
        f"shortest step: {duration(cost.scenario.time_ns)} more in all. Another rank came later, or the transfer was "
        "slower."
    )
    return case.finding(RULE, cost, "Collectives take longer in some steps", observed)


RULE = Rule(
    id="collective-wait",
    question="Do collectives wait for other ranks?",
    limit=0.01,
    what="The same collective takes longer in some steps than in others.",
    why="A collective ends when the last rank has come; the others wait inside the kernel, which looks busy.",
    fix="balance the ranks: compare their traces for the one that comes last",
    exceptions="The network itself is shared and its speed varies.",
    measured="Replay with every collective as short as the same launch in its shortest step.",
    link="https://docs.pytorch.org/docs/stable/notes/ddp.html",
    code_before="sampler = DistributedSampler(data)  # documents of any length",
    code_after="sampler = LengthGroupedSampler(data)  # your own: equal work on every rank",
    check=check,
    costs=("collective-waits",),
)
