"""What only first iterations do, inside the window."""

from __future__ import annotations

from msgspec.structs import replace

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit, in_steps
from analyze.metrics.vocabulary import RECOMPILATION
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What the window would be without it."""
    worst = cost.scenario.places[0]
    if cost.scenario.origin:
        return _compiles(case, cost)
    what = plural(cost.scenario.count, "call")
    inside = f" inside {worst.where}" if worst.where else ""
    observed = (
        f"{what} of first use (module loads, compilation, memory from the driver): {duration(cost.scenario.time_ns)} "
        f"of host time, {duration(worst.time_ns)} of it in {worst.name}{inside}."
    )
    name = worst.name if worst.name.endswith("Loading") else culprit(worst.name)
    return case.finding(RULE, cost, f"Warm-up is in the window: {name}", observed)


def _compiles(case: Case, cost: Cost) -> Finding:
    """Compilation is most of it."""
    scenario, again = cost.scenario, cost.scenario.origin == RECOMPILATION
    where = in_steps(scenario.steps, len(case.measures.steps))
    worst = scenario.places[0]
    what = "torch.compile compiles again" if again else "torch.compile compiles"
    observed = (
        f"{what}{where}: {duration(scenario.time_ns)} of host time, {duration(worst.time_ns)} of it in {worst.name}."
    )
    step = where.removeprefix(" in ").capitalize()
    does = "recompiles" if again else "compiles"
    title = f"{step} {does}" if step else f"torch.compile {does} inside the window"
    finding = case.finding(RULE, cost, title, observed, change=_STOP if again else "")
    return replace(finding, exceptions=_ONCE) if again else finding


_STOP = (
    "TORCH_LOGS=recompiles names the guard that fails; torch._dynamo.mark_dynamic() for a size that changes; or more "
    "warm-up steps before recording"
)
_ONCE = "All shapes have been met after that: then it happens once, and only the recording is slower."

RULE = Rule(
    id="warm-up",
    question="Is warm-up part of the window?",
    limit=0.01,
    what=(
        "Modules are loaded, code is compiled, graphs are captured inside the window; launch calls take over a "
        "millisecond."
    ),
    why="It happens once, so the window is slower than what follows: figures per step are too high.",
    fix="schedule(wait=1, warmup=3, active=3)",
    exceptions="Start-up is what is to be measured.",
    measured=(
        "Replay without launch calls over 1 ms, lazy loading, compilation, graph capture, and calls that take over "
        "100 ms to get memory or make a stream. Where hardly anything is given back, the allocator's cache only fills: "
        "then its calls are gone too."
    ),
    link="https://docs.pytorch.org/docs/stable/profiler.html",
    code_before="""\
with profile() as prof:
    model(batch)""",
    code_after="""\
for _ in range(3):
    model(batch)
torch.cuda.synchronize()
with profile() as prof:
    model(batch)""",
    finding=finding,
    idle=True,
    bound=False,
    costs=("first-use",),
)
