"""A stored report without what `--redact` takes away: another program, or nobody's, may have written it."""

from __future__ import annotations

import re
from typing import TypeVar

from msgspec.structs import fields, replace

from analyze.compare.comparable import Comparable, Judged, MemoryPeak, OpRate, RecordedRun, SourceInfo
from analyze.findings import RULES, STATES
from analyze.kernels.categories import NAMES
from analyze.metrics.step_ledgers import Ledger, StepLedger
from analyze.palette import VERDICTS
from analyze.report.headline_metrics import METRICS
from analyze.report.redact.policy import Redaction
from analyze.report.report import Metric
from analyze.settings import Definitions
from analyze.timeline import IDLE_PARTS

_RULES = frozenset(rule.id for rule in RULES)
_VERDICTS = frozenset((*VERDICTS, *(state.id for state in STATES)))
_FLAGS = frozenset(("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"))
_DEFINITIONS = frozenset(field.name for field in fields(Definitions))
_KINDS = frozenset(("op", "range", "api", "memory", "frame"))
_PRECISIONS = frozenset(
    ("fp32", "tf32", "fp16", "bf16", "fp8", "fp64", "int8", "int4", "fp4", "complex", "unknown", "")
)
_RUNTIME = re.compile(r"(?:CUDA|ROCm) \d{1,3}\.\d{1,3}")
_STEPS = re.compile(r"(?:steps \d{1,20}:\d{1,20})?")
_RANGE = "range "
_LABEL = re.compile(r"(?:GPU|CPU|XPU|MTIA|HPU)(?: \d{1,6})?")
_STEP = re.compile(r"ProfilerStep#?\d*\*?")
_HASH = re.compile(r"[0-9a-f]{64}")
_SCHEMA = re.compile(r"\d{1,4}\.\d{1,4}")
_Ledger = TypeVar("_Ledger", bound=Ledger)


def redacted_comparable(subject: Comparable, redaction: Redaction) -> Comparable:
    """The report with its texts redacted; its numbers stay."""
    r = redaction
    known = {name: metric for name, metric in subject.metrics.items() if name in METRICS}
    return replace(
        subject,
        schema_version=_only(_SCHEMA, subject.schema_version),
        tool={"name": "gpuledger", "version": r.version(subject.tool.get("version", ""))},
        trace=_source(subject.trace, r),
        definitions={
            n if n in _DEFINITIONS else r.pseudonym("definition", n): v for n, v in subject.definitions.items()
        },
        verdict=_judged(subject.verdict, r),
        metrics={name: _metric(name, metric) for name, metric in known.items()},
        devices=tuple(_ledger(one, r) for one in subject.devices),
        steps=tuple(replace(s, edge=r.word(s.edge, ("first", "last", "only"))) for s in subject.steps),
        step_ledgers=tuple(_step_ledger(one, r) for one in subject.step_ledgers),
        categories=tuple(replace(w, name="", category=_category(w.category, r)) for w in subject.categories),
        activity_times=tuple(
            replace(w, name=r.kept(w.name), category=_category(w.category, r)) for w in subject.activity_times
        ),
        ops=replace(
            subject.ops,
            ops=tuple(
                replace(op, name=_op(op.name, op.kind, r), kind=r.word(op.kind, _KINDS)) for op in subject.ops.ops
            ),
        ),
        precision=replace(
            subject.precision,
            uses=tuple(
                replace(
                    use, category=_category(use.category, r), precision=r.word(use.precision, _PRECISIONS, "unknown")
                )
                for use in subject.precision.uses
            ),
        ),
        roofline=replace(subject.roofline, rates=tuple(_rate(rate, r) for rate in subject.roofline.rates)),
        memory=replace(subject.memory, devices=tuple(map(_peak, subject.memory.devices))),
        findings=tuple(_judged(one, r) for one in subject.findings),
        checks_passed=tuple(r.word(one, _RULES, "unknown-rule") for one in subject.checks_passed),
        checks_not_measured=tuple(_judged(one, r) for one in subject.checks_not_measured),
    )


def _only(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""


def _op(name: str, kind: str, redaction: Redaction) -> str:
    return redaction.range(name) if kind == "range" else redaction.kept(name)


def _rate(rate: OpRate, redaction: Redaction) -> OpRate:
    precision = redaction.word(rate.precision, _PRECISIONS, "unknown")
    return replace(rate, op=redaction.kept(rate.op), input_dims=redaction.shape(rate.input_dims), precision=precision)


def _category(category: str, redaction: Redaction) -> str:
    return redaction.word(category, NAMES, "other")


def _source(source: SourceInfo, redaction: Redaction) -> SourceInfo:
    selection = source.selection
    return replace(
        source,
        name=redaction.file(source.name),
        sha256=_only(_HASH, source.sha256),
        device_names=tuple(map(redaction.device, source.device_names)),
        runtime=_only(_RUNTIME, source.runtime),
        flags=tuple(flag for flag in source.flags if flag in _FLAGS),
        selection=selection
        if _STEPS.fullmatch(selection)
        else f"range {redaction.range(selection.removeprefix(_RANGE))}",
        recorded=None if source.recorded is None else _recorded(source.recorded, redaction),
    )


def _recorded(recorded: RecordedRun, redaction: Redaction) -> RecordedRun:
    precision = redaction.word(recorded.precision, _PRECISIONS)
    unit = redaction.word(recorded.unit, ("forward", "step"))
    return replace(recorded, model="", precision=precision, torch=redaction.version(recorded.torch), unit=unit)


def _judged(judged: Judged, redaction: Redaction) -> Judged:
    ident = redaction.word(judged.id, _RULES | _VERDICTS, "unknown")
    severity = redaction.word(judged.severity, ("high", "medium", "low"))
    rule = "no verdict, for a reason that is left out" if ident == "not-judged" else ""
    return Judged(ident, severity, "", "", rule)


def _metric(name: str, metric: Metric) -> Metric:
    return Metric(metric.value, METRICS[name].unit, METRICS[name].better)


def _ledger(ledger: _Ledger, redaction: Redaction) -> _Ledger:
    def parts(idle: dict[str, int]) -> dict[str, int]:
        return {name if name in IDLE_PARTS else redaction.pseudonym("part", name): ns for name, ns in idle.items()}

    return replace(ledger, idle=parts(ledger.idle), idle_long=parts(ledger.idle_long))


def _step_ledger(ledger: StepLedger, redaction: Redaction) -> StepLedger:
    categories: dict[str, int] = {}
    for name, ns in ledger.categories.items():
        known = _category(name, redaction)
        categories[known] = categories.get(known, 0) + ns
    name = ledger.name if _STEP.fullmatch(ledger.name) else "step"
    return replace(_ledger(ledger, redaction), name=name, categories=categories)


def _peak(peak: MemoryPeak) -> MemoryPeak:
    return replace(peak, label=_only(_LABEL, peak.label) or "device")
