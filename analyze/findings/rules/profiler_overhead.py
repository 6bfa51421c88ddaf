"""The profiler's own cost."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.units import duration, percent

_STRETCH = 0.10


def check(case: Case) -> Outcome:
    """How much longer the run took because it was recorded."""
    recorded = case.measures.recorded
    stretch = recorded.stretch if recorded else None
    cost = case.cost(RULE)
    if not isinstance(cost, Passed | Unmeasured):
        observed = (
            f"The profiler's own rows take {duration(cost.scenario.time_ns)} of host time; the GPU idles for "
            f"{percent(case.share(case.device.idle['profiler_ns']))} of the window during them."
        )
        return case.finding(RULE, cost, "The profiler's own work idles the GPU", observed)
    if stretch is not None and stretch - 1 >= _STRETCH:
        observed = (
            f"A profiled forward took {stretch:.2f} times as long as one without the profiler, by capture's own times."
        )
        return case.remark(RULE, f"The profiler stretched the run {stretch:.2f}x", observed, "low")
    return cost


RULE = Rule(
    id="profiler-overhead",
    question="Does the profiler distort the run?",
    limit=0.01,
    what="Recording slows the host: Python stacks, shapes and memory events each add to every op.",
    why="Idle time that the host causes is overstated in the trace; without the profiler it is shorter.",
    fix="record without stacks, shapes and memory; use capture's latency for totals",
    exceptions="The device is busy all the time: then the host's delay is hidden.",
    measured="Replay without the profiler's overhead rows; profiled against unprofiled time where capture has both.",
    link="https://docs.pytorch.org/docs/stable/profiler.html",
    code_before="profile(with_stack=True, record_shapes=True, profile_memory=True)",
    code_after="profile()  # and again with stacks, if you need to know where",
    check=check,
    idle=True,
    bound=False,
    costs=("profiler",),
)
