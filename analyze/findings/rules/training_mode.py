"""Training's work in a run without a backward pass."""

from __future__ import annotations

from analyze.findings.finding import Finding, Outcome, Passed, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.units import duration, plural


def check(case: Case) -> Outcome:
    """Dropout, batch statistics, and a graph that nothing uses."""
    symptoms = case.measures.symptoms
    if not symptoms.ops:
        return Unmeasured(RULE.id, "no framework ops in the file")
    if symptoms.backward:
        return Passed(RULE.id, "a backward pass is in the file")
    return _dropout(case) or _without_backward(case)


def _dropout(case: Case) -> Finding | None:
    cost = case.cost(RULE)
    if isinstance(cost, Passed | Unmeasured):
        return None
    observed = (
        f"{plural(cost.scenario.count, 'dropout kernel')} without a backward pass: {duration(cost.scenario.time_ns)}."
    )
    return case.finding(RULE, cost, "Dropout runs without a backward pass", observed)


def _without_backward(case: Case) -> Outcome:
    symptoms = case.measures.symptoms
    if symptoms.norm_kernels:
        observed = (
            f"{plural(symptoms.norm_kernels, 'kernel')} of batch normalization in training mode, and no backward pass."
        )
        return case.remark(RULE, "Batch normalization runs in training mode", observed, "low")
    if symptoms.graph_ops > case.limit(RULE) * symptoms.ops:
        observed = (
            f"{symptoms.graph_ops:,} of {plural(symptoms.ops, 'op')} record a graph for a backward pass that is not in "
            "the file."
        )
        return case.remark(RULE, "Autograd graph recorded without backward", observed, "low")
    return Passed(RULE.id, "no dropout, no batch statistics, no graph")


RULE = Rule(
    id="training-mode",
    question="Does inference run in training mode?",
    limit=0.01,
    what="Dropout, batch statistics or the recording of a graph, in a run without a backward pass.",
    why="Dropout and batch statistics change the results; a graph takes host time and keeps activations in memory.",
    fix="model.eval() and torch.inference_mode()",
    exceptions="The backward pass lies outside the recording.",
    measured=(
        "Replay without dropout kernels and the host time of their ops; the cost of recording a graph is host time "
        "that is not shown separately."
    ),
    link="https://docs.pytorch.org/docs/stable/notes/autograd.html",
    code_before="output = model(batch)",
    code_after="""\
model.eval()
with torch.inference_mode():
    output = model(batch)""",
    check=check,
    costs=("dropout",),
)
