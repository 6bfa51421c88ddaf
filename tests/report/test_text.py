"""Numbers and names as text: parts add up as printed, names stay inert."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze import units
from analyze.blocks import Breakdown, Column, Kind, Part
from analyze.inert import printable
from analyze.report.text import bar, breakdown_rows, cells, shorten, to_ascii


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=8), st.integers(0, 1000))
def test_tenths_sum_to_their_total(parts: list[int], total: int) -> None:
    found = units.tenths(parts, sum(parts), total)
    assert sum(found) == (total if sum(parts) else 0)
    assert all(abs(f - total * p / max(sum(parts), 1)) <= 1 for f, p in zip(found, parts, strict=True))


@given(st.lists(st.integers(0, 10**11), max_size=4), st.lists(st.integers(0, 10**11), max_size=8))
def test_a_printed_breakdown_adds_up_to_the_last_digit(busy: list[int], idle: list[int]) -> None:
    parts = [Part(f"b{i}", ns, idle=False) for i, ns in enumerate(busy)]
    parts += [Part(f"i{i}", ns, idle=True) for i, ns in enumerate(idle)]
    breakdown = Breakdown("whole", "of window", tuple(parts))
    if not breakdown.total_ns:
        return
    *rows, total = breakdown_rows(breakdown)
    percents = [0 if row.percent.startswith("<") else round(float(row.percent.rstrip("%")) * 10) for row in rows]
    assert sum(percents) == 1000
    times = [0.0 if row.time.startswith("<") else float(row.time.split()[0].replace(",", "")) for row in rows]
    assert sum(times) == pytest.approx(float(total.time.split()[0].replace(",", "")), abs=1e-6)
    assert all(row.share > 0 for row in rows), "parts that are not there are left out"


@pytest.mark.parametrize(("ns", "text"), [
    (0, "0 ns"), (7, "7 ns"), (999, "999 ns"), (1_000, "1.00 µs"), (12_340, "12.3 µs"), (999_499, "999 µs"),
    (1_234_567, "1.23 ms"), (9_999_000, "10.0 ms"), (98_600_000, "98.6 ms"), (1_078_288_379, "1.08 s"),
    (12_920_244_000, "12.9 s"), (7_200_000_000_000, "7,200 s"),
])  # fmt: skip
def test_durations_have_three_significant_digits(ns: int, text: str) -> None:
    assert units.duration(ns) == text


@pytest.mark.parametrize(("share", "text"), [(0, "0%"), (1e-6, "<0.1%"), (0.0004, "<0.1%"), (0.0005, "0.1%"),
                                             (0.4744, "47.4%"), (1, "100.0%")])  # fmt: skip
def test_percents(share: float, text: str) -> None:
    assert units.percent(share) == text


def test_memory_is_binary_and_transfers_are_decimal() -> None:
    assert units.memory(24_207_167_496) == "22.5 GiB"
    assert units.transfer(38_535_168) == "38.5 MB"


def test_one_unit_per_column() -> None:
    column = Column("time", Kind.TIME)
    assert cells(column, [1_078_288_379, 2_166_123, 40, 0, None]) == ["1,078.3 ms", "2.2 ms", "<0.1 ms", "0 ms", "–"]
    assert cells(column, [12, 5]) == ["12 ns", "5 ns"]


@given(st.text(max_size=40))
def test_printable_names_move_no_cursor(name: str) -> None:
    shown = printable(name)
    assert len(shown) == len(name)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert "\u202e" not in shown


def test_escape_sequences_and_bidi_overrides_are_disarmed() -> None:
    assert printable("\x1b[31mred\x1b[0m\u202eabc\ud800") == " [31mred [0m�abc�"


@given(st.text(min_size=1, max_size=60), st.integers(2, 30))
def test_shortened_names_keep_both_ends(name: str, width: int) -> None:
    short = shorten(name, width)
    assert len(short) <= max(width, 1)
    if len(name) > width > 3:
        assert short[0] == name[0]
        assert short[-1] == name[-1]
        assert "…" in short


@given(st.floats(0, 1), st.integers(1, 40))
def test_bars_are_never_longer_than_the_whole(share: float, width: int) -> None:
    drawn = bar(share, width)
    assert len(drawn) <= width
    assert bool(drawn) is (share > 0)


def test_ascii_has_only_ascii() -> None:
    assert to_ascii("µ█▏…–ü").isascii()
