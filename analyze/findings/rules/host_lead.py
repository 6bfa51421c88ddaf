"""Host work around the device window of a lone step."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule, severity
from analyze.findings.step_verdict import lead_sentence
from analyze.findings.words import culprit
from analyze.metrics.vocabulary import SPEAKS
from analyze.units import percent


def check(case: Case) -> Outcome:
    """Whether the step is about as long as its device work."""
    lead = case.measures.lead
    if lead is None:
        return Passed(RULE.id, "no step or range begins before the window")
    if not lead.lone:
        return Passed(RULE.id, "several steps: the host time between them is in the window")
    if case.doubt:
        return Unmeasured(RULE.id, case.doubt)
    share = lead.beyond_share
    if share <= case.limit(RULE):
        return Passed(RULE.id, f"the step's row is longer than the window by {percent(share)} of its length")
    where = f": {culprit(lead.place[-1])}" if lead.place else ""
    return case.remark(RULE, f"The host works around the GPU{where}", lead_sentence(lead), severity(share))


RULE = Rule(
    id="host-lead",
    question="Does the step last about as long as its device work?",
    limit=SPEAKS,
    of="host row of a lone step, by which it is longer than the window",
    what="The host works for a large part of the step before the first kernel, or after the last one.",
    why="The device has nothing to do meanwhile, and the ledger's window does not show it.",
    fix="prepare input beside the step before it; warm up before recording what happens once",
    exceptions="It happens once, as start-up or compilation does, and start-up is not what is to be measured.",
    measured=(
        "The step's host row against first activity start to last activity end. The place is the innermost range, op "
        "or Python frame that covers half of the rest; no saving is stated, since the window does not hold it."
    ),
    link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    code_before="""\
for batch in loader:
    images = preprocess(batch)  # on the host, before the first kernel
    model(images.cuda())""",
    code_after="""\
loader = DataLoader(data, collate_fn=preprocess, num_workers=4)
for images in loader:
    model(images.cuda())""",
    check=check,
)
