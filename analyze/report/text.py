"""Cells, bars and names as text, the same for every text format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from analyze.blocks import Breakdown, Cell, Column, Kind, Page, Series, Suggestion
from analyze.inert import ascii_json, printable
from analyze.units import (
    MEMORY_UNITS,
    TIME_UNITS,
    Unit,
    column_scale,
    duration,
    memory,
    nested_tenths,
    number,
    percent,
    tenths_text,
)

_Report = TypeVar("_Report")
EMPTY = "–"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FOLDED_TENTHS = 0.5  # parts of less than 0.05 % share one line in text
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII = str.maketrans(
    {
        **dict(zip(_LEVELS, "_.-=+*%#", strict=True)),
        "µ": "u",
        "–": "-",
        "…": "~",
        "≤": "<",
        "≈": "~",
        "→": ">",
        "✓": "v",
        "✗": "x",
        **dict.fromkeys(_EIGHTHS[1:], "#"),
    }
)


def to_ascii(text: str) -> str:
    """The text in ASCII: units and bars by look-alikes, letters of names by question marks."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def ascii_form(text: str, form: str) -> str:
    """A rendered report in ASCII: JSON says the same in escapes, Markdown keeps its marks."""
    if form == "json":
        return ascii_json(text)
    if form == "md":
        text = text.replace("…", "...").replace("≤", "&lt;=").replace("≈", "about")  # ~ and < mean something
    return to_ascii(text)


def typable_in_ascii(report: _Report) -> _Report:
    """A report without the commands that ASCII cannot spell: one with a question mark in it would read another file."""
    page: Page = report.page  # type: ignore[attr-defined]
    kept = tuple(command for command in page.next_steps if command.isascii())
    return replace(report, page=replace(page, next_steps=kept))  # type: ignore[type-var]


def shorten(name: str, width: int) -> str:
    """The name in at most so many characters, cut in the middle: kernels differ at both ends."""
    if len(name) <= width:
        return name
    if width < 2:
        return name[:width]
    left = (width - 1) // 2
    return name[: width - 1 - left] + "…" + (name[-left:] if left else "")


def bar(share: float, width: int) -> str:
    """A bar whose full width is the whole; whatever is there shows at least an eighth."""
    eighths = round(max(min(share, 1.0), 0.0) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def sparkline(series: Series, width: int) -> str:
    """The points in so many characters, each as high as the largest of its points; only nothing is blank."""
    count = len(series.points)
    width = min(width, count)
    if width < 1:
        return ""
    parts = [max(series.points[i * count // width : max((i + 1) * count // width, i * count // width + 1)])
             for i in range(width)]  # fmt: skip
    last, top = len(_LEVELS) - 1, max(series.top, 1)
    return "".join(_LEVELS[min(part * len(_LEVELS) // top, last)] if part > 0 else " " for part in parts)


def series_figures(series: Series) -> str:
    """Start, peak and end of a series in words."""
    if not series.points:
        return "nothing recorded"
    start, peak, end = (
        _alone(value, series.kind) for value in (series.points[0], max(series.points), series.points[-1])
    )
    return f"start {start}, peak {peak}, end {end}"


def _alone(value: int, kind: Kind) -> str:
    if kind is Kind.TIME:
        return duration(value)
    return memory(value) if kind is Kind.MEMORY else f"{value:,}"


def cells(column: Column, values: Sequence[Cell]) -> list[str]:
    """The cells of a column as text: one unit for all, `–` where there is no value."""
    match column.kind:
        case Kind.TEXT | Kind.CODE | Kind.FIGURE:
            return [EMPTY if value is None else printable(str(value)) for value in values]
        case Kind.COUNT:
            return [EMPTY if value is None else f"{value:,}" for value in values]
        case Kind.SHARE:
            return [EMPTY if value is None else percent(float(value)) for value in values]
        case Kind.BAR:
            return [str(value or 0.0) for value in values]
        case Kind.TIME | Kind.MEMORY:
            return _amounts(values, TIME_UNITS if column.kind is Kind.TIME else MEMORY_UNITS)


def _amounts(values: Sequence[Cell], units: Sequence[Unit]) -> list[str]:
    known = [int(value) for value in values if value is not None]
    unit, decimals = column_scale(known, units)
    return [EMPTY if value is None else _amount(int(value), unit, decimals) for value in values]


def _amount(value: int, unit: Unit, decimals: int) -> str:
    if value == 0:
        return f"0 {unit.symbol}"
    text = number(value / unit.size, decimals)
    if not any(digit in text for digit in "123456789"):
        text = "<" + number(10.0**-decimals, decimals)
    return f"{text} {unit.symbol}"


def savings_column(suggestions: Sequence[Suggestion]) -> list[str]:
    """Savings in one unit: bounds with `≤`, estimates with `≈`, `–` where there is none."""
    amounts = _amounts([suggestion.saved_ns for suggestion in suggestions], TIME_UNITS)
    return [
        text if s.saved_ns is None else f"{'≤' if s.bound else '≈'} {text}"
        for s, text in zip(suggestions, amounts, strict=True)
    ]


class BreakdownRow(Struct, frozen=True):
    """One printed row of a breakdown: label, time, percent, share for the bar, and whether the device idles."""

    label: str
    time: str
    percent: str
    share: float
    idle: bool


def breakdown_rows(breakdown: Breakdown) -> list[BreakdownRow]:
    """The rows of a breakdown and its total, rounded so that times and percents sum to what the total prints.

    Busy and idle are rounded first, then the parts within each. Idle parts under 0.05 % share one line.
    """
    whole = breakdown.total_ns
    unit, decimals = column_scale([whole], TIME_UNITS)
    quantum = max(unit.size // 10**decimals, 1)
    busy = [(part.label, part.ns) for part in breakdown.parts if part.ns and not part.idle]
    idle = _fold([(part.label, part.ns) for part in breakdown.parts if part.ns and part.idle], whole)
    amounts = [[ns for _, ns in busy], [ns for _, ns in idle]]
    shares, times = nested_tenths(amounts), nested_tenths(amounts, round(whole / quantum))
    rows: list[BreakdownRow] = []
    for i, group in enumerate((busy, idle)):
        for (label, ns), share, time in zip(group, shares[i], times[i], strict=True):
            shown = _amount(time * quantum if time else min(ns, quantum // 3), unit, decimals)
            rows.append(BreakdownRow(label, shown, tenths_text(share, ns), ns / whole, idle=bool(i)))
    total = _amount(round(whole / quantum) * quantum, unit, decimals)
    return [*rows, BreakdownRow("Total", total, "100.0%", 1.0, idle=False)]


def _fold(parts: list[tuple[str, int]], whole: int) -> list[tuple[str, int]]:
    """The parts with the smallest ones together on one line, when there are several."""
    small = [part for part in parts if part[1] * 1000 < _FOLDED_TENTHS * whole]
    if len(small) < 2:
        return parts
    return [*(part for part in parts if part not in small), ("Other idle", sum(ns for _, ns in small))]
