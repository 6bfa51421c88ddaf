"""Copies from one place of the GPU's memory to another."""

from __future__ import annotations

from msgspec.structs import replace

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.words import culprit, last_part
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved without them."""
    scenario = cost.scenario
    worst = next((place for place in scenario.places if place.where), scenario.places[0])
    each = duration(scenario.time_ns // max(scenario.count, 1))
    place = worst.where or worst.name
    many = plural(scenario.count, "copy", "copies")
    observed = (
        f"{many} inside the GPU's memory: {duration(scenario.time_ns)}, {each} on average. "
        f"{worst.count:,} of them by {place}."
    )
    of_ddp = [option for words, option in _OF_DDP.items() if any(words in p.where for p in scenario.places)]
    change = f"DistributedDataParallel(model, {', '.join(of_ddp)})" if of_ddp else ""
    if worst.where.startswith(TRACED) and not (scenario.dispatch and scenario.dispatch.is_compiled):
        change = _INDUCTOR
    finding = case.finding(RULE, cost, f"{many} inside the GPU: {culprit(last_part(place))}", observed, change=change)
    return replace(finding, exceptions=_UNLESS_DDP) if of_ddp else finding


TRACED = "CompiledFunction"  # of AOTAutograd, whose graphs other backends than Inductor run op by op
_INDUCTOR = 'torch.compile(backend="inductor"): the backend in use runs each copy of its graph as a call of its own'
_OF_DDP = {
    "copy_bucket_to_grad": "gradient_as_bucket_view=True",
    "DistributedDataParallel.forward": "broadcast_buffers=False",
}
_UNLESS_DDP = "The program detaches gradients in place, or the ranks must share buffers such as running means."

RULE = Rule(
    id="device-copies",
    question="Do copies within the GPU's memory add up?",
    limit=0.01,
    what="Tensors are copied from one place of the GPU's memory to another, often many small ones one by one.",
    why="Each copy reads and writes its bytes once more, and a small one costs a launch and a gap besides.",
    fix="write results where they are read (out=, views, one preallocated tensor), or copy many at once (torch.cat)",
    exceptions="The copy changes what a kernel behind it needs, as contiguous() does for one that takes no strides.",
    measured="Replay without these copies, the gaps before them and the host time of ops that launch nothing else.",
    link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    code_before="""\
for i, row in enumerate(rows):
    result[i].copy_(row)""",
    code_after="torch.stack(rows, out=result)",
    finding=finding,
    costs=("copies-inside",),
)
