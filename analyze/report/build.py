"""Trace in, report out: the only place that calls every measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from analyze.blocks import Breakdown, Page, Part
from analyze.findings import RULES, Diagnosis, Verdict, diagnose, judge, window_states
from analyze.guard import INTERNAL, Guard, present
from analyze.metrics import DeviceTime, Measures, OpsView, measure, step_times
from analyze.metrics.device_time import headline
from analyze.notes import Notice, NotMeasured
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.commands import next_steps
from analyze.report.header import measured_line, verdict_word
from analyze.report.report import Metric, Report, Source, TraceInfo
from analyze.report.sections import sections_of
from analyze.settings import Definitions
from analyze.timeline import Wish
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
) -> Report:
    """Measure a trace and judge it.

    Args:
        trace: the trace.
        steps: numbers of the first and the last profiler step, the last one excluded; None leaves an end open.
        range: name of a user range to account for instead.
        definitions: limits and list lengths; the defaults where None.
        ops: how ops are sorted and grouped; the defaults where None.
        limits: limits by rule id where they are not the rules' own.

    Raises:
        SelectionError: no such steps or range.
    """
    definitions, guard, wish = definitions or Definitions(), Guard(), Wish(steps, range)
    measures = measure(trace, definitions, wish, ops)
    device = guard.make_or("device", lambda: headline(measures.devices), None)
    verdict = guard.make_or("verdict", lambda: judge(measures, definitions, cut=trace.recording.cut), _NO_VERDICT)
    diagnosis = diagnose(measures, definitions, cut=trace.recording.cut, limits=limits)
    info, program = _info(trace, measures, device), program_version()
    sections = sections_of(guard, trace, measures, device, diagnosis)
    whole = guard.make_or("ledger", lambda: _ledger(device, measures), None)
    commands = guard.make_or("commands", lambda: tuple(next_steps(trace, measures, diagnosis)), ())
    metrics = _metrics(guard, measures, device)
    missing = guard.make_or("what was not measured", lambda: tuple(_not_measured(trace, measures)), ())
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
        source=Source(trace, wish),
    )


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
        selection=measures.selection,
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
    window = device.window_ns if device else 0

    def share(ns: int, better: str) -> Metric:
        return Metric(ns / window if window else None, "share", better, "window of the headline device")

    found: dict[str, Metric] = {}
    if device is not None:
        found = {
            "window_time": Metric(window, "ns", "lower"),
            "busy_share": share(device.busy_ns, "higher"),
            "idle_share": share(device.idle_ns, "lower"),
            "computation_share": share(device.computation_ns, "higher"),
            "exposed_communication_share": share(device.exposed_communication_ns, "lower"),
            "exposed_copy_share": share(device.exposed_copy_ns, "lower"),
            "exposed_sync_time": Metric(device.exposed_sync_ns, "ns", "lower"),
        }
        for state in window_states(device):
            if state.idle:
                found[f"idle_{state.id.replace('-', '_')}_share"] = share(state.ns, "lower")

    def own(name: str, unit: str, value: Callable[[], int | None]) -> Metric:
        return Metric(guard.make_or(name, value, None), unit, "lower")

    return {
        **found,
        "blocked_time": own("blocked_time", "ns", lambda: measures.stalls.blocked_ns),
        "blocking_calls": own("blocking_calls", "count", lambda: measures.stalls.calls),
        "launches": own("launches", "count", lambda: measures.launches.calls),
        "launch_latency_p50": own("launch_latency_p50", "ns", lambda: _latency(measures)),
        "memory_peak": own("memory_peak", "bytes", lambda: _memory_peak(measures)),
        "step_time": own("step_time", "ns", lambda: (step_times(measures.steps) or (None,))[0]),
    }


def _latency(measures: Measures) -> int | None:
    return measures.launches.latency_ns.p50_ns if measures.launches.latency_ns else None


def _memory_peak(measures: Measures) -> int | None:
    return max((use.peak_bytes for use in measures.memory.devices if use.device >= 0), default=None)


def _not_measured(trace: Trace, measures: Measures) -> Iterator[NotMeasured]:
    devices = present(measures.devices) and measures.devices
    if present(measures.devices) and not devices:
        yield NotMeasured(
            "device-time",
            "no kernel, copy or memset in the file",
            "record with activities=[CPU, CUDA] on a GPU",
        )
    if not trace.steps.height:
        yield NotMeasured(
            "steps", "no ProfilerStep ranges", "call prof.step() once per iteration, or capture --steps N"
        )
    if not trace.frames.height:
        yield NotMeasured("python-frames", "no Python frames", "record with with_stack=True, or capture --stacks")
    if not trace.ops.height:
        yield NotMeasured("ops", "no framework operators", "record with activities=[CPU, CUDA]")
    if devices and trace.ops.height and present(measures.roofline):
        yield from measures.roofline.not_measured()
    if present(measures.memory):
        yield from measures.memory.not_measured()
