"""Latency and throughput over batch sizes, and where throughput stops growing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from capture import environment, output
from capture.device import open_device
from capture.errors import OutOfMemoryError, first_line
from capture.latency import Latency
from capture.metadata import SCHEMA_VERSION, Repeat, Tool, write_json
from capture.run import Tell, measure_latency, repeat_spread, say_nothing, shorten
from capture.settings import Settings

SATURATED_SHARE = 0.95
"""Throughput stops growing at the smallest batch that reaches this share of the highest."""


@dataclass(frozen=True)
class SweepRow:
    """One batch size.

    Attributes:
        batch_size: Samples per forward.
        latency: The last whole measurement; None when the batch did not fit.
        steady: Whether its warm-up became steady; None where that was not judged.
        repeats: Every whole measurement in short.
        repeat_p50_spread: (Largest - smallest) / smallest median over the repeats; None for one.
    """

    batch_size: int
    latency: Latency | None
    steady: bool | None
    repeats: tuple[Repeat, ...]
    repeat_p50_spread: float | None


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    Attributes:
        folder: Where its file is.
        precision: What was asked for.
        rows: By batch size, smallest first; ends at the first that did not fit.
        saturated_batch_size: Where throughput stops growing; None when nothing fits.
        still_growing: Whether that is the largest batch tried, so that a larger one may be faster still.
        ended_by: Why larger batches were not tried, other than memory; None where all were.
    """

    folder: Path
    precision: str
    rows: tuple[SweepRow, ...]
    saturated_batch_size: int | None
    still_growing: bool
    ended_by: str | None = None

    @property
    def fastest_batch_size(self) -> int | None:
        """The batch with the highest throughput; None when nothing fits."""
        rates = {row.batch_size: row.latency.throughput_samples_per_s or 0.0 for row in self.rows if row.latency}
        return max(rates, key=lambda batch: rates[batch], default=None)


def run_sweep(
    settings: Settings,
    batch_sizes: Sequence[int],
    folder: Path,
    *,
    force: bool = False,
    tell: Tell = say_nothing,
) -> Sweep:
    """Measure every batch size, smallest first, and write sweep.json; one that does not fit, or fails, ends the sweep.

    Raises:
        CaptureError: As a recording, where the first batch fails; the rows before a later failure are kept.
    """
    output.check_target(folder, force=force)
    with output.staged(folder) as staging:
        rows, ended_by = _measure_rows(settings, sorted(set(batch_sizes)), tell)
        saturated, still_growing = find_saturation(rows)
        sweep = Sweep(folder, settings.precision, tuple(rows), saturated, still_growing, ended_by)
        write_json(_document(settings, sweep), staging / output.SWEEP_NAME)
    return sweep


def find_saturation(rows: Sequence[SweepRow]) -> tuple[int | None, bool]:
    """The smallest batch with 95 % of the highest throughput, and whether no larger one was tried."""
    measured = [(row.batch_size, row.latency.throughput_samples_per_s or 0.0) for row in rows if row.latency]
    if not measured:
        return None, False
    highest = max(throughput for _, throughput in measured)
    smallest = next(batch for batch, throughput in measured if throughput >= SATURATED_SHARE * highest)
    return smallest, smallest == rows[-1].batch_size


def _measure_rows(settings: Settings, batch_sizes: Sequence[int], tell: Tell) -> tuple[list[SweepRow], str | None]:
    rows: list[SweepRow] = []
    try:
        for batch_size in batch_sizes:
            rows.append(_measure_row(settings.at_batch(batch_size), batch_size, tell))  # noqa: PERF401 - kept on failure
    except OutOfMemoryError:
        if not rows:
            raise
        rows.append(SweepRow(batch_sizes[len(rows)], None, None, (), None))
    except Exception as error:
        if not rows:
            raise
        return rows, f"batch {batch_sizes[len(rows)]}: {first_line(error)}"
    return rows, None


def _measure_row(settings: Settings, batch_size: int, tell: Tell) -> SweepRow:
    def tell_batch(stage: str) -> None:
        tell(f"batch {batch_size}: {stage}")

    measurements = [measure_latency(settings, tell_batch) for _ in range(settings.repeat)]
    last = measurements[-1]
    return SweepRow(
        batch_size=last.batch_size,
        latency=last.latency,
        steady=last.warmup.steady,
        repeats=tuple(shorten(measurement) for measurement in measurements),
        repeat_p50_spread=repeat_spread(measurements),
    )


def _document(settings: Settings, sweep: Sweep) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": Tool("gpuledger", environment.tool_version()),
        "settings": settings,
        "device": environment.describe_device(open_device(settings.device, settings.device_index)),
        "environment": environment.read_environment(),
        "rows": list(sweep.rows),
        "saturated_batch_size": sweep.saturated_batch_size,
        "saturated_share": SATURATED_SHARE,
        "still_growing": sweep.still_growing,
        "ended_by": sweep.ended_by,
    }
