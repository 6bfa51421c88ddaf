"""Copies to the device that hold the host."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved if copies to the device were asynchronous."""
    worst = cost.scenario.places[0]
    place = worst.where or worst.name
    observed = (
        f"{plural(cost.scenario.count, 'copy', 'copies')} to the device with the host held: "
        f"{duration(cost.scenario.time_ns)}. Worst place: {place}. The source is pageable memory, or the copy is not "
        "asynchronous."
    )
    return case.finding(RULE, cost, f"Copies to the GPU block in {culprit(worst.where or worst.name)}", observed)


RULE = Rule(
    id="pageable-copy",
    question="Do copies to the GPU block the host?",
    limit=0.01,
    what="A copy from pageable memory, or a synchronous one, ends before its call returns.",
    why="The host cannot launch ahead, and the copy cannot overlap with kernels.",
    fix='pin_memory=True and tensor.to("cuda", non_blocking=True)',
    exceptions="The source buffer is changed right after the call.",
    measured="Replay with these calls as short as an ordinary launch; that pinned copies are faster is not counted.",
    link="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
    code_before="""\
loader = DataLoader(data)
for batch in loader:
    batch = batch.to("cuda")""",
    code_after="""\
loader = DataLoader(data, pin_memory=True)
for batch in loader:
    batch = batch.to("cuda", non_blocking=True)""",
    finding=finding,
    idle=True,
    bound=False,
    costs=("copies",),
    after=("input", "python"),
)
