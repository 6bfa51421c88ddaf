from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from capture.gpu_state import GpuState
from capture.latency import Latency
from capture.run import Recording
from capture.settings import Settings
from capture.summary import compare, describe, draw_sweep, format_number, format_time, list_warnings
from capture.sweep import run_sweep

MS = 1_000_000


def _shown(table: Table) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80, color_system=None, markup=False, legacy_windows=False).print(table)
    return stream.getvalue()


def _latency(latency: Latency, p50_ns: int, low_ns: int, high_ns: int) -> Latency:
    return replace(latency, p50_ns=p50_ns, p90_ns=high_ns, min_ns=low_ns, max_ns=high_ns, n=100, p99_ns=high_ns)


@pytest.fixture
def recording(quick: Settings, record: Callable[[Settings], Recording]) -> Recording:
    made = record(quick)
    latency = _latency(made.block.latency, 2_500_000, 2_400_000, 12_345_678)
    return replace(made, block=replace(made.block, latency=replace(latency, throughput_samples_per_s=25_600.0)))


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (123_456, "123 µs"),
        (1_234_567, "1.23 ms"),
        (98_765_432_100, "98.8 s"),
        (12_345_678_900_000, "12,346 s"),
    ],
)
def test_times_have_three_digits(time_ns: int, text: str) -> None:
    assert format_time(time_ns) == text


def test_small_numbers_keep_their_digits() -> None:
    assert [format_number(value) for value in (0.1234, 1.234, 12.34, 1234.5)] == ["0.123", "1.23", "12.3", "1,234"]


def test_the_summary_answers_what_was_measured_and_what_comes_next(recording: Recording) -> None:
    text = describe(recording)
    first, *rest = text.splitlines()
    assert first.startswith("tests.capture.example_models:tiny, fp32, batch 2 on ")
    assert "(cpu), torch " in first
    rows = {line[:14].strip(): line[15:] for line in rest if line[:14].strip()}
    assert rows["Latency"] == "2.50 ms median, p90 12.3 ms, p99 12.3 ms (2.40 ms to 12.3 ms, n 100)"
    assert rows["Throughput"] == "25,600 samples/s"
    assert rows["Warm-up"].startswith("not judged after 2 iterations, ")
    assert rows["Stability"].startswith("not judged (fewer than 8 samples); quartiles ")
    assert " times a warm one" in rows["First call"]
    assert rows["Trace"].startswith("1 forward, ")
    assert rows["Next"] == f"analyze {recording.folder / 'trace.json.gz'}"
    assert str(recording.folder / "run.json") in text


def test_the_warm_up_is_shown_as_a_curve_of_medians(recording: Recording) -> None:
    warmup = replace(recording.block.warmup, medians_ns=tuple(range(9_000_000, 0, -1_000_000)))
    text = describe(replace(recording, block=replace(recording.block, warmup=warmup)))
    assert "medians of each 10 iterations: 9.00, 8.00, 7.00, 6.00, ..., 4.00, 3.00, 2.00, 1.00 ms" in text


def test_what_makes_numbers_doubtful_is_said(recording: Recording) -> None:
    block = recording.block
    idle = replace(block.load, busy=False)  # the machine that runs this test may be busy
    assert list_warnings(replace(block, warmup=replace(block.warmup, steady=True), load=idle)) == []
    doubtful = replace(
        block,
        warmup=replace(block.warmup, steady=False, reason="they disagreed"),
        output_finite=False,
        load=replace(block.load, busy=True, average_1m=5.0, average_1m_after=6.0),
        gpu_state=GpuState(True, None, other_processes=2, unstable=("throttled: idle",)),
    )
    assert [warning.split(":")[0] for warning in list_warnings(doubtful)] == [
        "not steady",
        "the output holds inf or nan",
        "the machine was busy",
        "clocks",
        "2 other processes computed on this GPU",
    ]


def test_clocks_that_nobody_read_are_a_warning_on_cuda(recording: Recording) -> None:
    block = recording.block
    on_cuda = replace(
        block, device=replace(block.device, type="cuda"), gpu_state=GpuState(False, "nvidia-ml-py is not installed")
    )
    assert "clocks not recorded: nvidia-ml-py is not installed" in list_warnings(on_cuda)


def test_host_bound_is_said_with_its_time(recording: Recording) -> None:
    latency = replace(recording.block.latency, host_bound=True, enqueue_p50_ns=2_450_000)
    bound = replace(recording, block=replace(recording.block, latency=latency))
    assert "host-bound: launching takes 2.45 ms" in describe(bound)


def test_the_comparison_fits_80_columns_and_cuts_nothing(recording: Recording) -> None:
    block = recording.block
    wide = replace(
        block,
        precision="bf16",
        amp=True,
        latency=replace(
            _latency(block.latency, 1_234_500_000, 1_111_000_000, 9_999_000_000),
            throughput_samples_per_s=123_456.0,
            peak_allocated_bytes=12_345 << 20,
        ),
    )
    text = _shown(compare([recording, replace(recording, block=wide)]))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "\u2026" not in text
    assert "bf16 amp" in text
    assert "12,345" in text
    assert "123,456" in text
    assert "1.11 to 10.0" in text  # one unit for the whole column
    assert "against" in text


def test_the_comparison_is_against_the_first(recording: Recording) -> None:
    halved = replace(recording.block, precision="fp16", latency=_times(recording.block.latency, 1.0))
    first = replace(recording, block=replace(recording.block, latency=_times(recording.block.latency, 2.0)))
    assert "2.00x" in _shown(compare([first, replace(recording, block=halved)]))


def _times(latency: Latency, ms: float) -> Latency:
    return replace(latency, p50_ns=round(ms * 1e6), samples_ns=tuple(round(ms * 1e6) + index for index in range(5)))


def test_overlapping_times_give_no_ratio(recording: Recording) -> None:
    """Five samples of a busy machine: 1 to 50 ms against 2 to 60 ms, medians 42 times apart."""
    slow = replace(recording.block.latency, p50_ns=42_000_000, samples_ns=(1, 41, 42, 45, 50))
    fast = replace(recording.block.latency, p50_ns=1_000_000, samples_ns=(2, 1, 1, 43, 60))
    shown = _shown(compare([replace(recording, block=replace(recording.block, latency=part)) for part in (slow, fast)]))
    assert "42.00x" not in shown
    assert "within" in shown


def test_a_sweep_is_drawn_with_a_sentence(quick: Settings, tmp_path: Path) -> None:
    table, sentence = draw_sweep(run_sweep(replace(quick, batch_size=None), (1, 2), tmp_path / "fp32"))
    text = _shown(table)
    assert "samples/s" in text
    assert "\u2026" not in text
    assert sentence.startswith("Throughput st")
