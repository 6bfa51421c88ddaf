"""The host launches work more slowly than the device finishes it."""

from __future__ import annotations

from analyze.findings.eager import launch_change
from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.states import window_states
from analyze.findings.words import culprit
from analyze.units import duration, percent, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What one graph launch in place of many launch calls would save."""
    anew = case.device.causes.get("sync_ns", 0)
    idle_ns = anew + next(state.ns for state in window_states(case.device) if state.id == "launch-bound")
    launches = case.measures.launches
    late_ns = idle_ns // max(launches.calls, 1)
    observed = (
        f"The GPU idles for {percent(case.share(idle_ns))} of the window while the host prepares and launches work: "
        f"{plural(launches.calls, 'launch comes', 'launches come')} {duration(late_ns)} late on average, for work that "
        f"takes {duration(case.device.activity_sum_ns // max(case.device.activities, 1))}."
    )
    places = case.measures.savings.places(*RULE.costs)
    if places:
        worst = places[0]
        place = culprit(worst.where or worst.name)
        observed += f" Most before {place}: {plural(worst.count, 'gap')}, {duration(worst.time_ns)}."
    title = f"CPU launch overhead: {plural(launches.calls, 'launch', 'launches')}"
    evidence = case.places(places, "Where the GPU waits for launches")
    change = launch_change(RULE.fix, cost.scenario.dispatch)
    return case.finding(RULE, cost, title, observed, change=change, evidence=evidence)


RULE = Rule(
    id="launch-bound",
    question="Does the GPU wait for launches?",
    limit=0.01,
    what="The device finishes each kernel before the host has launched the next one.",
    why="Every launch costs the host a few microseconds of dispatch; short kernels end sooner than that.",
    fix='torch.compile(mode="reduce-overhead"), CUDAGraph, larger batch',
    exceptions="Shapes or control flow change from call to call, or Python between the launches needs their results.",
    measured=(
        "Replay with launch calls and the host time between them gone, as in one graph launch; waits, input work "
        "and pauses over 1 ms stay. At most all idle time; other ranks are taken to be as they were."
    ),
    link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    code_before="output = model(image)",
    code_after="""\
model = torch.compile(model, mode="reduce-overhead")  # a CUDA graph
output = model(image)""",
    finding=finding,
    idle=True,
    costs=("launches",),
    after=("input", "python", "allocations"),
    roots=(
        "sync-stall",
        "iteration-sync",
        "pageable-copy",
        "input-wait",
        "allocator-stall",
        "warm-up",
        "profiler-overhead",
    ),
)
