"""Names in titles and tables of findings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from analyze.blocks import Column, Kind, Table
from analyze.findings.finding import Outcome, Passed
from analyze.findings.rule import Case, Cost, Rule
from analyze.metrics import DeviceTime
from analyze.metrics.savings import ShrunkGap
from analyze.units import duration, percent, plural

_LONGEST = 32
_FRAME = re.compile(r"^.*\(\d+\): (\S+)")
_WORTH_A_REMARK = 0.10  # of activity time: time in slow products that is told though their saving is not known


def culprit(name: str) -> str:
    """A name as one word of a title: of a Python frame its function, of a kernel what stands before its parameters."""
    found = _FRAME.match(name)
    word = found.group(1) if found else re.split(r"[\s(<]", name.removeprefix("void ").strip(), maxsplit=1)[0]
    return (word or "work")[:_LONGEST]


def is_frame(names: tuple[str, ...]) -> bool:
    """Whether the evidence of a gap is Python frames rather than an op or a range."""
    return any(_FRAME.match(name) for name in names)


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


def slower_products(case: Case, rule: Rule, title: str, what: str, changes: Mapping[str, str] | None = None) -> Outcome:
    """Products that could run in a faster precision; without known peaks, how long they take.

    Args:
        case: the case.
        rule: the rule.
        title: of the finding.
        what: how they run now.
        changes: the change by the precision that the GPU is faster in, where it is not the rule's own.
    """
    scenario = case.measures.savings.scenario(rule.costs[0])
    if scenario is None:
        return Passed(rule.id, "none in the window")
    share = scenario.time_ns / max(case.measures.fusion.total_ns, 1)
    seen = (
        f"{plural(scenario.count, 'GEMM or convolution kernel')} {what}: {duration(scenario.time_ns)}, "
        f"{percent(share)} of activity time."
    )
    if not scenario.note:
        if share < _WORTH_A_REMARK:
            return Passed(rule.id, f"{percent(share)} of activity time; the GPU's peaks are not known")
        unknown = (
            " What another precision would save is not stated: the GPU is not in gpus.toml, or is no faster in it."
        )
        return case.remark(rule, title, seen + unknown, "medium")
    cost = case.cost(rule)
    if not isinstance(cost, Cost):
        return cost
    change = (changes or {}).get(scenario.precision, "")
    return case.finding(rule, cost, title, f"{seen} {scenario.note}.", change=change)
