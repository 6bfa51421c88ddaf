"""Decimal microseconds to nanoseconds: exact, half to even."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.trace.clock import FLOAT_LIMIT_US, NULL, NeedsTextError, one_to_ns, to_ns


def exact(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value(rounding=ROUND_HALF_EVEN))


@given(st.integers(0, 2**43 - 1), st.integers(0, 999))
def test_relative_floats_with_three_decimals(us: int, thousandths: int) -> None:
    """The whole range below 2^43 us, where `round(us * 1000)` is wrong for a quarter of the values."""
    value = float(f"{us}.{thousandths:03d}")
    assert to_ns([value]).tolist() == [us * 1000 + thousandths]


@given(st.integers(0, 2**52 - 1))
def test_whole_microseconds(us: int) -> None:
    assert to_ns([us]).tolist() == [us * 1000]


@given(st.integers(10**15, 2 * 10**15), st.integers(0, 999))
def test_absolute_fractions_need_their_text(us: int, thousandths: int) -> None:
    """16 digits before the point do not fit float64: the text is asked for, and read exactly."""
    text = f"{us}.{thousandths:03d}"
    assert to_ns([text]).tolist() == [us * 1000 + thousandths]
    assert to_ns([text.encode()]).tolist() == [us * 1000 + thousandths]
    if float(text) % 1:
        with pytest.raises(NeedsTextError):
            to_ns([float(text)])


@pytest.mark.parametrize(("text", "ns"), [("0.0005", 0), ("0.0015", 2), ("12.3456", 12346), ("12.0005", 12000),
                                          ("-1.5", -1500), ("1e3", 1_000_000)])  # fmt: skip
def test_more_decimals_round_half_to_even(text: str, ns: int) -> None:
    assert one_to_ns(text) == ns == exact(text)
    assert to_ns([float(text)]).tolist() == [ns]


@pytest.mark.parametrize("value", [None, "x", "", "NaN", "inf", "1e400", [], "9" * 40])
def test_what_is_no_time_is_null(value: object) -> None:
    assert to_ns([value, 1]).tolist() == [NULL, 1000]


def test_not_a_number_among_numbers() -> None:
    assert to_ns([float("nan"), None, 2.5, 7]).tolist() == [NULL, NULL, 2500, 7000]
    assert to_ns([]).dtype == np.int64
    assert FLOAT_LIMIT_US == 2**43


def test_numbers_beyond_all_bounds_end_at_once() -> None:
    from analyze.trace.numbers import whole

    assert whole(Decimal("1E+999999999")) == whole(Decimal("NaN")) == whole("9" * 5000) == whole(float("inf")) == NULL
    assert whole(Decimal("7.0")) == 7
