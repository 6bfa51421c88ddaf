"""The host waits for the device inside an op, to read a result."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit, gaps_table
from analyze.units import duration, percent, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved if such waits returned at once."""
    worst = cost.scenario.places[0]
    place = worst.where or worst.name
    observed = (
        f"{plural(cost.scenario.count, 'blocking call')} inside ops: {duration(cost.scenario.time_ns)} of host time. "
        f"Worst place: {place} ({plural(worst.count, 'call')}, {duration(worst.time_ns)}). "
        f"Idle time right after blocking calls is {percent(case.share(case.device.exposed_sync_ns))} of the window"
    )
    more = cost.saving is not None and cost.saving.ns > case.device.exposed_sync_ns
    observed += "; the rest of the saving is the head start that the host loses." if more else "."
    title = f"Host waits for results in {culprit(worst.where or worst.name)}"
    gaps = gaps_table(case.measures.savings.gaps(*RULE.costs), case.device)
    return case.finding(RULE, cost, title, observed, evidence=gaps)


RULE = Rule(
    id="sync-stall",
    question="Do ops make the host wait for results?",
    limit=0.01,
    what="`.item()`, `.cpu()`, `nonzero` and the like stop the host until the device has caught up.",
    why="While the host waits it launches nothing; the device runs dry and idles until new work arrives.",
    fix="keep it on the GPU, or copy with non_blocking=True and read it later",
    exceptions="The program's next launches depend on the value.",
    measured=(
        "Replay with these calls returning at once; what input work hides is not counted. An upper bound where later "
        "launches depend on the result."
    ),
    link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    code_before="""\
for batch in loader:
    loss = train_step(batch)
    total += loss.item()""",
    code_after="""\
for batch in loader:
    loss = train_step(batch)
    total += loss.detach()
print(total.item())""",
    finding=finding,
    idle=True,
    costs=("waits",),
    after=("input",),
    rivals=("python",),
)
