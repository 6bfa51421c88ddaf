"""Trace in, report out: the only place that calls every measure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

from analyze.blocks import Breakdown, Column, Kind, Page, Part, Section, Stat, Table
from analyze.findings import Diagnosis, Verdict, diagnose, judge, window_states
from analyze.metrics import (
    DeviceTime,
    Measures,
    OpsView,
    fusion,
    idle,
    launches,
    measure,
    median_wall,
    memory_section,
    modules,
    ops_section,
    overlap,
    precision,
    purpose,
    recording,
    roofline,
    stalls,
    steps,
    trust,
    work,
)
from analyze.metrics.device_time import headline
from analyze.metrics.lead import Lead
from analyze.notes import NotMeasured
from analyze.report import advice
from analyze.report.header import measured_line, verdict_word
from analyze.report.report import SCHEMA_VERSION, TOOL, Metric, Report, TraceInfo
from analyze.settings import Definitions
from analyze.timeline import Wish
from analyze.trace import Trace
from analyze.units import duration

_RANGE_SHOWN = 40  # longer names break the line that is meant to be copied


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
    definitions = definitions or Definitions()
    measures = measure(trace, definitions, Wish(steps, range), ops)
    device = headline(measures.devices)
    verdict = judge(measures, definitions, cut=trace.recording.cut)
    diagnosis = diagnose(measures, definitions, cut=trace.recording.cut, limits=limits)
    info = _info(trace, measures, device)
    program = program_version()
    return Report(
        version=program,
        trace=info,
        verdict=verdict,
        diagnosis=diagnosis,
        measures=measures,
        metrics=_metrics(measures, device),
        page=Page(
            subject="Trace",
            name=trace.name,
            about=measured_line(info),
            verdict=verdict.id,
            headline=verdict_word(verdict),
            sentences=verdict.sentences,
            whole=_ledger(device, measures),
            sections=(*_advice(diagnosis, measures, device), *_sections(trace, measures, device)),
            notices=measures.notices,
            not_measured=tuple(_not_measured(trace, measures)),
            next_steps=tuple(_next_steps(trace, measures, diagnosis)),
            footer=_footer(program, verdict, definitions, info),
        ),
        definitions=definitions,
    )


def _footer(program: str, verdict: Verdict, definitions: Definitions, info: TraceInfo) -> str:
    return (
        f"{TOOL} {program}, report schema {SCHEMA_VERSION}; verdict: {verdict.rule}; long gap over "
        f"{duration(definitions.long_gap_ns)}, short kernel below {duration(definitions.short_kernel_ns)}; "
        f"trace sha256 {info.sha256[:12]}"
    )


def program_version() -> str:
    """Version of the installed program, "unknown" when it runs from a bare checkout."""
    try:
        return version(TOOL)
    except PackageNotFoundError:
        return "unknown"


def _info(trace: Trace, measures: Measures, device: DeviceTime | None) -> TraceInfo:
    names = dict.fromkeys(d.name for d in measures.devices if d.name)
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
        steps=len(measures.steps),
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


def _advice(diagnosis: Diagnosis, measures: Measures, device: DeviceTime | None) -> tuple[Section, ...]:
    if device is None or measures.trust is None:
        return ()
    return trust.section(measures.trust), advice.section(diagnosis)


def _sections(trace: Trace, measures: Measures, device: DeviceTime | None) -> Iterator[Section]:
    if trace.metadata.recorded is not None:
        yield recording.section(trace.metadata.recorded)
    if device is None:
        yield ops_section.section(measures.host, None, brief=True)
        yield from _memory(measures)
        return
    if len(measures.devices) > 1:
        yield _devices(measures)
    yield work.section(measures.categories, measures.kernels, purpose.blocks(measures.purpose))
    yield idle.section(measures.devices, measures.gaps, has_ops=trace.ops.height > 0)
    yield launches.section(measures.launches, device.window_ns)
    yield stalls.section(measures.stalls)
    yield overlap.section(measures.overlaps[measures.devices.index(device)], device)
    yield _with_lead(steps.section(measures.steps), measures.lead)
    if measures.host.ops:
        yield ops_section.section(measures.host, sum(d.busy_ns for d in measures.devices), brief=False)
    yield from _memory(measures)
    yield precision.section(measures.precision)
    if measures.roofline.rates:
        yield roofline.section(measures.roofline)
    yield fusion.section(measures.fusion)
    if measures.modules:
        yield modules.section(measures.modules)


def _memory(measures: Measures) -> Iterator[Section]:
    if measures.memory.devices:
        yield memory_section.section(measures.memory)


def _devices(measures: Measures) -> Section:
    table = Table(
        title="Devices",
        columns=(
            Column("device", Kind.TEXT),
            Column("activities", Kind.COUNT),
            Column("window", Kind.TIME),
            Column("busy, of window", Kind.SHARE),
        ),
        rows=tuple(
            (d.label, d.activities, d.window_ns, d.busy_ns / d.window_ns if d.window_ns else None)
            for d in measures.devices
        ),
        brief=len(measures.devices),
    )
    return Section("devices", "Devices", (table,))


def _with_lead(section: Section, lead: Lead | None) -> Section:
    if lead is None:
        return section
    parts = sorted(lead.parts.items(), key=lambda part: -part[1])
    name, ns = parts[0]
    most = f"{duration(ns)} {idle.PART_LABELS[name].removeprefix('host: ')}"
    stat = Stat("Lead", f"{duration(lead.length_ns)} of host time before the first activity; most: {most}", brief=False)
    return Section(section.id, section.title, (*section.blocks, stat))


def _metrics(measures: Measures, device: DeviceTime | None) -> dict[str, Metric]:
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
    memory = [use.peak_bytes for use in measures.memory.devices if use.device >= 0]
    latency, middle = measures.launches.latency_ns, median_wall(measures.steps)
    return {
        **found,
        "blocked_time": Metric(measures.stalls.blocked_ns, "ns", "lower"),
        "blocking_calls": Metric(measures.stalls.calls, "count", "lower"),
        "launches": Metric(measures.launches.calls, "count", "lower"),
        "launch_latency_p50": Metric(latency.p50_ns if latency else None, "ns", "lower"),
        "memory_peak": Metric(max(memory, default=None), "bytes", "lower"),
        "step_time": Metric(middle[0] if middle else None, "ns", "lower"),
    }


def _not_measured(trace: Trace, measures: Measures) -> Iterator[NotMeasured]:
    if not measures.devices:
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
    if measures.devices and trace.ops.height:
        yield from measures.roofline.not_measured()
    yield from measures.memory.not_measured()


def _next_steps(trace: Trace, measures: Measures, diagnosis: Diagnosis) -> Iterator[str]:
    file = shlex.quote(trace.name)
    yield f"analyze {file} -o report.md"
    if diagnosis.findings:
        yield f"analyze explain {diagnosis.findings[0].id}"
    if len(measures.steps) > 1 and not measures.selection:
        last = measures.steps[-1].name.rpartition("#")[2]
        yield f"analyze {file} --steps {measures.steps[1].name.rpartition('#')[2]}:{last}"
    elif trace.ranges.height and not measures.selection and not trace.steps.height:
        name = next((n for n in trace.ranges["name"].drop_nulls() if len(n) <= _RANGE_SHOWN), None)
        if name is not None:
            yield f"analyze {file} --range {shlex.quote(name)}"
