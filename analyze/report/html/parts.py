"""What a page shows besides the blocks of its document: what its script draws, pictures, and the long tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from analyze.blocks import Column, Kind, Table
from analyze.guard import AbsentError, Guard, present
from analyze.metrics import Measures
from analyze.report.html.curves import Chart, recording_curves, sweep_curves
from analyze.report.html.memory_view import MemoryView, memory_scene, memory_views
from analyze.report.html.pair import PairView, pair_scene, pair_view
from analyze.report.html.ranks_view import HeatMap, heat_map, ranks_scene
from analyze.report.html.roofline import RooflineView, roofline_view
from analyze.report.html.scene import build_scene
from analyze.report.html.strip import StepColumn, step_columns
from analyze.report.ranks.build import RanksReport
from analyze.report.report import Document, Report
from analyze.report.snapshot import SnapshotReport
from analyze.report.sweep import SweepReport

_ROWS = 1_000
_GAPS = ("idle", "Largest gaps")
_TIMES = (("device", "on the device"), ("host", "on the host"))
_LEVELS = (
    ("layers", "modules and ops"),
    ("all", "all"),
    ("modules", "modules"),
    ("ops", "ops and ranges"),
    ("own", "modules, ops and own Python"),
    ("frames", "Python frames"),
)
_Spans = tuple[tuple[int, int], ...]


class Parts(Struct, frozen=True):
    """The parts of a page that only some documents have.

    Attributes:
        scene: what the script unpacks and draws, None for nothing.
        notes: what had to be left out of it or merged, in sentences.
        lanes: the scene has a timeline.
        gap: what its idle stretches are: "gap", or "wait" of a rank.
        launches: its activities have launches.
        measures: amounts of its stacks, key and name; empty without stacks.
        levels: selections of frames likewise.
        window_ns: start of the headline window relative to the scene's origin.
        roofline: a picture of the achieved rates, None without peaks or rates.
        steps: the steps side by side.
        sections: id, title and blocks of the tables that text formats cut.
        spans: by section and title of a table, what each of its rows is about: start and length.
        memory: pictures of a memory snapshot.
        heat: who waits for whom.
        pair: two ledgers one above the other.
        curves: line charts.
        failed: what could not be drawn for an internal error.
    """

    scene: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    lanes: bool = False
    gap: str = "gap"
    launches: bool = False
    measures: tuple[tuple[str, str], ...] = ()
    levels: tuple[tuple[str, str], ...] = _LEVELS
    window_ns: int = 0
    roofline: RooflineView | None = None
    steps: tuple[StepColumn, ...] = ()
    sections: tuple[tuple[str, str, tuple[Table, ...]], ...] = ()
    spans: Mapping[tuple[str, str], _Spans] = field(default_factory=dict)
    memory: tuple[MemoryView, ...] = ()
    heat: HeatMap | None = None
    pair: PairView | None = None
    curves: tuple[Chart, ...] = ()
    failed: tuple[str, ...] = ()

    def spans_of(self, section: str, title: str) -> _Spans:
        """What the rows of a table are about, empty where that is not known."""
        return self.spans.get((section, title), ())


def parts_of(document: Document) -> Parts:
    """The parts of a document; what raises is left out, and named."""
    inner, guard = getattr(document, "report", getattr(document, "comparison", document)), Guard()
    sides = getattr(inner, "sides", None) or ()
    parts = Parts()
    if isinstance(inner, Report):
        parts = _of_trace(inner, guard)
    elif isinstance(inner, SnapshotReport):
        parts = _of_snapshot(inner, guard)
    elif isinstance(inner, RanksReport):
        parts = _of_job(inner, guard)
    elif isinstance(inner, SweepReport):
        parts = Parts(curves=guard.make_or("curves", lambda: sweep_curves(inner), ()))
    elif sides and all(isinstance(side, Report) for side in sides):
        parts = _of_pair(sides[0], sides[1], guard)
    return replace(parts, failed=tuple(missing.id for missing in guard.raised()))


def _of_trace(report: Report, guard: Guard) -> Parts:
    measures = report.measures
    scene = guard.make_or("timeline", lambda: build_scene(report), None)
    device = measures.headline if present(measures.headline) else None
    origin = scene.origin_ns if scene else 0
    gaps = guard.make_or("gaps", lambda: tuple((g.start_ns - origin, g.length_ns) for g in measures.gaps), ())
    return Parts(
        scene=scene.content if scene else None,
        notes=scene.notes if scene else (),
        lanes=scene is not None,
        launches=device is not None,
        measures=_TIMES if scene else (),
        window_ns=device.window_start_ns - origin if device else 0,
        roofline=guard.make_or("roofline", lambda: roofline_view(measures), None),
        steps=guard.make_or("steps", lambda: step_columns(measures), ()),
        sections=guard.make_or("tables", lambda: tuple(_tables(measures)), ()),
        spans={_GAPS: gaps} if scene else {},
        curves=guard.make_or("curves", lambda: recording_curves(report.trace.recorded), ()),
    )


def _of_snapshot(report: SnapshotReport, guard: Guard) -> Parts:
    snapshot = report.source
    if snapshot is None:
        return Parts()
    return Parts(
        scene=guard.make_or("stacks", lambda: memory_scene(snapshot, report.devices), None),
        measures=(("bytes", "memory at the peak"),),
        levels=(("all", "all"), ("python", "Python frames"), ("mine", "own Python")),
        memory=guard.make_or("memory", lambda: memory_views(snapshot, report.devices), ()),
    )


def _of_job(report: RanksReport, guard: Guard) -> Parts:
    document = report.job.document()
    scene, note = guard.make_or("lanes", lambda: ranks_scene(document), None) or (None, "")
    return Parts(
        scene=scene,
        notes=(note,) if note else (),
        lanes=scene is not None,
        gap="wait",
        heat=guard.make_or("heat map", lambda: heat_map(document), None),
    )


def _of_pair(a: Report, b: Report, guard: Guard) -> Parts:
    scene = guard.make_or("lanes", lambda: pair_scene(a, b), None)
    return Parts(
        scene=scene,
        lanes=scene is not None,
        launches=scene is not None,
        measures=_TIMES if scene else (),
        pair=guard.make_or("ledgers", lambda: pair_view(a, b), None),
    )


def _tables(measures: Measures) -> Iterator[tuple[str, str, tuple[Table, ...]]]:
    if present(measures.kernels) and measures.kernels:
        yield "all-kernels", "All kernels, copies and memsets", (_kernels(measures),)
    try:
        ops = measures.ops.ops
    except AbsentError:
        return
    if ops:
        yield "all-ops", "All ops", (_ops(measures),)


def _kernels(measures: Measures) -> Table:
    kernels = measures.kernels
    most = max(kernel.sum_ns for kernel in kernels) or 1
    return Table(
        title="Kernels",
        columns=(
            Column("kernel", Kind.CODE),
            Column("category", Kind.TEXT),
            Column("launches", Kind.COUNT),
            Column("time", Kind.TIME),
            Column("of the largest", Kind.BAR),
        ),
        rows=tuple((k.name, k.category, k.count, k.sum_ns, k.sum_ns / most) for k in kernels[:_ROWS]),
        brief=1,
        total=len(kernels),
    )


def _ops(measures: Measures) -> Table:
    ops: tuple[Any, ...] = measures.ops.ops
    return Table(
        title="Ops, ranges and API calls",
        columns=(
            Column("op", Kind.CODE),
            Column("kind", Kind.TEXT),
            Column("calls", Kind.COUNT),
            Column("self CPU", Kind.TIME),
            Column("total CPU", Kind.TIME),
            Column("self device", Kind.TIME),
            Column("total device", Kind.TIME),
        ),
        rows=tuple(
            (o.name, o.kind, o.calls, o.self_cpu_ns, o.total_cpu_ns, o.self_device_ns, o.total_device_ns)
            for o in ops[:_ROWS]
        ),
        brief=1,
        total=len(ops),
    )
