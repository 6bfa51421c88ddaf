"""All measures of one trace, taken in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from analyze.guard import Guard, require
from analyze.metrics.alignment import Alignment, measure_alignment
from analyze.metrics.blocking_calls import Stalls, cost_of_syncs, find_final_sync, measure_stalls
from analyze.metrics.causes import Delays, add_causes
from analyze.metrics.device_time import DeviceTime, headline, measure_device
from analyze.metrics.fusion import Fusion, measure_fusion
from analyze.metrics.idle import Gap, largest_gaps
from analyze.metrics.launches import Launches, measure_launches
from analyze.metrics.lead import Lead, measure_lead
from analyze.metrics.memory import Memory, measure_memory
from analyze.metrics.modules import Module, measure_modules
from analyze.metrics.op_categories import Purpose, measure_purpose
from analyze.metrics.ops import HostSide, OpsView, measure_host
from analyze.metrics.overlap import Overlap, measure_overlap
from analyze.metrics.precision import PrecisionAudit, abilities_of, gpu_of, measure_precision
from analyze.metrics.quality.device_records import zero_share
from analyze.metrics.quality.file_notices import find_notices
from analyze.metrics.quality.trust import Trust, measure_trust
from analyze.metrics.roofline import Roofline, measure_roofline
from analyze.metrics.starvation import Starvation, measure_starvation
from analyze.metrics.step_ledgers import ByStep, measure_step_ledgers, measure_step_work
from analyze.metrics.steps import Step, measure_steps
from analyze.metrics.symptoms import Symptoms, measure_symptoms
from analyze.metrics.whatif.savings import Savings
from analyze.metrics.whatif.scenario import WhatIfInputs
from analyze.metrics.work import Category, Kernel, measure_categories, measure_kernels
from analyze.notices import Notice, NotMeasured
from analyze.settings import Definitions
from analyze.timeline import (
    CallTree,
    DeviceTimeline,
    Host,
    Intervals,
    Scope,
    Selection,
    device_timelines,
    join,
    partition_gaps,
    select,
)
from analyze.timeline.attribution import Attribution, attribute
from analyze.timeline.intervals import NOTHING
from analyze.trace import Recorded, Trace


@dataclass(frozen=True)
class Measures:
    """What was measured, in integer nanoseconds.

    Attributes:
        selection: what was selected, empty for everything.
        devices: one ledger per device with activities.
        overlaps: concurrency, in the order of `devices`.
        launches: launch statistics.
        stalls: blocking calls.
        categories: work by category.
        kernels: work by activity name.
        purpose: work by what the launching ops are for.
        modules: device time by module, empty without module frames.
        precision: what the matrix kernels ran in.
        roofline: achieved rates.
        fusion: what is fused and what could be.
        memory: allocations over time, empty where not recorded.
        gaps: the largest gaps.
        steps: the steps.
        by_step: ledgers step by step, and what all steps launched.
        host: ops and threads.
        notices: what was odd.
        zero_share: share of rows with time 0 and length 0.
        lead: host time before the headline device's window, None without steps.
        savings: what-ifs, replayed when asked for.
        alignment: half-precision GEMMs of unaligned operands.
        symptoms: what rules judge without a replay.
        starvation: steps that wait for the loader's workers.
        trust: what the headline device's figures stand on, None without one.
        recorded: what `capture` stored in the file, None in other files.
        absent: what could not be measured for an internal error: asking for it raises `AbsentError`.
    """

    selection: str
    devices: tuple[DeviceTime, ...]
    overlaps: tuple[Overlap, ...]
    launches: Launches
    stalls: Stalls
    categories: tuple[Category, ...]
    kernels: tuple[Kernel, ...]
    purpose: Purpose
    modules: tuple[Module, ...]
    precision: PrecisionAudit
    roofline: Roofline
    fusion: Fusion
    memory: Memory
    gaps: tuple[Gap, ...]
    steps: tuple[Step, ...]
    by_step: ByStep
    host: HostSide
    notices: tuple[Notice, ...]
    lead: Lead | None
    zero_share: float
    savings: Savings
    alignment: Alignment
    symptoms: Symptoms
    starvation: Starvation
    recorded: Recorded | None
    trust: Trust | None
    absent: tuple[NotMeasured, ...] = ()


def measure(trace: Trace, definitions: Definitions, wish: Scope, view: OpsView | None = None) -> Measures:
    """Take all measures of a trace, or of a part of it; raises `SelectionError` where there is no such part."""
    selection = select(trace, wish)
    within, make = selection.host_interval, (guard := Guard()).make
    host = make("host-states", lambda: Host(trace))
    lines = make("timelines", lambda: device_timelines(trace.activities, selection.activities))
    delays = Delays(trace, host, definitions.long_gap_ns)
    gaps = make("idle-parts", lambda: _gaps(lines, delays))
    devices = make("devices", lambda: _devices(trace, lines, gaps, definitions))
    main = make("headline", lambda: headline(devices))
    launches = make("launches", lambda: measure_launches(trace, selection.activities, within, definitions))
    work = make("attribution", lambda: _work(trace, selection))
    purpose = make("purpose", lambda: measure_purpose(work))
    gpu = make("gpu", lambda: gpu_of(trace, main.id if main else None))
    abilities = make("abilities", lambda: abilities_of(trace, main.id if main else None))
    memory = make("memory", lambda: measure_memory(trace, within, definitions.top))
    zeros = make("zero_share", lambda: zero_share(trace))
    final = make("final-sync", lambda: find_final_sync(trace, host.blocking, definitions))
    odd = make("notices", lambda: find_notices(trace, selection, devices, launches, definitions, zeros))
    notices = _notices(odd, purpose, memory)
    bench = make("bench", lambda: WhatIfInputs(delays, work, gpu, abilities, definitions, within, final))
    flags, cut = trace.metadata.flags, trace.recording.cut
    measures = Measures(
        selection=selection.label,
        devices=devices,
        overlaps=make("overlaps", lambda: _overlaps(lines, devices)),
        launches=launches,
        stalls=make("stalls", lambda: measure_stalls(trace, host, _together(gaps), _busy(lines), within, final)),
        categories=make("categories", lambda: measure_categories(lines)),
        kernels=make("kernels", lambda: measure_kernels(lines)),
        purpose=purpose,
        modules=make("modules", lambda: measure_modules(work)),
        precision=make("precision", lambda: measure_precision(trace, work, gpu, abilities)),
        roofline=make("roofline", lambda: measure_roofline(trace, work, gpu, definitions.short_kernel_ns)),
        fusion=make("fusion", lambda: measure_fusion(trace, work)),
        memory=memory,
        gaps=make("gaps", lambda: largest_gaps(trace, lines, gaps, definitions.top)),
        steps=make("steps", lambda: measure_steps(trace, selection)),
        by_step=make("by_step", lambda: _by_step(trace, selection, lines, gaps, _own_calls(host, final), definitions)),
        host=make("host", lambda: measure_host(trace, work, within, view or OpsView())),
        notices=notices,
        trust=make("trust", lambda: measure_trust(main, launches, notices, flags, cut=cut)),
        zero_share=zeros,
        alignment=make("alignment", lambda: measure_alignment(trace, work, abilities)),
        symptoms=make("symptoms", lambda: measure_symptoms(trace, work)),
        starvation=make("starvation", lambda: measure_starvation(trace, host, _main_line(lines, devices))),
        recorded=trace.metadata.recorded,
        savings=make("savings", lambda: _savings(bench, lines, devices)),
        lead=make("lead", lambda: measure_lead(trace, host, selection, devices)),
    )
    return replace(measures, absent=guard.not_measured())


def _notices(odd: tuple[Notice, ...], purpose: Purpose, memory: Memory) -> tuple[Notice, ...]:
    """What was odd, as far as it could be measured."""
    guard = Guard()
    return (
        *guard.make_or("odd rows", lambda: tuple(odd), ()),
        *guard.make_or("purpose", lambda: tuple(purpose.notices()), ()),
        *guard.make_or("memory", lambda: tuple(memory.notices()), ()),
    )


def _work(trace: Trace, selection: Selection) -> Attribution:
    """The selected activities with op and purpose."""
    return _numbered(attribute(trace, CallTree.of(trace), selection.activities), trace, selection)


def _overlaps(lines: list[DeviceTimeline], devices: tuple[DeviceTime, ...]) -> tuple[Overlap, ...]:
    return tuple(measure_overlap(line, d.concurrent_ns) for line, d in zip(lines, devices, strict=True))


def _gaps(lines: list[DeviceTimeline], delays: Delays) -> list[pl.DataFrame]:
    """The gaps of each device with their parts, the costs of blocking calls and the causes of launch-bound time."""
    host = delays.host
    return add_causes(delays, [cost_of_syncs(partition_gaps(line, host), host.blocking) for line in lines])


def _savings(bench: WhatIfInputs, lines: list[DeviceTimeline], devices: tuple[DeviceTime, ...]) -> Savings:
    """What-ifs on the headline device, replayed when asked for."""
    require(bench, bench.host, bench.work, bench.gpu, bench.abilities, bench.final)
    main = headline(devices)
    return Savings(bench, lines[devices.index(main)]) if main else Savings(None, None)


def _main_line(lines: list[DeviceTimeline], devices: tuple[DeviceTime, ...]) -> DeviceTimeline | None:
    main = headline(devices)
    return lines[devices.index(main)] if main else None


def _devices(
    trace: Trace, lines: list[DeviceTimeline], gaps: list[pl.DataFrame], definitions: Definitions
) -> tuple[DeviceTime, ...]:
    return tuple(
        measure_device(line, gap, trace.metadata.device_name(line.device), definitions)
        for line, gap in zip(lines, gaps, strict=True)
    )


def _numbered(work: Attribution, trace: Trace, selection: Selection) -> Attribution:
    """The selected activities with `at`, their row among all timed ones."""
    at = selection.chosen.filter(trace.activities["timed"]).arg_true()
    return replace(work, work=work.work.with_columns(at=at.cast(pl.Int64)))


def _own_calls(host: Host, final: int | None) -> pl.DataFrame:
    """The blocking calls without the profiler's own last synchronisation."""
    return host.blocking if final is None else host.blocking.with_row_index("row").filter(pl.col("row") != final)


def _by_step(
    trace: Trace,
    selection: Selection,
    lines: list[DeviceTimeline],
    gaps: list[pl.DataFrame],
    blocking: pl.DataFrame,
    definitions: Definitions,
) -> ByStep:
    """The headline device's ledgers: that of the line with the longest window."""
    if not lines:
        return ByStep()
    at = max(range(len(lines)), key=lambda i: lines[i].window_ns)
    ledgers = measure_step_ledgers(trace, selection, lines[at], gaps[at], blocking, definitions)
    return ByStep(ledgers, measure_step_work(selection))


_COSTS = {"call": pl.Int64, "after_sync_ns": pl.Int64, "exposed_sync_ns": pl.Int64}


def _together(gaps: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([gap.select(*_COSTS) for gap in gaps]) if gaps else pl.DataFrame(schema=_COSTS)


def _busy(lines: list[DeviceTimeline]) -> Intervals:
    return join(*(line.busy for line in lines)) if lines else NOTHING
