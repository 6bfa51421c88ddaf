"""Copies to the device that no computation hides."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, percent, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved if computation hid all of them."""
    scenario, exposed = cost.scenario, case.device.exposed_copy_ns
    observed = (
        f"{plural(scenario.count, 'copy', 'copies')} to the GPU: {duration(scenario.time_ns)}. Of all copies, "
        f"{duration(exposed)}, {percent(case.share(exposed))} of the window, have no computation beside them."
    )
    pageable = any("Pageable" in place.name for place in scenario.places)
    if scenario.hidable_ns is not None and not pageable:
        observed += f" Computation that comes before them could hide {duration(scenario.hidable_ns)} of their time."
    change = _PIN_FIRST if pageable else ""
    return case.finding(RULE, cost, "Copies to the GPU are not hidden", observed, change=change)


_PIN_FIRST = "pin_memory=True, non_blocking=True, and copy the next batch on a second stream"

RULE = Rule(
    id="exposed-copies",
    question="Do copies to the GPU hold up computation?",
    limit=0.02,
    what="Copies to the GPU run while nothing is computed.",
    why="A copy engine works beside the multiprocessors: a copy that runs during a kernel costs next to nothing.",
    fix="copy the next batch on a second stream while this one is computed",
    exceptions="What is copied depends on the computation before it, or memory has no room for a second batch.",
    measured=(
        "Replay with copies to the GPU as short as computation before them allows; the first has nothing to hide "
        "behind. Copies of pageable memory go as a whole: pinned they would be shorter, by how much is not recorded."
    ),
    link="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    code_before="""\
for batch in loader:
    model(batch.to("cuda"))""",
    code_after="""\
side = torch.cuda.Stream()


def fetch():
    with torch.cuda.stream(side):
        return next(pinned_batches).to("cuda", non_blocking=True)


upcoming = fetch()
for _ in range(steps):
    torch.cuda.current_stream().wait_stream(side)
    batch, upcoming = upcoming, fetch()
    batch.record_stream(torch.cuda.current_stream())
    model(batch)""",
    finding=finding,
    costs=("inbound-copies",),
)
