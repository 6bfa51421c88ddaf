"""Trace in, report out: the only place that calls every measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from analyze.blocks import Breakdown, Page, Part, Section
from analyze.findings import RULES, Diagnosis, Verdict, diagnose, judge, window_states
from analyze.guard import INTERNAL, Guard, present
from analyze.metrics import QUESTIONS, DeviceTime, Measures, OpsView
from analyze.notices import Notice, NotMeasured
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.commands import next_steps
from analyze.report.header import measured_line, verdict_word
from analyze.report.headline_metrics import HEADLINE_METRICS
from analyze.report.kernel_names import with_short_names
from analyze.report.report import Metric, Report, TraceInfo
from analyze.report.sections import sections_of
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from analyze.units import duration

_NO_VERDICT = Verdict("not-judged", 0.0, (f"No verdict: {INTERNAL}.",), INTERNAL)


def build_report(
    trace: Trace,
    *,
    steps: tuple[int | None, int | None] | None = None,
    range: str | None = None,  # noqa: A002 - the option's own name
    definitions: Definitions | None = None,
    ops: OpsView | None = None,
    limits: Mapping[str, float] | None = None,
    one_screen: bool = False,
) -> Report:
    """Measure a trace and judge it.

    Args:
        trace: the trace.
        steps: numbers of the first and the last profiler step, the last one excluded; None leaves an end open.
        range: name of a user range to account for instead.
        definitions: limits and list lengths; the defaults where None.
        ops: how ops are sorted and grouped; the defaults where None.
        limits: limits by rule id where they are not the rules' own.
        one_screen: measure only what a report on one screen shows; other formats would lack sections.

    Raises:
        SelectionError: no such steps or range.
    """
    definitions, guard = definitions or Definitions(), Guard()
    measures = Measures(trace, definitions, Scope(steps, range), ops)
    device = measures.headline if present(measures.headline) else None
    verdict = guard.make_or("verdict", lambda: judge(measures, definitions, cut=trace.recording.cut), _NO_VERDICT)
    diagnosis = diagnose(measures, definitions, cut=trace.recording.cut, limits=limits)
    info, program = _info(trace, measures, device), program_version()
    sections = _sections(guard, measures, device, diagnosis, one_screen=one_screen)
    whole = guard.make_or("ledger", lambda: _ledger(device, measures), None)
    commands = guard.make_or("commands", lambda: tuple(next_steps(trace, measures, diagnosis)), ())
    metrics = _metrics(guard, measures, device)
    missing = () if one_screen else guard.make_or("what was not measured", lambda: tuple(_not_measured(measures)), ())
    absent = (*measures.absent, *guard.raised())
    return Report(
        version=program,
        trace=info,
        verdict=verdict,
        diagnosis=diagnosis,
        measures=measures,
        metrics=metrics,
        page=Page(
            subject="Trace",
            name=trace.name,
            about=measured_line(info),
            verdict=verdict.id,
            headline=verdict_word(verdict),
            sentences=verdict.sentences,
            whole=whole,
            sections=sections,
            notices=(*_internal_errors(absent, diagnosis), *(measures.notices if present(measures.notices) else ())),
            not_measured=(*absent, *missing),
            next_steps=commands,
            footer=_footer(program, verdict, definitions, info),
            findings=tuple(finding.id for finding in diagnosis.findings),
        ),
        definitions=definitions,
    )


def _sections(
    guard: Guard, measures: Measures, device: DeviceTime | None, diagnosis: Diagnosis, *, one_screen: bool
) -> tuple[Section, ...]:
    sections = sections_of(guard, measures, device, diagnosis, one_screen=one_screen)
    kernels = measures.kernels
    if one_screen or not present(kernels):  # one screen has no table of kernels
        return sections
    return guard.make_or("kernel names", lambda: with_short_names(sections, (one.name for one in kernels)), sections)


def _internal_errors(absent: tuple[NotMeasured, ...], diagnosis: Diagnosis) -> Iterator[Notice]:
    """What a defect of this program cost."""
    rules = tuple(rule.id for rule in diagnosis.unmeasured if rule.reason == INTERNAL)
    asked = {rule.id for rule in RULES}
    lost = (f"rule {name}" if name in asked else name for name in rules)
    names = dict.fromkeys((*(part.id for part in absent), *lost))
    if names:
        text = f"Not measured: {', '.join(names)}: {INTERNAL}. --debug prints the traceback."
        yield Notice("internal-error", text, len(names))


def _footer(program: str, verdict: Verdict, definitions: Definitions, info: TraceInfo) -> str:
    return (
        f"{TOOL} {program}, report schema {SCHEMA_VERSION}; verdict: {verdict.rule}; long gap over "
        f"{duration(definitions.long_gap_ns)}, short kernel below {duration(definitions.short_kernel_ns)}; "
        f"trace sha256 {info.sha256[:12]}"
    )


def _info(trace: Trace, measures: Measures, device: DeviceTime | None) -> TraceInfo:
    names = dict.fromkeys(d.name for d in measures.devices if d.name) if present(measures.devices) else {}
    metadata = trace.metadata
    return TraceInfo(
        name=trace.name,
        sha256=trace.recording.sha256,
        size_bytes=trace.recording.size_bytes,
        writer=trace.writer.value,
        device_names=tuple(names),
        runtime=metadata.runtime,
        flags=metadata.flags,
        rank=metadata.rank,
        world_size=metadata.world_size,
        steps=len(measures.steps) if present(measures.steps) else 0,
        selection=measures.selection.label,
        window_ns=device.window_ns if device else 0,
        cut=trace.recording.cut,
        recorded=metadata.recorded,
    )


def _ledger(device: DeviceTime | None, measures: Measures) -> Breakdown | None:
    if device is None or not device.window_ns:
        return None
    title = "Where the window goes"
    if len(measures.devices) > 1:
        title += f" ({device.label})"
    return Breakdown(title, "of window", tuple(Part(s.label, s.ns, s.idle) for s in window_states(device)))


def _metrics(guard: Guard, measures: Measures, device: DeviceTime | None) -> dict[str, Metric]:
    found = {}
    for metric in HEADLINE_METRICS:
        if metric.of_report is not None:
            value = guard.make_or(metric.id, partial(metric.of_report, measures), None)
        elif device is not None and metric.of_device is not None:
            value = metric.of_device(device)
        else:
            continue
        found[metric.id] = Metric(value, metric.unit, metric.better, metric.of)
    return found


def _not_measured(measures: Measures) -> Iterator[NotMeasured]:
    for question in QUESTIONS:
        if present(measures.ask(question)):
            yield from question.not_measured(measures)
