"""The sections of a report on a trace: one question each. A section that raises is left out, and listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.findings import Diagnosis
from analyze.guard import Guard, present
from analyze.metrics import (
    DeviceTime,
    Measures,
    blocking_calls,
    fusion,
    idle,
    launches,
    memory_section,
    modules,
    op_categories,
    ops_section,
    overlap,
    precision,
    roofline,
    steps,
    work,
)
from analyze.metrics.lead import Lead
from analyze.metrics.quality import recorded_run, trust
from analyze.ranks.alone import alone_section
from analyze.report import advice
from analyze.trace import Trace
from analyze.units import duration

_Made = Callable[[], Section | None]


def sections_of(
    guard: Guard, trace: Trace, measures: Measures, device: DeviceTime | None, diagnosis: Diagnosis
) -> tuple[Section, ...]:
    """The sections in printing order.

    Args:
        guard: makes them.
        trace: the trace.
        measures: what was measured.
        device: the headline device, None without one.
        diagnosis: what to do first.
    """
    made = (guard.make(f"section {name}", how) for name, how in _sections(trace, measures, device, diagnosis))
    return tuple(section for section in made if present(section) and section is not None)


def _sections(
    trace: Trace, measures: Measures, device: DeviceTime | None, diagnosis: Diagnosis
) -> Iterator[tuple[str, _Made]]:
    """Name and maker of each section; a maker gives None where there is nothing to say."""
    recorded, m = trace.metadata.recorded, measures
    if device is not None:
        yield "trust", lambda: trust.section(m.trust) if m.trust is not None else None
        yield "findings", lambda: advice.section(diagnosis)
    if recorded is not None:
        yield "recording", lambda: recorded_run.section(recorded)
    if device is None:
        yield "ops", lambda: ops_section.section(m.host, None, brief=True)
        yield "memory", lambda: _memory(m)
        return
    yield "devices", lambda: _devices(m) if len(m.devices) > 1 else None
    yield "work", lambda: work.section(m.categories, m.kernels, op_categories.blocks(m.purpose))
    yield "idle", lambda: idle.section(m.devices, m.gaps, has_ops=trace.ops.height > 0)
    yield "launches", lambda: launches.section(m.launches, device.window_ns)
    yield "stalls", lambda: blocking_calls.section(m.stalls)
    yield "overlap", lambda: overlap.section(m.overlaps[m.devices.index(device)], device)
    yield "collectives", lambda: alone_section(trace, device)
    yield "steps", lambda: _with_lead(steps.section(m.steps), m.lead)
    yield "ops", lambda: _ops(m)
    yield "memory", lambda: _memory(m)
    yield "precision", lambda: precision.section(m.precision)
    yield "roofline", lambda: roofline.section(m.roofline) if m.roofline.rates else None
    yield "fusion", lambda: fusion.section(m.fusion)
    yield "modules", lambda: modules.section(m.modules) if m.modules else None


def _ops(measures: Measures) -> Section | None:
    if not measures.host.ops:
        return None
    return ops_section.section(measures.host, sum(d.busy_ns for d in measures.devices), brief=False)


def _memory(measures: Measures) -> Section | None:
    return memory_section.section(measures.memory) if measures.memory.devices else None


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
    place = f"; mostly in {lead.place[-1]}" if lead.place else ""
    text = f"{duration(lead.length_ns)} of host time before the first activity; most: {most}{place}"
    stat = Stat("Lead", text, brief=False)
    return Section(section.id, section.title, (*section.blocks, stat))
