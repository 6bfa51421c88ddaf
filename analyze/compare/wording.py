"""Figures side by side as text: one unit per row, changes with their sign."""

from __future__ import annotations

from collections.abc import Sequence

from analyze.units import MEMORY_UNITS, TIME_UNITS, decimals_for, duration, number, percent, unit_for

_FAR = 10  # from here on a ratio says more than a percent
_UNITS = {"ns": TIME_UNITS, "bytes": MEMORY_UNITS}


def side_by_side(unit: str, values: Sequence[float | int | None]) -> list[str | None]:
    """Values of one figure in one unit, chosen by the largest; None stays."""
    known = [value for value in values if value is not None]
    if unit == "share":
        return [None if value is None else percent(value) for value in values]
    if unit not in _UNITS:
        decimals = 0 if all(float(value).is_integer() for value in known) else 1
        return [None if value is None else number(value, decimals) for value in values]
    largest = max((abs(value) for value in known), default=0)
    scale = unit_for([int(largest)], _UNITS[unit])
    decimals = 0 if scale.size == 1 else max(decimals_for(largest / scale.size), 1)
    return [None if value is None else _amount(value / scale.size, decimals, scale.symbol) for value in values]


def _amount(value: float, decimals: int, symbol: str) -> str:
    text = number(value, decimals)
    if value and not any(digit in text for digit in "123456789"):
        text = "<" + number(10.0**-decimals, decimals)
    return f"{text if value else '0'} {symbol}"


def change_text(unit: str, a: float | None, b: float | None) -> str | None:
    """The change with its sign: percent of the first, percentage points of shares."""
    if a is None or b is None:
        return None
    if unit == "share":
        return "0 pp" if a == b else _signed(100 * (b - a), " pp")
    if a == b:
        return "0%"
    if not a:
        return "from 0"
    return f"{b / a:,.1f}x" if b / a >= _FAR else _signed(100 * (b / a - 1), "%")


def _signed(value: float, symbol: str) -> str:
    sign = "+" if value > 0 else "-"
    return f"{sign}<0.1{symbol}" if abs(value) < 0.05 else f"{value:+,.1f}{symbol}"


def signed_duration(ns: int) -> str:
    """A change of time with its sign: +1.50 ms."""
    return f"{'+' if ns > 0 else ''}{duration(ns)}"


def ratio_text(ratio: float | None) -> str | None:
    """A ratio with three significant digits: 0.70x."""
    if ratio is None:
        return None
    return "<0.01x" if 0 < ratio < 0.005 else f"{number(ratio, decimals_for(ratio))}x"
