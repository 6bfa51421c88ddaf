"""Collectives whose bytes cannot explain their time."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved if such collectives took only what their bytes need."""
    worst = cost.scenario.places[0]
    each = duration(worst.time_ns // max(worst.count, 1))
    observed = (
        f"{plural(cost.scenario.count, 'collective')} with few bytes for their time: "
        f"{duration(cost.scenario.time_ns)}. Most of it: {worst.name}, {worst.count:,}x, {each} on average. "
        "That is waiting for another rank, not transfer."
    )
    return case.finding(RULE, cost, f"Collectives wait: {each} for {cost.scenario.note}", observed)


RULE = Rule(
    id="collective-latency",
    question="Does the size of collectives explain their time?",
    limit=0.01,
    what="A collective lasts ten times as long as its bytes need on a slow network, or longer.",
    why="Such a collective waits inside its kernel until the last rank has come; no overlap or compression ends that.",
    fix="compare the traces of the ranks: find the one that comes last, and what it does before",
    exceptions="The network alone needs milliseconds for a few bytes: measure it with nccl-tests.",
    measured=(
        "Replay with these collectives at 100 µs and 2 ns per byte, a tenth or less of what they took. Only those "
        "whose elements and type are recorded are judged."
    ),
    link="https://docs.pytorch.org/docs/stable/notes/ddp.html",
    code_before="torchrun --nproc-per-node 8 train.py  # one trace, of rank 0",
    code_after="analyze compare rank0.json.gz rank7.json.gz  # which one comes last?",
    finding=finding,
    costs=("collective-latency",),
)
