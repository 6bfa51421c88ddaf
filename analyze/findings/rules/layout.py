"""Kernels that change the layout of tensors around convolutions."""

from __future__ import annotations

from analyze.findings.finding import Finding
from analyze.findings.rule import Case, Cost, Rule
from analyze.units import duration, percent, plural


def finding(case: Case, cost: Cost) -> Finding:
    """What would be saved if tensors stood in the layout that the kernels want."""
    total = max(case.measures.fusion.total_ns, 1)
    observed = (
        f"{plural(cost.scenario.count, 'kernel')} that turn NCHW into NHWC or back around convolutions: "
        f"{duration(cost.scenario.time_ns)}, {percent(cost.scenario.time_ns / total)} of activity time."
    )
    of_miopen = any(place.name.startswith("batched_transpose") for place in cost.scenario.places)
    change = RULE.fix + (" and PYTORCH_MIOPEN_SUGGEST_NHWC=1" if of_miopen else "")
    return case.finding(RULE, cost, "Convolutions transpose their tensors", observed, change=change)


RULE = Rule(
    id="layout",
    question="Are tensors converted between NCHW and NHWC around convolutions?",
    limit=0.01,
    what="The library turns tensors from NCHW into NHWC before a convolution, and back behind it.",
    why="Its kernels on tensor cores want NHWC; each change reads and writes the whole tensor.",
    fix="model and input in channels_last: .to(memory_format=torch.channels_last)",
    exceptions="They are in channels_last already: then an op between them returns NCHW, and that op is to be found.",
    measured="Replay without these kernels and the gaps before them.",
    link="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
    code_before="model(images)",
    code_after="""\
model = model.to(memory_format=torch.channels_last)
model(images.to(memory_format=torch.channels_last))""",
    finding=finding,
    costs=("layout",),
)
