"""Workers of a loader that deliver more slowly than the device takes."""

from __future__ import annotations

from math import ceil, isinf

from analyze.findings.finding import Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.metrics.vocabulary import FEWEST_STEPS
from analyze.units import duration, percent, plural

_TENTHS = 10


def check(case: Case) -> Outcome:
    """Whether workers starve most steps, and how much faster they would have to be."""
    if case.doubt:
        return Unmeasured(RULE.id, case.doubt)
    found = case.measures.starvation
    if found.steps < FEWEST_STEPS:
        return Passed(RULE.id, "no loader with workers in three steps or more")
    if found.share < case.limit(RULE):
        return Passed(RULE.id, f"{found.starved:,} of {plural(found.steps, 'step')} wait for workers")
    times = "many" if isinf(found.times) else f"{ceil(_TENTHS * found.times) / _TENTHS:,.1f}"
    observed = (
        f"In {found.starved:,} of {plural(found.steps, 'step')} the GPU is idle while the host waits for the loader's "
        f"workers: {duration(found.idle_ns)}, {percent(found.idle_ns / max(found.wall_ns, 1))} of these steps. "
        f"Batches would have to come {times} times as fast. What that saves is input-wait's."
    )
    change = f"{times} times the workers, or less work per sample in them (decode, augment, collate)"
    return case.remark(
        RULE,
        f"The loader starves {found.starved:,} of {plural(found.steps, 'step')}",
        observed,
        "medium",
        change=change,
    )


RULE = Rule(
    id="loader-starved",
    question="Do the DataLoader's workers keep up?",
    limit=0.5,
    of="steps that idle for a tenth of their time while the host waits for workers",
    what="In most steps the device idles at their input, though worker processes load it.",
    why="Worker processes deliver batches more slowly than the device takes them, and no queue can make up for that.",
    fix="more workers, or less work per sample in them (decode, augment, collate)",
    exceptions="The workers wait for a disk or a network, or all CPU cores are busy: then more of them do not help.",
    measured=(
        "Idle time of the device inside waits for workers, step by step, in three steps or more. Waits that another "
        "thread fills by pinning memory do not count. No saving is stated: input-wait has it."
    ),
    link="https://docs.pytorch.org/docs/stable/data.html",
    code_before="loader = DataLoader(data, num_workers=2)",
    code_after="loader = DataLoader(data, num_workers=8, prefetch_factor=4)",
    check=check,
)
