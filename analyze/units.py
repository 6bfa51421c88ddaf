"""Numbers as text: three significant digits, one unit per column, percents that add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from msgspec import Struct


class Unit(Struct, frozen=True):
    """A unit as printed and how many base units it holds."""

    symbol: str
    size: int


TIME_UNITS = (Unit("ns", 1), Unit("µs", 10**3), Unit("ms", 10**6), Unit("s", 10**9))
MEMORY_UNITS = (Unit("B", 1), Unit("KiB", 2**10), Unit("MiB", 2**20), Unit("GiB", 2**30), Unit("TiB", 2**40))
TRANSFER_UNITS = (Unit("B", 1), Unit("kB", 10**3), Unit("MB", 10**6), Unit("GB", 10**9), Unit("TB", 10**12))
_SIGNIFICANT = 3


def unit_for(values: Iterable[int], units: Sequence[Unit]) -> Unit:
    """The unit for a column: the largest that the largest value fills."""
    largest = max((abs(value) for value in values), default=0)
    return max((unit for unit in units if unit.size <= largest), key=lambda unit: unit.size, default=units[0])


def decimals_for(largest: float) -> int:
    """Decimals that show a column's largest value with three significant digits."""
    whole = len(str(int(abs(largest))))
    return max(_SIGNIFICANT - whole, 0)


def number(value: float, decimals: int) -> str:
    """A number with so many decimals and comma-grouped thousands."""
    return f"{value:,.{decimals}f}"


def scaled(value: int, units: Sequence[Unit]) -> str:
    """One value alone: three significant digits and its own unit; 0 is exactly none."""
    unit = unit_for([value], units)
    amount = value / unit.size
    text = number(amount, 0 if unit.size == 1 else decimals_for(amount))
    digits = text.replace(",", "").replace(".", "").lstrip("-")
    if len(digits) > _SIGNIFICANT and "." in text:  # 9.999 rounds to 10.00: one decimal fewer
        text = number(amount, decimals_for(round(amount)))
    return f"{text} {unit.symbol}"


def duration(ns: int) -> str:
    """A time with its own unit: 1.23 ms."""
    return scaled(ns, TIME_UNITS)


def memory(size_bytes: int) -> str:
    """A size in memory: 4.21 GiB."""
    return scaled(size_bytes, MEMORY_UNITS)


def transfer(size_bytes: int) -> str:
    """A size on a bus: 38.5 MB."""
    return scaled(size_bytes, TRANSFER_UNITS)


def percent(share: float) -> str:
    """A share as text: 87.7%, <0.1% for less than that, 0% only for exactly none."""
    if share == 0:
        return "0%"
    return "<0.1%" if 0 < share < 0.0005 else f"{100 * share:.1f}%"


def tenths(parts: Sequence[int], whole: int, total_tenths: int = 1000) -> list[int]:
    """Tenths of a percent per part, rounded by largest remainder so that they sum to the total.

    Args:
        parts: non-negative amounts that sum to `whole`.
        whole: what the percents are of.
        total_tenths: what the result sums to: 1000 for a whole, less for the parts within one of its parts.
    """
    if whole == 0:
        return [0] * len(parts)
    floors = [part * total_tenths // whole for part in parts]
    order = sorted(range(len(parts)), key=lambda i: (-(parts[i] * total_tenths % whole), i))
    for i in order[: total_tenths - sum(floors)]:
        floors[i] += 1
    return floors


def nested_tenths(groups: Sequence[Sequence[int]], total_tenths: int = 1000) -> list[list[int]]:
    """Tenths per part of each group: the groups' sums are rounded first, then the parts within each group."""
    sums = [sum(group) for group in groups]
    shares = tenths(sums, sum(sums), total_tenths)
    return [tenths(group, whole, share) for group, whole, share in zip(groups, sums, shares, strict=True)]


def column_scale(values: Iterable[int], units: Sequence[Unit]) -> tuple[Unit, int]:
    """Unit and decimals for a whole column: the unit of its largest value, three decimals for a single digit.

    Seconds begin at 10: below, the smaller rows of a column would have too few digits.
    """
    largest = max((abs(value) for value in values), default=0)
    unit = unit_for([largest], units)
    if unit.symbol == "s" and largest < 10 * unit.size:
        unit = unit_for([largest // 10], units)
    return unit, 0 if unit.size == 1 else 3 if largest < 10 * unit.size else 1


def tenths_text(value_tenths: int, part: int) -> str:
    """Tenths of a percent as text; a part that is there and rounds to nothing prints as <0.1%."""
    if value_tenths == 0:
        return "<0.1%" if part else "0%"
    return f"{Decimal(value_tenths) / 10:.1f}%"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun: 1 call, 2,731 calls."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
