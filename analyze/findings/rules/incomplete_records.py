"""Trust first: without complete device records no advice on idle time can be given."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed
from analyze.findings.rule import Case, Rule
from analyze.units import percent, plural


def check(case: Case) -> Outcome:
    """Whether idle time can be judged."""
    launches = case.measures.launches
    if not case.doubt:
        return Passed(RULE.id, f"{percent(launches.complete_share)} of launch calls have an activity")
    observed = (
        f"{launches.complete_calls:,} of {plural(launches.launch_calls, 'launch call')} have a recorded activity; "
        f"{plural(launches.unlinked, 'activity', 'activities')} of {launches.linked + launches.unlinked:,} have no "
        f"recorded launch. {case.doubt}"
    )
    change = _OTHERS if case.device.queued_long_ns and launches.complete_calls == launches.launch_calls else ""
    return case.remark(RULE, "Device records do not support idle advice", observed, "high", change=change)


_OTHERS = "record all ranks and processes that work on this GPU or with it, over the same time"

RULE = Rule(
    id="incomplete-records",
    question="Are the device records complete?",
    limit=None,
    of="as for the verdict: `analyze explain verdict`",
    what="The file lacks activities that were launched, or work was queued for reasons that the file does not hold.",
    why="Time without a record looks like idle time, so every figure on idle time is an upper bound.",
    fix="record fewer steps after a warm-up step, and let the file be written to its end",
    exceptions="The missing launches were captured into a CUDA graph: the report then says so.",
    measured="Launch calls without an activity, the end of the file, and queued work that did not start.",
    link="https://docs.pytorch.org/docs/stable/profiler.html",
    code_before="""\
with profile() as prof:
    for batch in loader:
        train_step(batch)""",
    code_after="""\
with profile(schedule=schedule(wait=1, warmup=3, active=3)) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()""",
    check=check,
)
