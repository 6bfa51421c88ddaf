"""Input work, or other Python, on the thread that launches."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit, is_frame
from analyze.units import duration, percent

_PARTS = ("host_data_loading_ns", "host_other_ns")


def tell(case: Case, cost: Cost) -> Finding:
    """What would be saved if that work ran elsewhere."""
    loading = case.measures.savings.scenario("input")
    loads = cost.scenario is loading
    frames = next((g.frame for g in case.measures.gaps if any(p in g.parts for p in _PARTS) and is_frame(g.frame)), ())
    named = [frame for frame in frames if not frame.startswith("<")]
    worst = cost.scenario.places[0]
    where = named[0] if named else worst.where
    who = "DataLoader work" if loads else "Python"
    place = f", in {where}" if where else ""
    under = f" under {named[-1]}" if len(named) > 1 else ""
    seen = (
        f"{who} on the launching thread: {duration(cost.scenario.time_ns)}{place}{under}. "
        f"The GPU idles for {percent(case.share(case.device.idle['host_data_loading_ns']))} of the window inside "
        f"DataLoader work and for {percent(case.share(case.device.idle['host_other_ns']))} outside ops."
    )
    title = f"{who} on the launching thread{': ' + culprit(where) if where else ''}"
    return case.finding(RULE, cost, title, seen, change="" if loads else _ELSEWHERE)


_ELSEWHERE = "move that work to another thread or process, or launch the next step before it"

RULE = Rule(
    id="input-wait",
    asks="Does the device wait for input or Python?",
    limit=0.01,
    what="The thread that launches kernels also loads and prepares data, or runs other Python for milliseconds.",
    why="It launches nothing meanwhile, and the device runs out of work.",
    fix="DataLoader(num_workers=4, persistent_workers=True)",
    unless="The workers cannot keep up: n workers need at least 1/n of this time per step.",
    measured="Replay with DataLoader work and pauses over 1 ms gone from the launching threads.",
    link="https://docs.pytorch.org/docs/stable/data.html",
    tell=tell,
    idle=True,
    costs=("input", "python"),
)
