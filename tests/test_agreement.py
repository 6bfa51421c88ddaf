"""`capture` and `analyze` know nothing of each other, and speak alike: what both write by hand agrees."""

from __future__ import annotations

import importlib

import pytest

from analyze.errors import GpuledgerError
from analyze.units import duration
from capture.cli import ending
from capture.errors import CaptureError
from capture.summary import format_time


def test_the_same_exit_codes() -> None:
    analyze_main = importlib.import_module("analyze.cli.main")
    assert analyze_main.EXIT_UNUSABLE == ending.EXIT_UNUSABLE == 2
    assert analyze_main.EXIT_INTERRUPTED == ending.EXIT_INTERRUPTED == 130


@pytest.mark.parametrize("base", [GpuledgerError, CaptureError])
def test_an_error_is_a_sentence_and_a_hint(base: type[GpuledgerError] | type[CaptureError]) -> None:
    error = base("It cannot be read.", "Pass another.")
    assert (error.message, error.hint) == ("It cannot be read.", "Pass another.")


@pytest.mark.parametrize("ns", [1, 12, 999, 1_000, 1_234, 56_789, 123_456, 1_234_567, 98_765_432, 1_234_567_890])
def test_times_have_the_same_unit_and_the_same_digits(ns: int) -> None:
    assert format_time(ns) == duration(ns)
