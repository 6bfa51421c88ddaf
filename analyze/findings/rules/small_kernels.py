"""Rows of kernels that are shorter than what it takes to start one."""

from __future__ import annotations

from analyze.findings.eager import fusing_change, unless_compiled
from analyze.findings.finding import Finding, Outcome
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, percent


def check(case: Case) -> Outcome:
    """What would be saved, unless a compiler had its chance."""
    return unless_compiled(case, RULE, _finding)


def _finding(case: Case, cost: Cost) -> Finding:
    """What the gaps between short kernels cost."""
    short, kernels = case.measures.launches.short_kernels, case.measures.launches.kernels
    observed = (
        f"Short kernels: {short:,} of {kernels:,} ({percent(short / max(kernels, 1))}). Right behind another short one "
        f"on their stream: {cost.scenario.count:,}, {duration(cost.scenario.time_ns)} in all."
    )
    change = fusing_change(RULE.fix, cost.scenario.dispatch)
    return case.finding(RULE, cost, f"Short kernels in a row: {cost.scenario.count:,}", observed, change=change)


RULE = Rule(
    id="small-kernels",
    question="Do gaps between short kernels add up?",
    limit=0.01,
    what="Many kernels below `Definitions.short_kernel_ns` follow one another on a stream.",
    why="The device needs one to two microseconds between two kernels, as long as such kernels run.",
    fix="torch.compile(model), foreach or fused optimizers, or larger tensors per call",
    exceptions="The kernels depend on a library that cannot fuse them.",
    measured=(
        "Replay without the gap between two short kernels in a row, of longer waits only what a gap usually takes; the "
        "kernels stay as long as they are."
    ),
    link="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    code_before="optimizer = torch.optim.AdamW(model.parameters(), foreach=False)",
    code_after="optimizer = torch.optim.AdamW(model.parameters(), fused=True)",
    check=check,
    costs=("short-kernels",),
)
