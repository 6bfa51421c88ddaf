"""What a recording found, as text: a summary of one, a table over precisions, a table over batch sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from capture.judge import differ
from capture.latency import WINDOW_ITERATIONS, Latency, Warmup
from capture.metadata import Block
from capture.stability import Stability, judge_stability

if TYPE_CHECKING:  # they load timm, which a recorded loop may do without
    from capture.loop_block import LoopBlock
    from capture.run import Recording
    from capture.sweep import Sweep

_NS_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_MIB = 1 << 20
_LABEL_WIDTH = 12
_CURVE_ENDS = 4
"""Windows of the warm-up that are shown at its beginning and at its end."""


def format_time(time_ns: float) -> str:
    """A time in the unit that fits it, with three significant digits."""
    divisor, unit = _fitting_unit(time_ns)
    return f"{time_ns:.0f} ns" if unit == "ns" else f"{format_number(time_ns / divisor)} {unit}"


def format_number(value: float) -> str:
    """Three significant digits, thousands in groups, never in powers of ten."""
    for limit, digits in ((1, 3), (10, 2), (100, 1)):
        if abs(value) < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def describe(recording: Recording) -> str:
    """The summary of one recording, a line per question, ending with the next command."""
    block = recording.block
    lines = [_headline(block)]
    lines += row("Latency", describe_latency(block.latency))
    lines += row("Stability", judge_stability(block.latency.samples_ns).words)
    if block.repeat_p50_spread is not None:
        lines += row("Repeats", f"{len(block.repeats)} whole runs, medians {_percent(block.repeat_p50_spread)} apart")
    lines += row("Throughput", f"{format_number(block.latency.throughput_samples_per_s or 0)} samples/s")
    if block.latency.peak_allocated_bytes is not None:
        lines += row("Peak memory", f"{format_number(block.latency.peak_allocated_bytes / _MIB)} MiB allocated")
    lines += row("Warm-up", *describe_warmup(block.warmup, "iterations"))
    lines += row("First call", describe_first(block.warmup, block.latency.p50_ns))
    lines += row("Trace", _trace_text(block))
    lines += row("Missing", *[f"{name}: {reason}" for name, reason in block.missing.items()])
    lines += row("Warnings", *list_warnings(block))
    lines += row("Files", *[file_text(recording.folder / name) for name in recording.files])
    lines += row("Next", f"analyze {recording.folder / recording.files[0]}")
    return "\n".join(lines)


def list_warnings(block: Block) -> list[str]:
    """What a reader must know before trusting the numbers."""
    warnings = []
    if not block.warmup.steady:
        words = "steadiness unknown" if block.warmup.steady is None else "not steady"
        warnings.append(f"{words}: {block.warmup.reason}")
    if block.output_finite is False:
        warnings.append("the output holds inf or nan")
    return warnings + list_conditions(block)


def list_conditions(block: Block | LoopBlock) -> list[str]:
    """What was wrong with the machine while it was measured."""
    warnings = []
    if block.load.busy:
        averages = f"load {block.load.average_1m} before, {block.load.average_1m_after} after"
        warnings.append(f"the machine was busy: {averages}, on {block.threads.usable_cores} cores")
    warnings += [f"clocks: {reason}" for reason in block.gpu_state.unstable]
    if block.device.type == "cuda" and not block.gpu_state.recorded:
        warnings.append(f"clocks not recorded: {block.gpu_state.reason}")
    if block.gpu_state.other_processes:
        warnings.append(f"{block.gpu_state.other_processes} other processes computed on this GPU")
    if block.snapshot is not None and block.snapshot.overflowed:
        warnings.append(f"the memory snapshot kept only its last {block.snapshot.max_entries:,} events")
    return warnings


def compare(recordings: Sequence[Recording]) -> Table:
    """One row per recording, each set against the first."""
    blocks = [recording.block for recording in recordings]
    divisor, unit = _fitting_unit(max(block.latency.max_ns for block in blocks))
    first = blocks[0]
    columns = [
        "\nprecision",
        f"p50\n{unit}",
        f"p90\n{unit}",
        f"min to max\n{unit}",
        "throughput\nsamples/s",
        f"against\n{first.precision}",
        "peak\nMiB",
        "\nsteady",
    ]
    table = _table(columns)
    for block in blocks:
        table.add_row(
            block.precision + (" amp" if block.amp else ""),
            *_spread_cells(block.latency, divisor),
            _ratio_text(first.latency, block.latency),
            _peak_text(block.latency),
            _steady_text(block.warmup.steady),
        )
    return table


def draw_sweep(sweep: Sweep) -> tuple[Table, str]:
    """One row per batch size, and where throughput stops growing."""
    slowest = max((row.latency.max_ns for row in sweep.rows if row.latency), default=1)
    divisor, unit = _fitting_unit(slowest)
    columns = [
        "\nbatch",
        f"p50\n{unit}",
        f"p90\n{unit}",
        f"min to max\n{unit}",
        "throughput\nsamples/s",
        "peak\nMiB",
        "\nstable",
    ]
    table = _table(columns)
    for row in sweep.rows:
        if row.latency is None:
            table.add_row(str(row.batch_size), "out of memory")
        else:
            cells = _spread_cells(row.latency, divisor)
            stable = judge_stability(row.latency.samples_ns).stable
            table.add_row(str(row.batch_size), *cells, _peak_text(row.latency), _steady_text(stable))
    return table, _saturation_text(sweep)


def _ratio_text(first: Latency, other: Latency) -> str:
    if other is first:
        return "-"
    if not differ(first.samples_ns, other.samples_ns):
        return "within\nspread"
    return f"{first.p50_ns / other.p50_ns:.2f}x"


def _saturation_text(sweep: Sweep) -> str:
    unsteady = [line.batch_size for line in sweep.rows if line.steady is False]
    text = f"{_growth_text(sweep)} {_stability_text(sweep)}"
    if unsteady:
        text += f" The warm-up of {_batches(unsteady)} did not become steady: their figures may differ run to run."
    if sweep.ended_by is not None:
        text += f" The sweep ended early: {sweep.ended_by}"
    return text


def _stability_text(sweep: Sweep) -> str:
    """The verdict over all batches: whether their times held still while they were measured."""
    verdicts = {line.batch_size: judge_stability(line.latency.samples_ns) for line in sweep.rows if line.latency}
    unjudged = [batch for batch, found in verdicts.items() if found.stable is None]
    moved = {batch: found for batch, found in verdicts.items() if found.stable is False}
    if moved:
        worst = max(moved, key=lambda batch: _unrest(moved[batch]))
        return f"Not stable at {_batches(list(moved))}; most at batch {worst}: {moved[worst].words.partition(': ')[2]}."
    if unjudged:
        return f"Too few samples to judge stability at {_batches(unjudged)}."
    return "Stable at every batch."


def _unrest(found: Stability) -> float:
    return max(found.spread, abs(found.drift or 0.0))


def _batches(sizes: Sequence[int]) -> str:
    return f"batch {sizes[0]}" if len(sizes) == 1 else f"batches {', '.join(map(str, sizes))}"


def _growth_text(sweep: Sweep) -> str:
    tied = _tied(sweep)
    if tied:
        return (
            f"Throughput at {_batches(tied)} is within spread of that at batch {sweep.fastest_batch_size}, the highest."
        )
    if sweep.still_growing:
        return f"Throughput still grows at batch {sweep.saturated_batch_size}, the largest that was tried."
    return (
        f"Throughput stops growing at batch {sweep.saturated_batch_size}: "
        "the smallest with at least 95% of the highest."
    )


def _tied(sweep: Sweep) -> list[int]:
    """Batches below the one where growth stops whose time per sample does not differ from that of the fastest."""
    fastest = next((line for line in sweep.rows if line.batch_size == sweep.fastest_batch_size), None)
    if fastest is None or fastest.latency is None:
        return []
    best = _per_sample(fastest.latency, fastest.batch_size)
    return [
        line.batch_size
        for line in sweep.rows
        if line.latency is not None
        and line.batch_size < (sweep.saturated_batch_size or 0)
        and not differ(_per_sample(line.latency, line.batch_size), best)
    ]


def _per_sample(latency: Latency, batch_size: int) -> list[int]:
    return [round(sample / batch_size) for sample in latency.samples_ns]


def _headline(block: Block) -> str:
    mode = f" {block.compile_mode}" if block.compile_mode else ""
    options = [
        name
        for name, used in (
            ("autocast", block.amp),
            (f"compile{mode}", block.compile),
            ("CUDA graph", block.cuda_graph),
            ("channels last", block.channels_last),
        )
        if used
    ]
    parts = [block.model, block.precision, f"batch {block.batch_size}", *options]
    where = f"{block.device.name} ({block.device.type})"
    return f"{', '.join(parts)} on {where}, torch {block.versions.torch}"


def describe_first(warmup: Warmup, warm_ns: int) -> str:
    """The cold first call set against a warm one."""
    return f"{format_time(warmup.first_call_ns)}, {format_number(warmup.first_call_ns / warm_ns)} times a warm one"


def describe_latency(latency: Latency) -> str:
    """Median, percentiles and range, with the number of samples."""
    spread = f"{format_time(latency.min_ns)} to {format_time(latency.max_ns)}, n {latency.n}"
    text = f"{format_time(latency.p50_ns)} median, p90 {format_time(latency.p90_ns)}"
    if latency.p99_ns is not None:
        text += f", p99 {format_time(latency.p99_ns)}"
    text += f" ({spread})"
    if latency.host_bound and latency.enqueue_p50_ns is not None:
        text += f"; host-bound: launching takes {format_time(latency.enqueue_p50_ns)}"
    return text


def describe_warmup(warmup: Warmup, unit: str) -> list[str]:
    """The verdict on the warm-up and how long it took; the medians of its windows, where there are several."""
    verdict = {True: "steady", False: "not steady", None: "not judged"}[warmup.steady]
    lines = [f"{verdict} after {warmup.iterations} {unit}, {format_time(warmup.duration_ns)}"]
    if len(warmup.medians_ns) > 1:
        divisor, symbol = _fitting_unit(max(warmup.medians_ns))
        shown = [format_number(median / divisor) for median in warmup.medians_ns]
        if len(shown) > _CURVE_ENDS * 2:
            shown = [*shown[:_CURVE_ENDS], "...", *shown[-_CURVE_ENDS:]]
        lines.append(f"medians of each {WINDOW_ITERATIONS} {unit}: {', '.join(shown)} {symbol}")
    return lines


def _trace_text(block: Block) -> str:
    profile = block.profile
    counted = f"{profile.kernel_count:,} kernels" if block.device.type == "cuda" else "no kernels (CPU)"
    stretch = profile.profiled_wall_ns / profile.steps / block.latency.request_p50_ns
    forwards = "1 forward" if profile.steps == 1 else f"{profile.steps} forwards"
    ops = f"{profile.activities.get('cpu_op', 0):,} ops"
    return f"{forwards}, {ops}, {counted}; {stretch:.2f}x as long when profiled"


def file_text(path: Path) -> str:
    """A file and its size."""
    return f"{path} ({path.stat().st_size / 1000:,.0f} kB)"


def row(label: str, *values: str) -> list[str]:
    """Lines of one question, its label in front of the first; nothing where there is no value."""
    labels = [label, *[""] * (len(values) - 1)]
    return [f"  {name:<{_LABEL_WIDTH}} {value}" for name, value in zip(labels, values, strict=True)] if values else []


def _spread_cells(latency: Latency, divisor: int) -> list[str]:
    def shown(time_ns: int) -> str:
        return format_number(time_ns / divisor)

    return [
        shown(latency.p50_ns),
        shown(latency.p90_ns),
        f"{shown(latency.min_ns)} to {shown(latency.max_ns)}",
        format_number(latency.throughput_samples_per_s or 0),
    ]


def _peak_text(latency: Latency) -> str:
    peak = latency.peak_allocated_bytes
    return "-" if peak is None else format_number(peak / _MIB)


def _steady_text(warmup_steady: object) -> str:
    return "-" if warmup_steady is None else "yes" if warmup_steady else "no"


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%"


def _fitting_unit(time_ns: float) -> tuple[int, str]:
    return next(((divisor, unit) for divisor, unit in _NS_UNITS if time_ns >= divisor), _NS_UNITS[-1])


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if index else "left", no_wrap=True)
    return table
