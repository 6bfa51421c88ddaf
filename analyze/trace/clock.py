"""Decimal microseconds become integer nanoseconds, exactly, rounded half to even."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

NULL = -(2**63)
FLOAT_LIMIT_US = float(2**43)  # above it one float64 step is over 1 ns, so the text is needed
_WHOLE_LIMIT_US = float(2**52)  # whole numbers below it are exact in float64, and fit int64 as nanoseconds
_TIME_LIMIT_NS = 2**62  # 146 years: anything beyond is no time, and sums must not overflow

Int64 = npt.NDArray[np.int64]


class NeedsTextError(Exception):
    """The values are fractions too large for float64: decode the times as text."""


def to_ns(values: Sequence[Any]) -> Int64:
    """Nanoseconds of decimal microseconds as decoded from JSON.

    Args:
        values: numbers, texts, or None for an absent value.

    Returns:
        int64 nanoseconds, `NULL` where there is no readable time.

    Raises:
        NeedsTextError: float64 has lost digits of some value.
    """
    us = _as_floats(values)
    if us is None:
        return np.array([one_to_ns(value) for value in values], dtype=np.int64)
    missing = ~np.isfinite(us)
    if missing.any():
        us = np.where(missing, 0.0, us)
    whole = np.floor(us)
    fraction = us - whole
    largest = float(np.abs(us).max()) if us.size else 0.0
    if largest >= FLOAT_LIMIT_US:
        if fraction.any():
            raise NeedsTextError
        if largest >= _WHOLE_LIMIT_US:
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


def _as_floats(values: Sequence[Any]) -> npt.NDArray[np.float64] | None:
    """The values as float64 with NaN for absent ones; None when some of them are texts."""
    try:
        return np.frombuffer(array("d", values), dtype=np.float64)
    except (TypeError, OverflowError):
        pass
    if any(value is not None and not isinstance(value, int | float) for value in values):
        return None
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    except OverflowError:
        return None


def one_to_ns(value: object) -> int:
    """Nanoseconds of one value: int, float, text (of a number, quoted or not) or bytes; `NULL` if unreadable."""
    if value is None or isinstance(value, bool):
        return NULL
    text = bytes(value).decode("ascii", "replace") if isinstance(value, bytes | msgspec.Raw) else str(value)
    try:
        ns = Decimal(text.strip().strip('"')) * 1000
        if not ns.is_finite() or abs(ns) > _TIME_LIMIT_NS:
            return NULL
        return int(ns.to_integral_value(rounding=ROUND_HALF_EVEN))
    except InvalidOperation:
        return NULL
