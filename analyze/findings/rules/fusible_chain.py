"""Memory-bound kernels back to back, which a compiler would fuse."""

from __future__ import annotations

import re

from analyze.findings.eager import fusing_change, unless_compiled
from analyze.findings.finding import Finding, Outcome
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, plural


def check(case: Case) -> Outcome:
    """What would be saved, unless a compiler had its chance."""
    return unless_compiled(case, RULE, _finding)


def _finding(case: Case, cost: Cost) -> Finding:
    """What one pass per chain would save."""
    count = cost.scenario.count
    observed = (
        f"{plural(count, 'chain')} of memory-bound kernels between two heavy ones: "
        f"{duration(cost.scenario.time_ns)}. In a chain each kernel reads what the one before has just written."
    )
    dequantizes = any(re.match(_DEQUANTIZES, place.name) for place in cost.scenario.places)
    change = _IN_ONE_TYPE if dequantizes else fusing_change(RULE.fix, cost.scenario.dispatch)
    return case.finding(
        RULE, cost, f"{plural(count, 'chain')} of memory-bound kernels unfused", observed, change=change
    )


_DEQUANTIZES = r"(void )?kDequantizeBlockwise\b"
_IN_ONE_TYPE = (
    "no compiler fuses the bitsandbytes kernels among them: quantize from the type that the model computes in "
    "(bfloat16), so that dequantized weights need no cast; torch.compile(model) for the rest"
)

RULE = Rule(
    id="fusible-chain",
    question="Could memory-bound kernels be fused?",
    limit=0.01,
    what="Elementwise, normalization, copy and cast kernels follow one another on a stream.",
    why="Each of them reads and writes its tensors in memory; fused they would be read and written once.",
    fix="torch.compile(model)",
    exceptions="A library kernel or a graph break separates them, or their shapes differ too much for one loop.",
    measured=(
        "Replay with every chain as long as its longest kernel, a pass over its largest tensors: an upper bound. "
        "The host time of the ops that launched the others is gone too."
    ),
    link="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    code_before="""\
def gate(x, y):
    return torch.sigmoid(x) * y + x""",
    code_after="""\
@torch.compile
def gate(x, y):
    return torch.sigmoid(x) * y + x""",
    check=check,
    costs=("chains",),
)
