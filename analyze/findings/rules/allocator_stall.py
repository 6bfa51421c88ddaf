"""Memory from the driver, or back to it, inside the window."""

from __future__ import annotations

from msgspec.structs import replace

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit
from analyze.metrics.vocabulary import EMPTY_CACHE
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved without such calls."""
    worst = cost.scenario.places[0]
    observed = (
        f"{plural(cost.scenario.count, 'call')} to the driver's allocator: {duration(cost.scenario.time_ns)} of host "
        f"time, {duration(worst.time_ns)} of it in {worst.name}."
    )
    title = f"{culprit(worst.name)} called {worst.count:,}x inside the window"
    if cost.scenario.origin != EMPTY_CACHE:
        return case.finding(RULE, cost, title, observed)
    under = f" under {worst.where}" if worst.where else ""
    observed += f" The calls of {worst.name} come from torch.cuda.empty_cache(){under}."
    finding = case.finding(RULE, cost, f"{culprit(worst.name)} called {worst.count:,}x by empty_cache()", observed)
    return replace(finding, change=_KEEP, exceptions=_FULL)


_KEEP = "no torch.cuda.empty_cache() in the loop: the next step needs that memory again"
_FULL = "Another process, or a library beside PyTorch, needs the memory between the steps."


RULE = Rule(
    id="allocator-stall",
    question="Does PyTorch's allocator have to ask the driver for memory?",
    limit=0.01,
    what="Calls of cudaMalloc, cudaFree and the like lie in the window: the caching allocator had no block that fits.",
    why="Such calls take milliseconds, and cudaFree waits for the device.",
    fix="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; no empty_cache() in loops",
    exceptions="The window holds the first iteration: the cache fills once, and the first call also makes the context.",
    measured="Replay without these calls; that cudaFree waits for the device is part of its recorded time.",
    link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    code_before="""\
for batch in loader:
    train_step(batch)
    torch.cuda.empty_cache()""",
    code_after="""\
for batch in loader:
    train_step(batch)""",
    finding=finding,
    idle=True,
    bound=False,
    costs=("allocations",),
    rivals=("python",),
)
