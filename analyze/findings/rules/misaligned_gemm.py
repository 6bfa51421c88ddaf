"""Half-precision GEMMs of sizes that tensor cores are not fed well with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from analyze.blocks import Column, Kind, Table
from analyze.findings.finding import Outcome, Passed, Severity
from analyze.findings.rule import Case, Rule
from analyze.units import duration, percent, plural

if TYPE_CHECKING:
    from analyze.metrics.alignment import Alignment

_MUCH = 0.10  # of activity time: above it the remark is medium


def check(case: Case) -> Outcome:
    """How much time unaligned half-precision GEMMs take."""
    found = case.measures.alignment
    if not found.count:
        return Passed(RULE.id, "no half-precision GEMM with unaligned operands")
    if found.share < case.limit(RULE):
        return Passed(RULE.id, f"{percent(found.share)} of activity time")
    worst = found.worst[0]
    observed = (
        f"{plural(found.count, 'half-precision GEMM kernel')} for unaligned operands: {duration(found.sum_ns)}, "
        f"{percent(found.share)} of activity time."
    )
    change = ""
    if worst.sizes:
        sizes = " and ".join(f"{size:,}" for size in worst.sizes)
        observed += f" Most of it multiplies sizes that are not multiples of 8: {sizes}."
        change = f"pad {sizes} to a multiple of 8 (the shapes are listed)"
    level: Severity = "medium" if found.share >= _MUCH else "low"
    outcome = case.remark(RULE, "Half-precision GEMMs have unaligned sizes", observed, level, change=change)
    return replace(outcome, evidence=_shapes(found))


def _shapes(found: Alignment) -> tuple[Table, ...]:
    return (
        Table(
            title="Products with unaligned operands",
            columns=(
                Column("op", Kind.CODE),
                Column("input shapes", Kind.CODE),
                Column("not multiples of 8", Kind.TEXT),
                Column("kernels", Kind.COUNT),
                Column("time", Kind.TIME),
            ),
            rows=tuple(
                (w.op or None, w.input_dims or None, ", ".join(map(str, w.sizes)) or None, w.count, w.sum_ns)
                for w in found.worst
            ),
        ),
    )


RULE = Rule(
    id="misaligned-gemm",
    question="Are the sizes of half-precision GEMMs aligned?",
    limit=0.05,
    of="activity time, in half-precision GEMMs of unaligned operands",
    what="The library chose kernels that load one or two values at once (align1, align2) for half-precision GEMMs.",
    why="Such loads do not keep tensor cores fed, and the fastest kernels of the GPU cannot be chosen.",
    fix="pad sizes to multiples of 8, and let tensors and views begin at multiples of 16 bytes",
    exceptions="The size cannot change; even then padding inside the op may pay.",
    measured="Time of these kernels by name; what aligned ones would take is not in the file, so no saving is stated.",
    link="https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
    code_before="nn.Linear(768, 50257)",
    code_after="nn.Linear(768, 50304)  # a multiple of 8; ignore the outputs beyond 50257",
    check=check,
)
