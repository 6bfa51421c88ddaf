"""Blocks as the templates draw them: every cell with its text and, where it is a number, its exact value."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from analyze.blocks import Breakdown, Cell, Column, Kind, Series, Table
from analyze.findings.states import STATES
from analyze.inert import printable
from analyze.report.html.looks import Look, look_of
from analyze.report.text import cells
from analyze.units import TIME_UNITS, column_scale, nested_tenths, number, tenths_text

_NUMBERS = (Kind.TIME, Kind.COUNT, Kind.SHARE, Kind.MEMORY)
_AT = "in window at"  # such a column says when something began
_CAUSES = {state.label: state.cause for state in STATES}
_SPARK = (300, 40)  # width and height of a drawn series


class CellView(Struct, frozen=True):
    """One cell.

    Attributes:
        text: as printed.
        kind: of its column.
        value: the number behind the text, None where there is none.
        at_ns: the instant in the headline window that it names, None where it names none.
    """

    text: str
    kind: str
    value: float | int | None
    at_ns: int | None = None


class RowView(Struct, frozen=True):
    """One row of a table, and the interval of the scene that it is about, where there is one."""

    cells: tuple[CellView, ...]
    span: tuple[int, int] | None = None


class TableView(Struct, frozen=True):
    """One table.

    Attributes:
        title: with how many of how many rows there are.
        columns: captions and kinds.
        rows: its rows.
        note: how to read it.
        open: it is shown at once rather than on demand.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[RowView, ...]
    note: str
    open: bool


def table_view(table: Table, spans: Sequence[tuple[int, int]] = ()) -> TableView:
    """A table for the template.

    Args:
        table: the block.
        spans: start and length of what each row is about, relative to the scene's origin; empty where unknown.
    """
    texts = [cells(column, [row[i] for row in table.rows]) for i, column in enumerate(table.columns)]
    rows = tuple(
        RowView(
            tuple(_cell(column, texts[j][i], row[j]) for j, column in enumerate(table.columns)),
            spans[i] if i < len(spans) else None,
        )
        for i, row in enumerate(table.rows)
    )
    return TableView(table.heading(len(table.rows)), table.columns, rows, table.note, bool(table.brief))


def _cell(column: Column, text: str, value: Cell) -> CellView:
    is_number = column.kind in _NUMBERS and isinstance(value, int | float)
    known = value if is_number and not isinstance(value, str) else None
    at = int(known) if known is not None and _AT in column.head else None
    if column.kind is Kind.BAR:
        known = None if value is None else float(value)
        text = ""
    return CellView(text, column.kind.name.lower(), known, at)


class PartView(Struct, frozen=True):
    """One part of a whole, drawn from `offset` percent on over `width` percent; for states what happens in it."""

    label: str
    ns: int
    time: str
    percent: str
    offset: float
    width: float
    look: Look
    idle: bool
    cause: str = ""


class BreakdownView(Struct, frozen=True):
    """A whole and its parts; those that are nothing are left out."""

    title: str
    of: str
    parts: tuple[PartView, ...]
    total: str
    total_ns: int


def breakdown_view(block: Breakdown) -> BreakdownView:
    """A breakdown with times and percents that sum to what its total prints."""
    whole = block.total_ns
    unit, decimals = column_scale([whole], TIME_UNITS)
    quantum = max(unit.size // 10**decimals, 1)
    there = [part for idle in (False, True) for part in block.parts if part.ns and part.idle is idle]
    amounts = [[part.ns for part in there if part.idle is idle] for idle in (False, True)]
    shares = [share for group in nested_tenths(amounts) for share in group]
    times = [time for group in nested_tenths(amounts, round(whole / quantum)) for time in group]

    def text(quanta: int) -> str:
        return f"{number(quanta * quantum / unit.size, decimals)} {unit.symbol}"

    parts, before = [], 0
    for turn, (part, share, time) in enumerate(zip(there, shares, times, strict=True)):
        shown = text(time) if time else f"<{text(1)}"
        offset, width = 100 * before / whole, 100 * part.ns / whole
        parts.append(
            PartView(
                printable(part.label), part.ns, shown, tenths_text(share, part.ns), offset, width,
                look_of(part.label, turn), part.idle, _CAUSES.get(part.label, ""),
            )
        )  # fmt: skip
        before += part.ns
    return BreakdownView(block.title, block.of, tuple(parts), text(round(whole / quantum)), whole)


def polyline(series: Series) -> str:
    """The points of a series as those of an SVG area, in a box of `_SPARK`."""
    width, height = _SPARK
    top, last = max(series.top, 1), max(len(series.points) - 1, 1)
    places = (f"{i * width / last:.1f},{height - height * point / top:.1f}" for i, point in enumerate(series.points))
    return " ".join((f"0,{height}", *places, f"{width},{height}"))
