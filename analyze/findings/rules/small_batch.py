"""Grids that are smaller than the device."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed, Severity, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.units import percent

_MOST = 0.75  # of kernel time: above it the remark is medium
_WORKS = 0.10  # of the window or the step: with less busy time the remark stays low


def check(case: Case) -> Outcome:
    """Whether kernels fill the device."""
    symptoms = case.measures.symptoms
    if not symptoms.kernel_ns:
        return Unmeasured(RULE.id, "grids or the number of multiprocessors are not recorded")
    share = symptoms.underfilled_ns / symptoms.kernel_ns
    if share < case.limit(RULE):
        return Passed(RULE.id, f"{percent(share)} of kernel time has fewer blocks than multiprocessors")
    recorded = case.measures.recorded
    at = f" at batch size {recorded.batch_size:,}" if recorded and recorded.batch_size else ""
    observed = (
        f"{percent(share)} of kernel time runs in kernels with fewer blocks than the GPU has multiprocessors{at}."
    )
    return case.remark(RULE, "Kernels do not fill the GPU", observed, _level(case, share))


def _level(case: Case, share: float) -> Severity:
    """Grids are a lesser matter where the device hardly works, in its window or in the step around it."""
    device, lead = case.device, case.measures.lead
    whole_ns = max(device.window_ns, lead.step_ns if lead and lead.lone else 0)
    return "medium" if share >= _MOST and device.busy_ns >= _WORKS * whole_ns else "low"


RULE = Rule(
    id="small-batch",
    question="Do kernels fill the GPU?",
    limit=0.50,
    of="kernel time, in kernels with fewer blocks than multiprocessors",
    what="Kernels launch fewer blocks than the device has multiprocessors.",
    why="The others stand empty, so a larger batch costs little more time.",
    fix="a larger batch; capture --batch-sweep finds where throughput stops growing",
    exceptions="Latency of one sample is what counts, or streams run side by side.",
    measured="Blocks of each grid against the device's multiprocessors; what a larger batch saves is not stated. "
    "Collectives, copies and kernels that choose their grid by the device (persistent, stream-K) do not count.",
    link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    code_before="loader = DataLoader(data, batch_size=1)",
    code_after="loader = DataLoader(data, batch_size=16)",
    check=check,
)
