"""What a page shows besides the blocks of its document: the scene, a roofline, and the long tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyze.blocks import Column, Kind, Table
from analyze.guard import AbsentError, Guard, present
from analyze.metrics import Measures
from analyze.metrics.device_time import headline
from analyze.report.html.roofline import RooflineView, roofline_view
from analyze.report.html.scene import Scene, build_scene
from analyze.report.html.strip import StepColumn, step_columns
from analyze.report.report import Document, Report

_ROWS = 1_000
_GAPS = ("idle", "Largest gaps")


@dataclass(frozen=True)
class Parts:
    """The parts of a page that only documents on one trace have.

    Attributes:
        scene: what the timeline draws, None where there is none.
        window_ns: start of the headline window relative to the scene's origin.
        roofline: a picture of the achieved rates, None without peaks or rates.
        steps: the steps side by side.
        sections: id, title and blocks of the tables that text formats cut.
        spans: by section and title of a table, what each of its rows is about: start and length.
    """

    scene: Scene | None = None
    window_ns: int = 0
    roofline: RooflineView | None = None
    steps: tuple[StepColumn, ...] = ()
    sections: tuple[tuple[str, str, tuple[Table, ...]], ...] = ()
    spans: dict[tuple[str, str], tuple[tuple[int, int], ...]] | None = None

    def spans_of(self, section: str, title: str) -> tuple[tuple[int, int], ...]:
        """What the rows of a table are about, empty where that is not known."""
        return (self.spans or {}).get((section, title), ())


def parts_of(document: Document) -> Parts:
    """The parts of a document; empty ones where it is not about one trace."""
    report = getattr(document, "report", document)
    if not isinstance(report, Report):
        return Parts()
    guard, measures = Guard(), report.measures
    source = report.source
    scene = guard.make_or("scene", lambda: build_scene(report, source), None) if source is not None else None
    device = guard.make_or("device", lambda: headline(measures.devices), None)
    origin = scene.origin_ns if scene else 0
    return Parts(
        scene,
        device.window_start_ns - origin if device else 0,
        guard.make_or("roofline", lambda: roofline_view(measures), None),
        guard.make_or("steps", lambda: step_columns(measures), ()),
        tuple(guard.make_or("tables", lambda: tuple(_tables(measures)), ())),
        {_GAPS: guard.make_or("gaps", lambda: tuple((g.start_ns - origin, g.length_ns) for g in measures.gaps), ())},
    )


def _tables(measures: Measures) -> Iterator[tuple[str, str, tuple[Table, ...]]]:
    if present(measures.kernels) and measures.kernels:
        yield "all-kernels", "All kernels, copies and memsets", (_kernels(measures),)
    try:
        ops = measures.host.ops
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
    ops: tuple[Any, ...] = measures.host.ops
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
