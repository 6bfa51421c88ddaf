"""Clocks that were not steady while latency was measured."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule


def check(case: Case) -> Outcome:
    """What capture noted about the clocks."""
    recorded = case.measures.recorded
    if recorded is None:
        return Unmeasured(RULE.id, "clocks are not in the file (capture records them)")
    if not recorded.unstable:
        return Passed(RULE.id, "capture noted nothing")
    observed = "capture noted: " + "; ".join(recorded.unstable) + "."
    return case.remark(RULE, "Clocks were not steady", observed, "medium")


RULE = Rule(
    id="clocks",
    question="Were the clocks steady?",
    limit=None,
    of="every note of capture is reported",
    what="The GPU was cold, throttled by heat or power, or shared while it was measured.",
    why="Times of two runs then differ for reasons that are not in the program.",
    fix="nvidia-smi -lgc to lock clocks, a longer warm-up, an idle machine",
    exceptions="The deployment runs under the same conditions.",
    measured="Clock, temperature and throttle reasons that capture read before and after; their cost is not stated.",
    link="https://docs.nvidia.com/deploy/nvidia-smi/",
    code_before="capture --model vit_base_patch16_224",
    code_after="""\
sudo nvidia-smi -lgc 1410  # lock the clock
capture --model vit_base_patch16_224
sudo nvidia-smi -rgc""",
    check=check,
)
