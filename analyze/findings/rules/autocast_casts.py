"""Casts that autocast makes in every step."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What a model in half precision would save."""
    steps = len(case.measures.steps)
    often = f" ({cost.scenario.count / steps:.3g} per step)" if steps > 1 else ""
    observed = f"{plural(cost.scenario.count, 'cast')} by autocast{often}: {duration(cost.scenario.time_ns)}."
    return case.finding(RULE, cost, f"Autocast casts tensors {cost.scenario.count:,}x", observed)


RULE = Rule(
    id="autocast-casts",
    question="Does autocast convert the same weights again and again?",
    limit=0.01,
    what="Autocast casts fp32 weights and inputs to half precision in every forward.",
    why="Each cast reads four bytes and writes two per value, for weights that do not change in inference.",
    fix="cast the model once: model.to(torch.bfloat16), without autocast",
    exceptions="The model is trained, and keeps its master weights in fp32.",
    measured="Replay without the kernels that change types for autocast, and the host time of the ops that cast.",
    link="https://docs.pytorch.org/docs/stable/amp.html",
    code_before="""\
with torch.autocast("cuda", dtype=torch.bfloat16), torch.inference_mode():
    model(batch)""",
    code_after="""\
model = model.to(torch.bfloat16)
with torch.inference_mode():
    model(batch.to(torch.bfloat16))""",
    finding=finding,
    costs=("casts",),
)
