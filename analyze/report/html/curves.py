"""Amounts over a few places as line charts: throughput over batch sizes, latency over the iterations of a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from analyze import palette
from analyze.report.sweep import SweepReport
from analyze.trace import Recorded
from analyze.units import duration

LEFT, RIGHT, TOP, BOTTOM = 84, 642, 18, 204
WINDOW = 10  # capture's warm-up is one median per so many iterations
_TICKS = 4
_SHOWN = 400


class ChartLine(Struct, frozen=True):
    """One line of a chart.

    Attributes:
        label: what it shows.
        colour: of the line and its dots.
        points: as those of an SVG polyline.
        dots: place and title of each point.
    """

    label: str
    colour: str
    points: str
    dots: tuple[tuple[float, float, str], ...]


class Chart(Struct, frozen=True):
    """One chart; its vertical axis begins at 0.

    Attributes:
        title: what it shows.
        note: how to read it, one sentence.
        along: caption of the horizontal axis.
        lines: what is drawn.
        x_ticks: place and label.
        y_ticks: the same.
    """

    title: str
    note: str
    along: str
    lines: tuple[ChartLine, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]


def sweep_curves(report: SweepReport) -> tuple[Chart, ...]:
    """Throughput and latency over the batch sizes that were measured; none for fewer than two."""
    rows = [row for row in report.rows if row.p50_ns and row.samples_per_s]
    if len(rows) < 2:
        return ()
    x = [_between(LEFT, RIGHT, i / (len(rows) - 1)) for i in range(len(rows))]
    ticks = tuple((at, str(row.batch_size)) for at, row in zip(x, rows, strict=True))
    rates = [row.samples_per_s or 0.0 for row in rows]
    titles = [f"batch {row.batch_size}: {rate:,.0f} samples/s" for row, rate in zip(rows, rates, strict=True)]
    throughput = Chart(
        "Throughput", "Where the line becomes flat, a larger batch only adds latency.", "batch size",
        (_line("samples/s", palette.BLUE, x, rates, max(rates), titles),), ticks,
        _y_ticks(max(rates), lambda value: f"{value:,.0f}/s"),
    )  # fmt: skip
    top = max(row.p90_ns or row.p50_ns or 0 for row in rows)
    lines = []
    for label, colour, times in (
        ("p90", palette.ORANGE, [row.p90_ns for row in rows]),
        ("p50", palette.BLUE, [row.p50_ns for row in rows]),
    ):
        known = [(at, time, row.batch_size) for at, time, row in zip(x, times, rows, strict=True) if time]
        named = [f"batch {batch}: {label} {duration(time)}" for _, time, batch in known]
        lines.append(_line(label, colour, [at for at, _, _ in known], [time for _, time, _ in known], top, named))
    latency = Chart("Latency of a forward", "", "batch size", tuple(lines), ticks, _y_ticks(top, _time))
    return throughput, latency


def recording_curves(recorded: Recorded | None) -> tuple[Chart, ...]:
    """How the model became warm and how its latency held, in the order of the iterations; none for fewer than two."""
    if recorded is None:
        return ()
    warm, timed = recorded.warmup_medians_ns, recorded.latency_samples_ns[:_SHOWN]
    if len(warm) + len(timed) < 2:
        return ()
    first = len(warm) * WINDOW
    last, top = first + max(len(timed) - 1, 0), max(*warm, *timed)
    places = [((i + 0.5) * WINDOW - 0.5) for i in range(len(warm))]
    lines = []
    if warm:
        titles = [f"median of {WINDOW}: {duration(ns)}" for ns in warm]
        at = [_between(LEFT, RIGHT, place / max(last, 1)) for place in places]
        lines.append(_line(f"warm-up, median of {WINDOW}", palette.ORANGE, at, warm, top, titles))
    if timed:
        titles = [f"{recorded.unit}: {duration(ns)}" for ns in timed]
        at = [_between(LEFT, RIGHT, (first + i) / max(last, 1)) for i in range(len(timed))]
        lines.append(_line(f"timed {recorded.unit}s", palette.BLUE, at, timed, top, titles))
    ticks = tuple((_between(LEFT, RIGHT, i / _TICKS), f"{round(last * i / _TICKS):,}") for i in range(_TICKS + 1))
    unit = recorded.unit
    note = f"Without the profiler. The first {unit}, in which libraries load, is left out."
    return (
        Chart(f"Latency of a {unit}, with its warm-up", note, f"{unit}s", tuple(lines), ticks, _y_ticks(top, _time)),
    )


def _line(
    label: str, colour: str, x: Sequence[float], values: Sequence[float], top: float, titles: Sequence[str]
) -> ChartLine:
    y = [_between(BOTTOM, TOP, value / top) for value in values]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return ChartLine(label, colour, points, tuple(zip(x, y, titles, strict=True)))


def _between(start: float, end: float, share: float) -> float:
    return start + (end - start) * share


def _y_ticks(top: float, text: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    steps = range(_TICKS + 1)
    return tuple((_between(BOTTOM, TOP, i / _TICKS), text(top * i / _TICKS) if i else "0") for i in steps)


def _time(ns: float) -> str:
    return duration(round(ns))
