"""Decimal microseconds become integer nanoseconds, exactly, rounded half to even.

What is beyond the ranges below is no time. Sums cannot wrap: two starts differ by less than 2^63, and `limits` bounds
the sum of the durations.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np

from analyze.arrays import Bool, Float64, Int64

NULL = -(2**63)
FLOAT_LIMIT_US = float(2**43)  # above it one float64 step is over 1 ns, so the text is needed
EARLIEST_NS, LATEST_NS = -(2**61), 2**62  # 73 years before the file's zero (often 1970) to 146 years behind it
_EXACT_LIMIT_US = 2**61 / 1000  # whole numbers below it are exact in float64, and in range on both sides
LONGEST_NS = 2**51  # 26 days: no row of a recording lasts longer
_DIGITS = 400  # a text or number that is longer is no time
_TOP_EXPONENT = 20


class NeedsTextError(Exception):
    """The values are fractions too large for float64: decode the times as text."""


def to_ns(values: Sequence[Any]) -> Int64:
    """Nanoseconds of decimal microseconds as decoded from JSON.

    Args:
        values: numbers, texts, or None for an absent value.

    Returns:
        int64 nanoseconds, `NULL` where there is no readable time from `EARLIEST_NS` to `LATEST_NS`.

    Raises:
        NeedsTextError: float64 has lost digits of some value.
    """
    us = _as_floats(values)
    if us is None:
        return np.array([one_to_ns(value) for value in values], dtype=np.int64)
    return _rounded(us, ~np.isfinite(us), values)


def durations_ns(values: Sequence[Any]) -> Int64:
    """The same for lengths of time: `NULL` above `LONGEST_NS`."""
    us = _as_floats(values)
    if us is not None:
        return _rounded(us, ~(np.abs(us) <= LONGEST_NS / 1000), values)  # not (NaN <= x)
    ns = np.array([one_to_ns(value) for value in values], dtype=np.int64)
    ns[ns > LONGEST_NS] = NULL
    return ns


def _rounded(us: Float64, missing: Bool, values: Sequence[Any]) -> Int64:
    """Nanoseconds of float64 microseconds, `NULL` where they are missing; `values` are the same as decoded.

    Raises:
        NeedsTextError: float64 has lost digits of some value.
    """
    if missing.any():
        us = np.where(missing, 0.0, us)
    whole = np.floor(us)
    fraction = us - whole
    largest = float(np.abs(us).max()) if us.size else 0.0
    if largest >= FLOAT_LIMIT_US:
        if fraction.any():
            raise NeedsTextError
        if largest >= _EXACT_LIMIT_US:
            return np.array([one_to_ns(value) for value in values], dtype=np.int64)
    thousandths = fraction * 1000.0
    rounded = np.rint(thousandths)
    ns = whole.astype(np.int64) * 1000 + rounded.astype(np.int64)
    # More than three decimals show as a remainder beyond what float64 itself leaves; those take the exact way.
    beyond = np.abs(thousandths - rounded) > np.spacing(np.abs(us)) * 500.0 + 1e-6
    for i in np.flatnonzero(beyond).tolist():
        ns[i] = one_to_ns(values[i])
    ns[missing] = NULL
    return ns


def _as_floats(values: Sequence[Any]) -> Float64 | None:
    """The values as float64 with NaN for absent ones; None when some of them are texts."""
    try:
        return np.frombuffer(array("d", values), dtype=np.float64)
    except (TypeError, OverflowError):
        pass
    if any(value is not None and not isinstance(value, int | float | Decimal) for value in values):
        return None
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    except OverflowError:
        return None


def one_to_ns(value: object) -> int:
    """Nanoseconds of one value: int, float, text (of a number, quoted or not) or bytes; `NULL` if unreadable."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and value.bit_length() > _DIGITS):
        return NULL
    text = bytes(value).decode("ascii", "replace") if isinstance(value, bytes | msgspec.Raw) else str(value)
    text = text.strip().strip('"')
    if len(text) > _DIGITS:
        return NULL
    try:
        us = Decimal(text)
    except InvalidOperation:
        return NULL
    if not us.is_finite() or us.adjusted() > _TOP_EXPONENT:
        return NULL
    ns = int((us * 1000).to_integral_value(rounding=ROUND_HALF_EVEN))
    return ns if EARLIEST_NS <= ns <= LATEST_NS else NULL
