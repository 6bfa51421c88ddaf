"""The program synchronises explicitly, outside ops, again and again."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved without explicit synchronisations."""
    worst = cost.scenario.places[0]
    steps = len(case.measures.steps)
    often = f" ({cost.scenario.count / steps:.3g} per step)" if steps > 1 else ""
    observed = (
        f"Host time in {plural(cost.scenario.count, 'explicit synchronisation')}{often}: "
        f"{duration(cost.scenario.time_ns)}, most of it in {worst.name}"
        f"{f' at {worst.where}' if worst.where else ''}."
    )
    return case.finding(RULE, cost, f"{culprit(worst.name)} stops the host {cost.scenario.count:,}x", observed)


RULE = Rule(
    id="iteration-sync",
    question="Does the program synchronize explicitly?",
    limit=0.01,
    what="The program synchronises with the device, a stream or an event outside ops, often once an iteration.",
    why="The host loses its head start at each of them, and the device idles until the next launches arrive.",
    fix="no torch.cuda.synchronize() in the loop; time with CUDA events",
    exceptions="It stands there to measure: then the measured program is slower than the real one.",
    measured="Replay with these calls returning at once; what input work hides is not counted.",
    link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    code_before="""\
for batch in loader:
    start = time.perf_counter()
    train_step(batch)
    torch.cuda.synchronize()
    times.append(time.perf_counter() - start)""",
    code_after="""\
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
for batch in loader:
    train_step(batch)
end.record()
end.synchronize()
total_ms = start.elapsed_time(end)""",
    finding=finding,
    idle=True,
    costs=("explicit-waits",),
    after=("input",),
    rivals=("python",),
)
