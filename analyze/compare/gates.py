"""Gates: what a CI job fails on. An expression is read without a file, and judged on a report."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from analyze.compare.amounts import UNITS, Amount, parse_amount
from analyze.errors import GateError, closest
from analyze.kernels.categories import NAMES as CATEGORIES
from analyze.report.headline_metrics import METRICS, RANK_METRICS, HeadlineMetric, named

if TYPE_CHECKING:
    from analyze.compare import Comparable, Comparison

Outcome = Literal["passed", "failed", "not-judged"]
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip
_OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
_SIZES: dict[str, dict[str, float]] = {
    "ns": {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9},
    "bytes": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 10**3, "MB": 10**6, "GB": 10**9},
    "share": {"": 1, "%": 0.01},
    "count": {"": 1},
    "per_s": {"MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12},
}
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ%/]*)"
_LIMIT = re.compile(rf"(\w+(?::\w+)?)\s*(>=|<=|>|<)\s*{_NUMBER}")
_OF_NAMES = re.compile(rf"(.*[^\s<>])\s*(>=|<=|>|<)\s*{_NUMBER}")  # names of kernels hold < and >: the last one counts
_WORSE = re.compile(rf"(\w+)\s*([+-])\s*{_NUMBER}")
_FINDING = re.compile(r"finding:([a-z0-9-]+)")
_SPREADS = {"within-spread": ", within step spread", "no-spread": ", no spread known"}
_DECIMALS = 9
SEVERITIES = ("low", "medium", "high")
_FORMS = (
    "Write 'idle_share > 10%', 'step_time > 80 ms', 'finding:high', 'kernel:NAME sum > 5 ms', "
    "'category:gemm share < 40%', or with a baseline 'step_time +5%'."
)


class Found(Protocol):
    """A finding as gates see it."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def severity(self) -> str: ...  # noqa: D102


class NotAsked(Protocol):
    """A rule that could not be asked."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def reason(self) -> str: ...  # noqa: D102


class Judgeable(Protocol):
    """What gates judge: the report on a trace, or on a job of many ranks."""

    @property
    def findings(self) -> Sequence[Found]: ...  # noqa: D102
    @property
    def checks_passed(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def checks_not_measured(self) -> Sequence[NotAsked]: ...  # noqa: D102
    def metric(self, name: str) -> float | int | None:
        """A figure by name, None where it was not measured."""
        ...

    def amount(self, wanted: Amount) -> tuple[float | int | None, str]:
        """What a kernel, a category or an op amounts to; None with the reason where it was not measured."""
        ...


class Gate(Struct, frozen=True):
    """What a run must not do.

    Attributes:
        expression: as written.
        subject: metric, severity or id of a rule, or what is asked of a kernel, a category or an op.
        kind: "limit" (a metric beyond a number), "worse" (by more than a number than the baseline) or "finding".
        wanted: of a limit on a kernel, a category or an op: which, and what of it; None for metrics.
        sign: the operator, "+" or "-"; empty for findings.
        amount: the number, as written.
        unit: its unit, as written.
    """

    expression: str
    subject: str
    kind: Literal["limit", "worse", "finding"]
    sign: str = ""
    amount: float = 0.0
    unit: str = ""
    wanted: Amount | None = None

    @property
    def measured_in(self) -> str:
        """Unit of what is judged."""
        return UNITS[self.wanted.part] if self.wanted else _known(self.subject).unit

    @property
    def relative(self) -> bool:
        """It needs a baseline."""
        return self.kind == "worse"


class GateResult(Struct, frozen=True):
    """A gate and what came of it.

    Attributes:
        expression: as written.
        outcome: passed, failed, or not-judged, which fails too.
        text: what was found, one line.
    """

    expression: str
    outcome: Outcome
    text: str

    @property
    def line(self) -> str:
        """The text behind its mark."""
        return f"{'✓' if self.outcome == 'passed' else '✗'} {self.text}"


class Gated:
    """A document whose gates were judged.

    Attributes:
        gates: what came of them.
    """

    gates: tuple[GateResult, ...]

    @property
    def failed(self) -> bool:
        """Some gate failed, or could not be judged."""
        return any(gate.outcome != "passed" for gate in self.gates)


def parse_gate(expression: str) -> Gate:
    """The gate that an expression stands for.

    Raises:
        GateError: it cannot be understood, or names a metric or unit that there is not.
    """
    text = " ".join(expression.replace("\N{GREEK SMALL LETTER MU}", "\N{MICRO SIGN}").split())
    if found := _FINDING.fullmatch(text):
        return Gate(text, found[1], "finding")
    if of_names := _parse_of_names(text):
        return of_names
    limit, worse = _LIMIT.fullmatch(text), _WORSE.fullmatch(text)
    match = limit or worse
    if match is None:
        raise GateError(f"The gate {text!r} cannot be read.", _FORMS)
    name, sign, amount, unit = match.groups()
    metric = _metric(text, name)
    gate = Gate(text, name, "limit" if limit else "worse", sign, float(amount), unit)
    _check_unit(gate, metric)
    return gate


def _parse_of_names(text: str) -> Gate | None:
    """A limit on a kernel, a category or an op, None for other gates."""
    found = _OF_NAMES.fullmatch(text)
    if found is None or (wanted := parse_amount(found[1])) is None:
        return None
    if wanted.kind == "category" and "*" not in wanted.name and wanted.name not in CATEGORIES:
        close = closest(wanted.name, CATEGORIES, n=1)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise GateError(
            f"The gate {text!r} names no category: {wanted.name!r} is unknown.",
            f"{meant}Categories: {', '.join(CATEGORIES)}.",
        )
    gate = Gate(text, wanted.label, "limit", found[2], float(found[3]), found[4], wanted)
    _check_unit(gate, HeadlineMetric(wanted.label, wanted.label, UNITS[wanted.part], "either"))
    return gate


def _metric(expression: str, name: str) -> HeadlineMetric:
    metric = named(name)
    if metric is not None:
        return metric
    close = closest(name, [*METRICS, *RANK_METRICS], n=1)
    meant = f"Did you mean {close[0]!r}? " if close else ""
    raise GateError(
        f"The gate {expression!r} names no metric: {name!r} is unknown.",
        f"{meant}Metrics: {', '.join(sorted(METRICS))}.",
    )


def _known(name: str) -> HeadlineMetric:
    """What the metric of a gate is: its name was checked when it was read."""
    metric = named(name)
    assert metric is not None, name
    return metric


def _check_unit(gate: Gate, metric: HeadlineMetric) -> None:
    units = list(_SIZES[metric.unit])
    if gate.relative:
        units = ["%", *(["pp"] if metric.unit == "share" else [unit for unit in units if unit])]
    if metric.unit == "share" and gate.unit == "" and gate.amount > 1:
        raise GateError(
            f"The gate {gate.expression!r} compares a share, which is 1 at most, with {gate.amount:g}.",
            f"Write '{gate.subject} {gate.sign} {gate.amount:g}%'.",
        )
    if gate.unit not in units:
        said = f"has the unit {gate.unit!r}" if gate.unit else "has no unit"
        known = ", ".join(unit or "none" for unit in units)
        raise GateError(f"The gate {gate.expression!r} {said}; {gate.subject} takes: {known}.", _FORMS)
    if gate.sign == "-" and metric.better == "lower":
        raise GateError(
            f"The gate {gate.expression!r} would fail on an improvement: lower is better.",
            f"Write '{gate.subject} +{gate.amount:g}{gate.unit}'.",
        )


def judge_gate(
    gate: Gate, this: Judgeable, before: Comparable | None, comparison: Comparison | None = None
) -> GateResult:
    """Whether a report passes a gate.

    Args:
        gate: the gate.
        this: the report.
        before: the baseline, None without one.
        comparison: of the two, to separate changes from the spread of the steps.

    Raises:
        GateError: it names a rule that there is not.
    """
    if gate.kind == "finding":
        outcome, text = _judge_finding(gate, this)
    elif gate.kind == "limit":
        outcome, text = _judge_limit(gate, this)
    else:
        changes = comparison.changes if comparison else None
        row = changes.row(gate.subject) if changes else None
        a, b = (row.a, row.b) if row else (before.metric(gate.subject) if before else None, this.metric(gate.subject))
        amounts_per_step = bool(changes and changes.per_step and _known(gate.subject).additive)
        outcome, text = _judge_change(gate, a, b, " per step" if amounts_per_step else "")
        text += _SPREADS.get(row.verdict, "") if row and outcome != "not-judged" else ""
    return GateResult(gate.expression, outcome, text)


def _judge_limit(gate: Gate, this: Judgeable) -> tuple[Outcome, str]:
    value, why = this.amount(gate.wanted) if gate.wanted else (this.metric(gate.subject), "it was not measured")
    size = _SIZES[gate.measured_in][gate.unit]
    if value is None:
        return _unmeasured(gate, why)
    failed = OPERATORS[gate.sign](value, _limit(gate, size))
    sign = gate.sign if failed else _OPPOSITE[gate.sign]
    shown = _shown(value / size, gate.amount, sign)
    space = " " if gate.unit not in ("", "%") else ""
    return ("failed" if failed else "passed"), (
        f"{gate.subject} {shown}{space}{gate.unit} {sign} {gate.expression.rsplit(gate.sign, 1)[1].strip()}"
    )


def _limit(gate: Gate, size: float) -> float:
    """The limit in the metric's unit; 10 % is the number 0.1, not ten times 0.01."""
    return gate.amount / 100 if gate.unit == "%" else gate.amount * size


def _shown(value: float, limit: float, sign: str) -> str:
    """The value with three significant digits, or as many as it takes to be seen on its side of the limit."""
    for digits in range(3, 17):
        text = f"{value:.{digits}g}"
        if OPERATORS[sign](float(text), limit) and "e" not in text:
            return text
    return f"{value:,.0f}" if float(value).is_integer() else repr(value)


def _judge_change(gate: Gate, a: float | None, b: float | None, of: str) -> tuple[Outcome, str]:
    if a is None or b is None:
        return _unmeasured(gate, f"it was not measured in {'the baseline' if a is None else 'this run'}")
    metric = _known(gate.subject)
    worse = (b - a) if metric.better == "lower" else (a - b)
    shown = _from_to(metric.unit, a, b) + of
    if gate.unit == "%":
        if a == 0:
            return ("failed", f"{gate.subject} is worse, from 0 ({shown})") if worse > 0 else (
                "passed", f"{gate.subject} is not worse ({shown})")  # fmt: skip
        amount, unit = 100 * worse / a, "%"
    elif gate.unit == "pp":
        amount, unit = 100 * worse, "pp"
    else:
        amount, unit = worse / _SIZES[metric.unit][gate.unit], gate.unit
    amount = round(amount, _DECIMALS)  # 0.12 less 0.1 is 2 pp, not a trifle more
    failed = amount > gate.amount
    word = "worse" if amount > 0 else "better"
    named = _shown(amount, gate.amount, ">") if failed else _shown(abs(amount), math.inf, "<")
    space = "" if unit == "%" else " "
    compared = f"{named}{space}{unit} {word}" if amount else "unchanged"
    return ("failed" if failed else "passed"), (
        f"{gate.subject} {compared}, limit {gate.amount:g}{space}{unit} worse ({shown})"
    )


def _from_to(unit: str, a: float, b: float) -> str:
    from analyze.compare.wording import side_by_side

    first, second = side_by_side(unit, (a, b))
    return f"{first} to {second}"


def _judge_finding(gate: Gate, this: Judgeable) -> tuple[Outcome, str]:
    unmeasured = {check.id: check.reason for check in this.checks_not_measured}
    if gate.subject in SEVERITIES:
        wanted = SEVERITIES[SEVERITIES.index(gate.subject) :]
        hit = [finding.id for finding in this.findings if finding.severity in wanted]
        if hit:
            return "failed", f"{gate.expression}: {', '.join(hit)}"
        if not this.checks_passed and not this.findings:
            return _unmeasured(gate, "no rule could judge this file")
        missing = f", not measured: {', '.join(unmeasured)}" if unmeasured else ""
        return "passed", f"{gate.expression}: none{missing}"
    found = next((finding for finding in this.findings if finding.id == gate.subject), None)
    if found is not None:
        return "failed", f"{gate.expression}: {found.title} ({found.severity})"
    if gate.subject in unmeasured:
        return _unmeasured(gate, unmeasured[gate.subject])
    if gate.subject in this.checks_passed:
        return "passed", f"{gate.expression}: none"
    rules = sorted({*this.checks_passed, *unmeasured, *(finding.id for finding in this.findings)})
    close = closest(gate.subject, rules, n=1)
    meant = f"Did you mean 'finding:{close[0]}'? " if close else ""
    raise GateError(
        f"The gate {gate.expression!r} names no rule: {gate.subject!r} is unknown.",
        f"{meant}Severities: {', '.join(SEVERITIES)}. Rules: {', '.join(rules) or 'none yet'}.",
    )


def _unmeasured(gate: Gate, why: str) -> tuple[Outcome, str]:
    return "not-judged", f"{gate.expression} could not be judged: {why}"
