"""Collectives that no computation hides."""

from __future__ import annotations

from msgspec.structs import replace

from analyze.findings.finding import Finding, Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Cost, Rule
from analyze.findings.states import window_states
from analyze.findings.verdict import state_percents
from analyze.units import duration, plural


def check(case: Case) -> Outcome:
    """What would be saved if all collectives were hidden that do more than wait."""
    savings = case.measures.savings
    if savings.scenario("communication") is None and savings.scenario("collective-latency"):
        return Passed(RULE.id, "all collectives wait rather than transfer: collective-latency")
    cost = case.cost(RULE)
    return cost if isinstance(cost, Passed | Unmeasured) else _finding(case, cost)


def _finding(case: Case, cost: Cost) -> Finding:
    share = state_percents(window_states(case.device))["communication"]
    observed = (
        f"{plural(cost.scenario.count, 'collective')}: {duration(cost.scenario.time_ns)}. Of all communication, "
        f"{duration(case.device.exposed_communication_ns)}, {share} of the window, has no computation beside it."
    )
    trains = case.measures.symptoms.backward
    change = (_IN_TRAINING if trains else _IN_INFERENCE).get(cost.scenario.kind, "")
    free_ns = _free_computation_ns(case)
    if free_ns < _HARDLY * case.device.exposed_communication_ns:
        observed += f" Computation without a collective beside it takes {duration(free_ns)}: no more can be hidden."
        change = _LESS if trains and cost.scenario.kind == "all_reduce" else change
    finding = case.finding(RULE, cost, "Collectives are not hidden by computation", observed, change=change)
    return finding if trains else replace(finding, exceptions=_ELSEWHERE)


def _free_computation_ns(case: Case) -> int:
    """Computation that no collective runs beside yet, in nanoseconds: what could hide more of them."""
    both = zip(case.measures.devices, case.measures.overlap, strict=False)
    pairs = [pair for device, overlap in both if device == case.device for pair in overlap.pairs]
    beside = sum(p.overlapped_ns for p in pairs if (p.first, p.second) == ("computation", "communication"))
    return case.device.computation_ns - beside


_HARDLY = 0.5  # of exposed communication: with less computation free, overlap alone does not help
_LESS = "exchange less: accumulate gradients under no_sync(), or a larger batch per step"
_SPLIT = "halve the batch: exchange one half while the other is computed"
_IN_TRAINING = {
    "all_reduce": "start them during the backward (DDP bucket_cap_mb), or accumulate gradients under no_sync()",
    "reduce_scatter": "FSDP: reduce while the layer before is computed (backward_prefetch), fewer and larger groups",
    "all_gather": "FSDP: gather the next layer early (forward_prefetch=True, backward_prefetch=BACKWARD_PRE)",
    "broadcast": "DDP(broadcast_buffers=False), if ranks need not share their buffers",
    "all_to_all": _SPLIT,
    "sendrecv": f"of an all-to-all, {_SPLIT}; of a pipeline, more and smaller microbatches",
    "send": "more and smaller microbatches, or an interleaved pipeline schedule",
    "recv": "more and smaller microbatches, or an interleaved pipeline schedule",
}
_TENSOR_PARALLEL = "fewer ranks per model, or a kernel that joins the collective with the GEMM or norm beside it"
_IN_INFERENCE = {
    "all_reduce": _TENSOR_PARALLEL,
    "reduce_scatter": _TENSOR_PARALLEL,
    "all_gather": _TENSOR_PARALLEL,
    "all_to_all": _SPLIT,
    "sendrecv": f"of an all-to-all, {_SPLIT}; of a pipeline, more requests in flight",
    "send": "more requests in flight, so that all stages of the pipeline work",
    "recv": "more requests in flight, so that all stages of the pipeline work",
}
_ELSEWHERE = "The backward pass lies outside the recording: gradients can be exchanged during it."

RULE = Rule(
    id="exposed-communication",
    question="Is communication exposed?",
    limit=0.01,
    what="Collectives run while nothing is computed.",
    why="The device waits for the network; overlapped with computation the same transfer would cost nothing.",
    fix="launch them on a stream of their own, before the computation that does not need them",
    exceptions="What is sent is needed at once, as in tensor parallelism.",
    measured=(
        "Replay with collectives that take no time: an upper bound for hiding them all. Those that only wait are "
        "counted by collective-latency and collective-wait."
    ),
    link="https://docs.pytorch.org/docs/stable/notes/ddp.html",
    code_before="""\
model = DistributedDataParallel(model)
for batch in micro_batches:
    loss(model, batch).backward()""",
    code_after="""\
model = DistributedDataParallel(model)
for batch in micro_batches[:-1]:
    with model.no_sync():
        loss(model, batch).backward()
loss(model, micro_batches[-1]).backward()""",
    check=check,
    costs=("communication",),
    after=("collective-waits", "collective-latency"),
)
