"""What only first iterations do, inside the window."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit
from analyze.units import duration, plural


def tell(case: Case, cost: Cost) -> Finding:
    """What the window would be without it."""
    worst = cost.scenario.places[0]
    what = plural(cost.scenario.count, "long call, module load or compilation", _MANY)
    seen = f"{what}: {duration(cost.scenario.time_ns)} of host time, {duration(worst.time_ns)} of it in {worst.name}."
    return case.finding(RULE, cost, f"Warm-up is in the window: {culprit(worst.name)}", seen)


_MANY = "long calls, module loads or compilations"

RULE = Rule(
    id="warm-up",
    asks="Is warm-up part of the window?",
    limit=0.01,
    what="Modules are loaded, kernels chosen or compiled inside the window; launch calls take over a millisecond.",
    why="It happens once, so the window is slower than what follows: figures per step are too high.",
    fix="schedule(wait=1, warmup=3, active=3)",
    unless="Start-up is what is to be measured.",
    measured=(
        "Replay without launch calls over 1 ms, lazy loading, compilation, and calls that take over 100 ms to get "
        "memory or make a stream."
    ),
    link="https://docs.pytorch.org/docs/stable/profiler.html",
    tell=tell,
    idle=True,
    bound=False,
    costs=("first-use",),
)
