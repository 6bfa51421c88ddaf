"""A precision was asked for and another one ran."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Unmeasured
from analyze.findings.rule import Case, Rule
from analyze.findings.words import slower_products
from analyze.metrics.vocabulary import NOTHING_FASTER
from analyze.units import duration, plural


def check(case: Case) -> Outcome:
    """What the precision that was asked for would save."""
    audit = case.measures.precision
    if not audit.asked:
        return Unmeasured(RULE.id, "the file does not say what precision was asked for (capture records it)")
    scenario = case.measures.savings.scenario(RULE.costs[0])
    if scenario and scenario.precision == NOTHING_FASTER:
        observed = (
            f"{plural(scenario.count, 'GEMM or convolution kernel')} ran without it: {duration(scenario.time_ns)}."
        )
        title = f"This GPU is no faster in {audit.asked}"
        return case.remark(RULE, title, observed, "low", change="fp32, or fp16 where fp32-gemm names it")
    title = f"Asked for {audit.asked}, products ran in another precision"
    what = f"slower than the {audit.asked} that was asked for"
    return slower_products(case, RULE, title, what, noun="GEMM or convolution")


RULE = Rule(
    id="precision-not-used",
    question="Did the kernels run in the precision that was asked for?",
    limit=0.01,
    what="The kernels' names say another precision than the run was made for.",
    why="A switch that did nothing costs accuracy decisions and saves no time.",
    fix="set both allow_tf32 switches; cast the whole model; sizes in multiples of 8",
    exceptions="The rest is attention or fp32 by design, such as a loss.",
    measured="Replay with these kernels shortened by the ratio of the GPU's dense peaks (gpus.toml): an upper bound.",
    link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    code_before="torch.backends.cuda.matmul.allow_tf32 = True",
    code_after="""\
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True""",
    check=check,
    costs=("asked-precision",),
)
