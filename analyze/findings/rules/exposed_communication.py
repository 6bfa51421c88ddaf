"""Collectives that no computation hides."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.states import window_states
from analyze.findings.verdict import state_percents
from analyze.units import duration, plural


def tell(case: Case, cost: Cost) -> Finding:
    """What would be saved if all of them were hidden."""
    share = state_percents(window_states(case.device))["communication"]
    seen = (
        f"{plural(cost.scenario.count, 'collective')}: {duration(cost.scenario.time_ns)}; "
        f"{duration(case.device.exposed_communication_ns)} of it, "
        f"{share} of the window, has no computation beside it."
    )
    return case.finding(RULE, cost, "Collectives are not hidden by computation", seen)


RULE = Rule(
    id="exposed-communication",
    asks="Does communication stand in the way?",
    limit=0.01,
    what="Collectives run while nothing is computed.",
    why="The device waits for the network; overlapped with computation the same transfer would cost nothing.",
    fix="larger DDP buckets, FSDP prefetching, a stream of its own",
    unless="What is sent is needed at once, as in tensor parallelism.",
    measured="Replay with collectives that take no time: an upper bound for hiding them all.",
    link="https://docs.pytorch.org/docs/stable/notes/ddp.html",
    tell=tell,
    costs=("communication",),
    after=("collective-waits",),
)
