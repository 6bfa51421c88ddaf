"""More than two reports: one column per input, and the ratios against the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from analyze.blocks import Column, Kind, Page, Section, Table
from analyze.compare.changes import Side, side
from analyze.compare.comparability import check_definitions, find_notices
from analyze.compare.comparable import Comparable
from analyze.compare.figures import LATENCY, Figure, figures_of
from analyze.compare.judge import Verdict, judge
from analyze.compare.latency import MAIN as LATENCY_MAIN
from analyze.compare.latency import fastest, latency_ratio
from analyze.compare.pair import RULE
from analyze.compare.wording import ratio_text, side_by_side
from analyze.errors import NotComparableError
from analyze.notices import Notice
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.notebook import Shown
from analyze.report.plain import frame, plain
from analyze.units import duration, plural

MOST = 5  # columns of numbers that eighty columns of text hold beside a name
_SMALL = 0.0005  # of the window for all inputs: rows below it stay in JSON
_LABEL = 10
_CATEGORIES = 8


class Row(Struct, frozen=True):
    """One figure of all inputs.

    Attributes:
        group: id of its question.
        id: stable name; metrics keep theirs.
        label: row label.
        unit: ns, share, count or bytes.
        better: "lower", "higher", or empty.
        values: one per input, None where it was not measured.
        ratios: each through the first, None where one is missing or the first is 0.
        verdicts: each against the first; the first is equal to itself.
    """

    group: str
    id: str
    label: str
    unit: str
    better: str
    values: tuple[float | int | None, ...]
    ratios: tuple[float | None, ...]
    verdicts: tuple[Verdict, ...]


class Lineup(Shown, Struct, frozen=True):
    """Several reports side by side, independent of any format.

    Attributes:
        version: version of the program.
        sides: the inputs in order; all are compared with the first.
        per_step: amounts are medians of steps; else of the whole windows.
        rows: the figures, by question.
        notices: what a reader of the figures has to know.
        page: what text formats draw.
    """

    version: str
    sides: tuple[Side, ...]
    per_step: bool
    rows: tuple[Row, ...]
    notices: tuple[Notice, ...]
    page: Page

    def as_json(self) -> dict[str, Any]:
        """The figures by the keys of their contract, `lineup_schema`."""
        return {
            **frame(self.version, self.page),
            "inputs": plain(self.sides),
            "per_step": self.per_step,
            "rows": plain(self.rows),
            "notices": plain(self.notices),
        }


def line_up(subjects: Sequence[Comparable], labels: Sequence[str]) -> Lineup:
    """Put several reports side by side.

    Args:
        subjects: three to `MOST` reports; the first is the baseline.
        labels: how tables name them.

    Raises:
        NotComparableError: too many, or their figures mean different things.
    """
    if len(subjects) > MOST:
        raise NotComparableError(f"{len(subjects)} inputs do not fit one table.", f"Compare at most {MOST} at once.")
    check_definitions(subjects, labels)
    per_step = all(subject.step_ledgers for subject in subjects)
    sides = tuple(side(subject, label) for subject, label in zip(subjects, labels, strict=True))
    rows = tuple(_rows(subjects, per_step=per_step))
    notices, program = find_notices(subjects, labels), program_version()
    page = Page(
        subject="Trace comparison",
        name=", ".join(labels),
        about=f"ratios are against {labels[0]}; amounts are {'medians of steps' if per_step else 'of whole windows'}",
        verdict="not-judged",
        headline=plural(len(sides), "input"),
        sentences=tuple(_sentences(sides, rows)),
        whole=None,
        sections=tuple(_sections(labels, rows, per_step=per_step)),
        notices=notices,
        not_measured=(),
        next_steps=(),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}; {RULE}; sha256 "
        + ", ".join(subject.trace.sha256[:12] for subject in subjects),
    )
    return Lineup(program, sides, per_step, rows, notices, page)


def _rows(subjects: Sequence[Comparable], *, per_step: bool) -> Iterator[Row]:
    """Every figure that some input has, in the order of the first input that has it."""
    for groups in zip(*(figures_of(subject, per_step=per_step) for subject in subjects), strict=True):
        found = [{figure.id: figure for figure in group.rows} for group in groups]
        for name in dict.fromkeys(name for figures in found for name in figures):
            yield _row(groups[0].id, [figures.get(name) or _nothing(figures) for figures in found], name)


def _nothing(figures: dict[str, Figure]) -> Figure:
    """What stands for a figure that an input lacks: no time, if it has others of the kind."""
    return Figure("", "", "", "", 0 if figures else None)


def _row(group: str, figures: Sequence[Figure], name: str) -> Row:
    one = next(figure for figure in figures if figure.id == name)
    first = figures[0]
    return Row(
        group=group,
        id=name,
        label=one.label,
        unit=one.unit,
        better=one.better,
        values=tuple(figure.value for figure in figures),
        ratios=tuple(None if not first.value or f.value is None else f.value / first.value for f in figures),
        verdicts=tuple(judge(first.value, f.value, first.steps, f.steps, one.better) for f in figures),
    )


def _sentences(sides: Sequence[Side], rows: Sequence[Row]) -> Iterator[str]:
    latency = next((row for row in rows if row.id == LATENCY_MAIN and all(v is not None for v in row.values)), None)
    if latency is not None:
        named = ", ".join(f"{one.label} {duration(int(v or 0))}" for one, v in zip(sides, latency.values, strict=True))
        yield f"Latency without the profiler, median: {named}."
        yield fastest([one.label for one in sides], latency.values, latency.verdicts)
    main = next((row for row in rows if row.group == "headline" and all(v is not None for v in row.values)), None)
    if main is None:
        if latency is None:
            yield "No step or window is in all of them."
        return
    best = min(range(len(sides)), key=lambda i: main.values[i] or 0)
    shown = side_by_side(main.unit, main.values)
    named = ", ".join(f"{one.label} {text}" for one, text in zip(sides, shown, strict=True))
    yield f"{main.label}: {named}."
    if best and main.verdicts[best] == "better":
        yield f"Fastest: {sides[best].label}, {ratio_text(main.ratios[best])} the time of {sides[0].label}."
    elif main.verdicts[best] == "no-spread":
        yield "Fewer than 3 steps have no spread: changes are stated, not judged."


def _sections(labels: Sequence[str], rows: Sequence[Row], *, per_step: bool) -> Iterator[Section]:
    basis = "per step" if per_step else "per window"
    shares = [row for row in rows if row.group == "state-shares" and _large(row)]
    large = {row.label for row in shares}
    latencies = [row for row in rows if row.group == LATENCY]
    if latencies:
        table = _table("Latency without the profiler", labels, latencies, len(latencies))
        yield Section("compare-latency", "Latency", (table, _latency_ratios(labels, latencies)))
    times = [row for row in rows if row.group == "headline" or (row.group == "states" and row.label in large)]
    times += [row for row in rows if row.group in ("launches", "waits", "memory")]
    times = [row for row in times if any(row.values)]
    if times:
        ratios = _ratios("Ratio", labels, [row for row in times if row.ratios[0]])
        yield Section("compare-time", "Figures", (_table(f"Figures {basis}", labels, times, len(times)), ratios))
    if shares:
        yield Section("compare-shares", "Shares", (_table("Share of the window", labels, shares, len(shares)),))
    work = [row for row in rows if row.group == "categories"]
    if work:
        yield Section("compare-work", "Work", (_table(f"Work {basis}", labels, work, _CATEGORIES),))
    precision = [row for row in rows if row.group == "precision"]
    if precision:
        table = _table("Share of the kernels' time", labels, precision, len(precision))
        yield Section("compare-precision", "Precision", (table,))


def _latency_ratios(labels: Sequence[str], rows: Sequence[Row]) -> Table:
    """Ratios where the samples differ by more than they spread."""
    return Table(
        title=f"Ratio to {labels[0]}",
        columns=(Column("figure", Kind.TEXT), *(Column(label, Kind.FIGURE) for label in labels[1:])),
        rows=tuple(
            (row.label, *(latency_ratio(r, v) for r, v in zip(row.ratios[1:], row.verdicts[1:], strict=True)))
            for row in rows
        ),
        brief=len(rows),
    )


def _large(row: Row) -> bool:
    return max(value or 0 for value in row.values) >= _SMALL


def _table(title: str, labels: Sequence[str], rows: Sequence[Row], brief: int) -> Table:
    columns = (Column("figure", Kind.TEXT), *(Column(label, Kind.FIGURE) for label in labels))
    return Table(title, columns, tuple((row.label, *side_by_side(row.unit, row.values)) for row in rows), brief)


def _ratios(title: str, labels: Sequence[str], rows: Sequence[Row]) -> Table:
    return Table(
        title=f"{title} to {labels[0]}",
        columns=(Column("figure", Kind.TEXT), *(Column(label, Kind.FIGURE) for label in labels[1:])),
        rows=tuple((row.label, *map(_marked, row.ratios[1:], row.verdicts[1:])) for row in rows),
        brief=len(rows),
        note="In parentheses: within step spread, or without one.",
    )


def _marked(ratio: float | None, verdict: Verdict) -> str | None:
    text = ratio_text(ratio)
    return text if text is None or verdict in ("better", "worse", "changed", "equal") else f"({text})"


def labels_of(paths: Sequence[Path], *, folders: bool = True) -> list[str]:
    """Short, distinct names for inputs: of their files, else of their folders, else letters.

    Args:
        paths: the inputs.
        folders: names of folders may be shown.
    """
    names = [path.name.removesuffix(".gz").removesuffix(".json") for path in paths]
    for found in (names, [_folder(path) for path in paths] if folders else []):
        short = [name[:_LABEL] for name in found]
        if short and all(short) and len(set(short)) == len(short):
            return short
    return [chr(ord("A") + i) for i in range(len(paths))]


def _folder(path: Path) -> str:
    try:
        return path.absolute().parent.name
    except OSError:  # the working folder was deleted
        return ""
