"""Attention as separate products and a softmax."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, percent, plural


def tell(case: Case, cost: Cost) -> Finding:
    """What a fused kernel would save at most."""
    total = max(case.measures.fusion.total_ns, 1)
    seen = (
        f"Softmax, masks and scaling of unfused attention: {plural(cost.scenario.count, 'kernel')}, "
        f"{duration(cost.scenario.time_ns)}, {percent(cost.scenario.time_ns / total)} of "
        "activity time, beside the products."
    )
    return case.finding(RULE, cost, "Attention is not fused: separate softmax kernels", seen)


RULE = Rule(
    id="unfused-attention",
    asks="Is attention fused?",
    limit=0.01,
    what="Attention runs as batched products with a softmax between them.",
    why="The matrix of scores goes to memory and back several times; a fused kernel keeps it on the chip.",
    fix='F.scaled_dot_product_attention, attn_implementation="sdpa"',
    unless="The model returns attention weights, or its mask or head size keeps fused kernels out.",
    measured=(
        "Replay without softmax, elementwise, reduction and dropout kernels of attention, and the host time of their "
        "ops; its products stay. "
        "A fused kernel still computes the softmax, but no longer writes and reads the scores."
    ),
    link="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    tell=tell,
    bound=False,
    costs=("attention",),
)
