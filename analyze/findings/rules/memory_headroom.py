"""How full the device's memory is."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.units import memory, percent


def check(case: Case) -> Outcome:
    """The reserved peak against what the device has."""
    total = case.measures.symptoms.memory_bytes
    peaks = [
        d.reserved_peak_bytes for d in case.measures.memory.devices if d.device_type == 1 and d.reserved_peak_bytes
    ]
    if not total or not peaks:
        return Unmeasured(RULE.id, "the reserved memory or the device's size is not recorded (profile_memory=True)")
    share = max(peaks) / total
    if share < case.limit(RULE):
        return Passed(RULE.id, f"{percent(share)} of the memory reserved at most")
    observed = f"At most {memory(max(peaks))} of {memory(total)} are reserved, {percent(share)} of the device's memory."
    return case.remark(RULE, f"GPU memory is {percent(share)} full", observed, "medium")


RULE = Rule(
    id="memory-headroom",
    question="Is the GPU's memory nearly full?",
    limit=0.90,
    of="device's memory, reserved at the peak",
    what="The caching allocator holds nearly all of the device's memory.",
    why="A slightly larger input then fails, or makes the allocator give memory back, which waits for the device.",
    fix="a smaller batch or activation checkpointing; record a memory snapshot",
    exceptions="Sizes never change.",
    measured="Peak of reserved memory in the profiler's memory events against the device's total; a risk has no time.",
    link="https://docs.pytorch.org/docs/stable/torch_cuda_memory.html",
    code_before="hidden = block(hidden)",
    code_after="hidden = checkpoint(block, hidden, use_reentrant=False)  # torch.utils",
    check=check,
)
