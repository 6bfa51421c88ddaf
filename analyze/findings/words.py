"""Names in titles and tables of findings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from analyze.blocks import Column, Kind, Table
from analyze.findings.finding import Finding, Outcome, Passed
from analyze.findings.rule import Case, Cost, Rule
from analyze.metrics.vocabulary import NOTHING_FASTER
from analyze.units import duration, percent, plural

if TYPE_CHECKING:
    from analyze.metrics import DeviceTime
    from analyze.metrics.whatif.savings import ShrunkGap

_LONGEST = 32
_FRAME = re.compile(r"^.*\(\d+\): (\S+)")
_SEVERAL = 2
_WORTH_A_REMARK = 0.10  # of activity time: time in slow matmuls that is reported though their saving is not known


def culprit(name: str, longest: int = _LONGEST) -> str:
    """A name as one word of a title: of a Python frame its function, of a kernel what stands before its parameters."""
    found = _FRAME.match(name)
    word = found.group(1) if found else re.split(r"[\s(<]", name.removeprefix("void ").strip(), maxsplit=1)[0]
    return (word or "work")[:longest]


def last_part(name: str) -> str:
    """What a name that is too long for a title ends in: of `ddp.reducer::copy_bucket_to_grad` the function."""
    plain = "::" in name and "<" not in name and "(" not in name
    return name.rpartition("::")[2] or name if plain and len(name) > _LONGEST else name


def is_frame(names: tuple[str, ...]) -> bool:
    """Whether the evidence of a gap is Python frames rather than an op or a range."""
    return any(_FRAME.match(name) for name in names)


def in_steps(names: tuple[str, ...], total: int) -> str:
    """Where a cost arises, as the end of a sentence: " in step 10"; empty where that says nothing.

    Args:
        names: the steps that it arises in, as recorded: ProfilerStep#10.
        total: how many steps there are.
    """
    if not names or total < _SEVERAL or len(names) > 1:
        return ""
    return f" in step {names[0].rpartition('#')[2]}"


def gaps_table(gaps: tuple[ShrunkGap, ...], device: DeviceTime) -> tuple[Table, ...]:
    """The recorded gaps that a saving comes from, most first."""
    if not gaps:
        return ()
    table = Table(
        title="Gaps that it shortens",
        columns=(
            Column("before", Kind.CODE),
            Column("gap", Kind.TIME),
            Column("shorter by", Kind.TIME),
            Column("in window at", Kind.TIME),
        ),
        rows=tuple((g.next, g.length_ns, g.saved_ns, max(g.start_ns - device.window_start_ns, 0)) for g in gaps),
    )
    return (table,)


def slower_products(case: Case, rule: Rule, title: str, what: str, *, noun: str, change: str = "") -> Outcome:
    """Products that could run in a faster precision; without known peaks, how long they take.

    Args:
        case: the case.
        rule: the rule.
        title: of the finding.
        what: how they run now.
        noun: what one of them is.
        change: the change, where it is not the rule's own.
    """
    scenario = case.measures.savings.scenario(rule.costs[0])
    if scenario is None:
        return Passed(rule.id, "none in the window")
    share = scenario.time_ns / max(case.measures.fusion.total_ns, 1)
    observed = (
        f"{plural(scenario.count, f'{noun} kernel')} {what}: {duration(scenario.time_ns)}, "
        f"{percent(share)} of activity time."
    )
    if not scenario.note:
        if share < _WORTH_A_REMARK:
            return Passed(rule.id, f"{percent(share)} of activity time; the GPU's peaks are not known")
        unknown = " What another precision would save is not stated: the GPU is not in gpus.toml."
        return case.remark(rule, title, observed + unknown, "medium", change=change)
    cost = case.cost(rule)
    if not isinstance(cost, Cost):
        return cost
    return case.finding(rule, cost, title, f"{observed} {scenario.note}.", change=change)


def fp32_products(case: Case, rule: Rule, noun: str, changes: Mapping[str, str]) -> Outcome:
    """Products in fp32 on vector units, with the change by the precision that the GPU is faster in."""
    asked, scenario = (case.measures.savings.scenario(name) for name in ("asked-precision", rule.costs[0]))
    if asked and asked.precision != NOTHING_FASTER:
        return Passed(rule.id, "precision-not-used reports them")
    if scenario is None:
        return Passed(rule.id, "none in the window")
    if scenario.precision == NOTHING_FASTER:
        return Passed(rule.id, f"{plural(scenario.count, f'{noun} kernel')} in fp32: nothing on this GPU is faster")
    plain = f"{noun[0].upper()}{noun[1:]}s run in fp32"
    if scenario.units:
        title = f"FP32 {noun}s leave {scenario.units} idle"
    else:
        title = f"{plain}; {scenario.precision} is faster" if scenario.precision else f"{plain} on CUDA cores"
    units = "vector units" if scenario.units == "matrix cores" else "CUDA cores"
    change = changes.get(scenario.precision, "")
    outcome = slower_products(case, rule, title, f"in fp32 on {units}", noun=noun, change=change)
    if not isinstance(outcome, Finding) or scenario.units or not scenario.precision:
        return outcome
    return replace(outcome, why=_WITHOUT_UNITS, exceptions=_SUMS_IN_HALF)


_WITHOUT_UNITS = "This chip computes two fp16 values in the time of one fp32 value; no other precision is faster."
_SUMS_IN_HALF = (
    "The products may not add up in fp16: cuBLAS reaches that rate only with "
    "torch.backends.cuda.matmul.allow_fp16_accumulation = True, which costs accuracy."
)
