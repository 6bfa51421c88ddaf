from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from capture import sweep
from capture.device import CpuDevice
from capture.errors import OutOfMemoryError
from capture.latency import Isolated, Measurement, Warmup, Window, summarize
from capture.run import Tell
from capture.settings import Settings
from capture.summary import draw_sweep
from capture.sweep import Sweep, SweepRow, find_saturation, run_sweep

US = 1000


def _row(batch_size: int, duration_ns: int | None) -> SweepRow:
    latency = None
    if duration_ns is not None:
        latency = summarize(Window((duration_ns,), duration_ns), Isolated((1,), (1,)), batch_size, CpuDevice())
    return SweepRow(batch_size, latency, None, (), None)


def test_throughput_stops_growing_at_95_percent_of_the_highest() -> None:
    # samples per ms: 1, 1.9, 3.8, 4.0, 3.9
    rows = [_row(1, 1000 * US), _row(2, 1053 * US), _row(4, 1052 * US), _row(8, 2000 * US), _row(16, 4103 * US)]
    assert find_saturation(rows) == (4, False)


def test_throughput_may_still_grow_at_the_largest_batch() -> None:
    assert find_saturation([_row(1, 1000 * US), _row(2, 1000 * US)]) == (2, True)


def test_a_batch_that_did_not_fit_ends_the_growth() -> None:
    assert find_saturation([_row(1, 1000 * US), _row(2, 1000 * US), _row(4, None)]) == (2, False)


def test_nothing_measured() -> None:
    assert find_saturation([_row(1, None)]) == (None, False)


def test_a_sweep_on_the_cpu(quick: Settings, tmp_path: Path) -> None:
    stages: list[str] = []
    result = run_sweep(replace(quick, batch_size=None), (4, 1, 2, 2), tmp_path / "fp32", tell=stages.append)
    assert [row.batch_size for row in result.rows] == [1, 2, 4]
    assert stages[0] == "batch 1: building the model"
    stored = json.loads((tmp_path / "fp32" / "sweep.json").read_text())
    assert [row["batch_size"] for row in stored["rows"]] == [1, 2, 4]
    assert stored["rows"][0]["latency"]["n"] == 4
    assert stored["settings"]["precision"] == "fp32"
    assert [path.name for path in (tmp_path / "fp32").iterdir()] == ["sweep.json"]


def _fits_up_to(largest: int) -> object:
    def measure(settings: Settings, tell: Tell) -> Measurement:
        assert settings.batch_size is not None
        if settings.batch_size > largest:
            raise OutOfMemoryError("Out of memory")
        latency = summarize(Window((1000,), 1000), Isolated((1,), (1,)), settings.batch_size, CpuDevice())
        return Measurement(Warmup(0, 0, 0, None, "", None, None), latency, settings.batch_size)

    return measure


def test_a_batch_that_does_not_fit_ends_the_sweep_with_a_row(
    quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "measure_latency", _fits_up_to(2))
    result = run_sweep(quick, (1, 2, 4, 8), tmp_path / "fp32")
    assert [(row.batch_size, row.latency is not None) for row in result.rows] == [(1, True), (2, True), (4, False)]
    assert (result.saturated_batch_size, result.still_growing) == (2, False)


def test_a_first_batch_that_does_not_fit_is_an_error(
    quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "measure_latency", _fits_up_to(0))
    with pytest.raises(OutOfMemoryError):
        run_sweep(quick, (1, 2), tmp_path / "fp32")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [RuntimeError("CUDA error: unspecified launch failure\nsecond"), ValueError("odd")])
def test_a_failure_keeps_the_rows_before_it(
    quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    measure = sweep.measure_latency

    def fail_at_two(settings: Settings, tell: Tell) -> Measurement:
        if settings.batch_size == 2:
            raise error
        return measure(settings, tell)

    monkeypatch.setattr(sweep, "measure_latency", fail_at_two)
    result = run_sweep(replace(quick, batch_size=None), (1, 2, 4), tmp_path / "fp32")
    assert [row.batch_size for row in result.rows] == [1]
    first_line = str(error).partition("\n")[0]
    assert result.ended_by == f"batch 2: {first_line}"
    assert json.loads((tmp_path / "fp32" / "sweep.json").read_text())["ended_by"] == result.ended_by
    assert "The sweep ended early: batch 2" in draw_sweep(result)[1]


def test_a_failure_of_the_first_batch_is_the_error(
    quick: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(sweep, "measure_latency", fail)
    with pytest.raises(ValueError, match="odd"):
        run_sweep(replace(quick, batch_size=None), (1, 2), tmp_path / "fp32")
    assert not list(tmp_path.iterdir())


def _measured(batch_size: int, samples: list[int]) -> SweepRow:
    window = Window(tuple(samples), sum(samples))
    latency = summarize(window, Isolated((1,), (1,)), batch_size, CpuDevice())
    return SweepRow(batch_size, latency, True, (), None)


def _sweep(*rows: SweepRow) -> Sweep:
    return Sweep(Path("runs"), "fp32", rows, *find_saturation(rows))


STEADY = [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]


def test_stability_has_a_verdict_over_all_batches() -> None:
    table, sentence = draw_sweep(_sweep(_measured(1, STEADY), _measured(2, STEADY)))
    assert "Stable at every batch." in sentence
    assert list(table.columns[-1].cells) == ["yes", "yes"]
    drifting = [1000] * 4 + [1100] * 4
    table, sentence = draw_sweep(_sweep(_measured(1, STEADY), _measured(2, drifting), _measured(4, drifting[::-1])))
    assert "Not stable at batches 2, 4; most at batch 2: quartiles 9.5% of the median apart" in sentence
    assert list(table.columns[-1].cells) == ["yes", "no", "no"]
    few = _sweep(_measured(1, STEADY), _measured(2, STEADY[:4]))
    assert "Too few samples to judge stability at batch 2." in draw_sweep(few)[1]


def test_a_smaller_batch_within_spread_of_the_highest_throughput_is_named() -> None:
    """Per sample 900 to 1300 ns at batch 1 and 800 to 1150 at batch 2: neither ranges nor ranks hold them apart."""
    wide = [900, 1300, 1000, 1200, 1100, 950, 1250, 1150]
    double = [1600, 2300, 2200, 2100, 2000, 1900, 2250, 1700]
    assert (
        "Throughput at batch 1 is within spread of that at batch 2"
        in draw_sweep(_sweep(_measured(1, wide), _measured(2, double)))[1]
    )
    assert "within spread" not in draw_sweep(_sweep(_measured(1, wide), _measured(2, STEADY)))[1]
