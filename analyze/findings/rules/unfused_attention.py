"""Attention as separate products and a softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.metrics.vocabulary import MATH, MULTI_HEAD
from analyze.units import duration, percent, plural

if TYPE_CHECKING:
    from analyze.metrics.whatif.sdpa import MathAttention

_MOST = 0.5  # of the time: with this much of it, PyTorch's own function is what runs unfused


def finding(case: Case, cost: Cost) -> Finding:
    """What a fused kernel would save at most."""
    total = max(case.measures.fusion.total_ns, 1)
    observed = (
        f"Softmax, masks and scaling of unfused attention: {plural(cost.scenario.count, 'kernel')}, "
        f"{duration(cost.scenario.time_ns)}, {percent(cost.scenario.time_ns / total)} of "
        "activity time, beside the products."
    )
    title = "Attention is not fused: separate softmax kernels"
    if cost.scenario.origin == MULTI_HEAD:
        return case.finding(RULE, cost, title, observed, change=_NO_WEIGHTS)
    called = cost.scenario.sdpa
    if called is None or called.share < _MOST:
        return case.finding(RULE, cost, title, observed)
    observed += f" {percent(called.share)} of it runs in {MATH}: {_given(called)}."
    finding = case.finding(RULE, cost, title, observed, change=_let_in(called))
    return replace(
        finding, exceptions="The GPU or the build has no fused kernel for these inputs: the warning says so."
    )


def _given(called: MathAttention) -> str:
    """What the function was given, as far as it is recorded."""
    if not called.element:
        return "what it was given is not recorded (record_shapes=True)"
    mask = "with a mask" if called.mask else "without a mask"
    return f"{_TYPES.get(called.element, called.element)}, head size {called.head_size:,}, {mask}"


def _let_in(called: MathAttention) -> str:
    """What lets a fused kernel in: first what the inputs rule out, else the switches."""
    multiple = 8 if called.element in _HALF else 4  # 16 bytes
    reasons = []
    if called.element and called.element not in (*_HALF, "float"):
        reasons.append(f"attention in bf16 or fp16: no fused kernel takes {_TYPES.get(called.element, called.element)}")
    elif called.head_size % multiple:
        reasons.append(f"pad the head size {called.head_size:,} to a multiple of {multiple}")
    if called.mask:
        reasons.append("is_causal=True or no mask where that is what the mask says")
    if called.element == "float":
        reasons.append("bf16 or fp16, since in fp32 only the memory-efficient kernel runs")
    return "; ".join((*reasons, _ASK))


_ASK = (
    "no sdpa_kernel(SDPBackend.MATH) around it; under sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION) a warning says what "
    "keeps that kernel out"
)
_NO_WEIGHTS = "need_weights=False in the call of nn.MultiheadAttention, whose averaged weights keep fused kernels out"
_HALF = ("c10::Half", "c10::BFloat16")
_TYPES = {"float": "fp32", "double": "fp64", "c10::Half": "fp16", "c10::BFloat16": "bf16"}

RULE = Rule(
    id="unfused-attention",
    question="Is attention fused?",
    limit=0.01,
    what="Attention runs as batched products with a softmax between them.",
    why="The matrix of scores goes to memory and back several times; a fused kernel keeps it on the chip.",
    fix='F.scaled_dot_product_attention, attn_implementation="sdpa"',
    exceptions="The model returns attention weights, or its mask or head size keeps fused kernels out.",
    measured=(
        "Replay without softmax, elementwise, reduction and dropout kernels of attention, and the host time of their "
        "ops; its products stay. "
        "A fused kernel still computes the softmax, but no longer writes and reads the scores."
    ),
    link="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    code_before="""\
weights = (q @ k.transpose(-2, -1) * scale).softmax(-1)
output = weights @ v""",
    code_after="output = F.scaled_dot_product_attention(q, k, v, scale=scale)",
    finding=finding,
    bound=False,
    costs=("attention",),
)
