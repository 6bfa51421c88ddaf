"""JSON numbers of any size become Python numbers, and those become the whole numbers that columns hold."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import isfinite

from analyze.trace.clock import NULL

_INT64 = range(-(2**63), 2**63)
_BEYOND = 2**65
LARGEST_BYTES = 2**50  # 1 PiB: nothing that a program holds or moves at once is larger
MOST_DEVICES = 2**10  # of one host
_DIGITS = 40  # a text with more of them is no whole number of 64 bits


def decimal_of(text: str) -> Decimal | float:
    """The number of a JSON text with its digits, infinity or 0 where its exponent is beyond what they can hold."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return float(text)


def integer_of(text: str) -> int | float:
    """The same of a text without point and exponent; of endless digits only their size remains."""
    return int(text) if len(text) <= _DIGITS else float(text)


def whole(value: object) -> int:
    """One whole number of a value of any type, `NULL` where there is none; unsigned 64 bits keep their bits."""
    number = _number(value)
    if number is None:
        return NULL
    if number not in _INT64:
        return number - 2**64 if 2**63 <= number < 2**64 else NULL
    return number


def _number(value: object) -> int | None:
    if isinstance(value, str):
        try:
            return int(value) if len(value) <= _DIGITS else None
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, float | Decimal) and not isfinite(value):
        return None
    if not -_BEYOND < value < _BEYOND or value != int(value):  # int() of 1e999999 never ends
        return None
    return int(value)
