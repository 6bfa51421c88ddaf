"""What `capture` measured without the profiler, compared before anything else: it is what a recording is made for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyze.blocks import Block, Column, Kind, Stat, Table
from analyze.compare.changes import Changes, FigureChange, FigureSpread
from analyze.compare.figures import LATENCY
from analyze.compare.judge import RANGE_STEPS, VERDICTS, Verdict
from analyze.compare.wording import change_text, ratio_text, side_by_side
from analyze.units import duration, plural

MAIN = "latency_p50"
JUDGED: tuple[Verdict, ...] = ("better", "worse", "equal")
_WORDS: dict[Verdict, str] = {**VERDICTS, "within-spread": "within spread", "no-spread": "no spread, so not judged"}


def latency_row(changes: Changes) -> FigureChange | None:
    """The latencies of both sides, None where one of them has none."""
    row = changes.row(MAIN)
    return row if row is not None and row.verdict != "not-comparable" else None


def latency_sentences(row: FigureChange) -> Iterator[str]:
    """The latencies with their spread; a ratio only where they differ by more than they spread."""
    a, b = _figures(row)
    what = f"Latency without the profiler ({row.label[0].lower()}{row.label[1:].replace(' (median)', ', median')})"
    if row.verdict in JUDGED:
        yield f"{what} goes from {a} to {b} ({change_text('ns', row.a, row.b)}): {_WORDS[row.verdict]}."
    else:
        yield f"{what} is {a} in the baseline and {b} in this run: {_WORDS[row.verdict]}."
    if row.a_steps and row.b_steps:
        yield f"Baseline: {_range(row.a_steps)}; this: {_range(row.b_steps)}."


def _range(spread: FigureSpread) -> str:
    if spread.n == 1:
        return f"{duration(int(spread.low))}, 1 sample"
    return f"{duration(int(spread.low))} to {duration(int(spread.high))}, {plural(spread.n, 'sample')}"


def latency_blocks(changes: Changes) -> Iterator[Block]:
    """The table of latencies; nothing where no side has one."""
    rows = [row for row in changes.group(LATENCY).rows if not (row.a is None and row.b is None)]
    if not rows:
        return
    yield Table(
        title="Latency without the profiler",
        columns=(
            Column("figure", Kind.TEXT),
            Column("baseline", Kind.FIGURE),
            Column("this", Kind.FIGURE),
            Column("change", Kind.FIGURE),
            Column("verdict", Kind.TEXT),
        ),
        rows=tuple((row.label, *_figures(row), _change(row), _WORDS[row.verdict]) for row in rows),
        brief=len(rows),
        note=f"A change is stated only beyond the spread of the samples; with fewer than {RANGE_STEPS} there is none.",
    )
    row = latency_row(changes)
    if row is not None and row.a_steps and row.b_steps:
        yield Stat("Samples", f"baseline {_range(row.a_steps)}; this {_range(row.b_steps)}", brief=False)


def _figures(row: FigureChange) -> list[str | None]:
    """Both sides; times each in their own unit, as one may be a hundred times the other."""
    if row.unit == "ns":
        return [None if value is None else duration(int(value)) for value in (row.a, row.b)]
    return side_by_side(row.unit, (row.a, row.b))


def _change(row: FigureChange) -> str | None:
    return change_text(row.unit, row.a, row.b) if row.verdict in JUDGED else None


def latency_ratio(ratio: float | None, verdict: Verdict) -> str:
    """A ratio where the samples differ by more than they spread, else why there is none."""
    return (ratio_text(ratio) or "–") if verdict in JUDGED else _WORDS[verdict].partition(",")[0]


def fastest(labels: Sequence[str], values: Sequence[float | int | None], verdicts: Sequence[Verdict]) -> str:
    """Which of several is fastest, if it is beyond the spread of the first."""
    best = min(range(len(values)), key=lambda i: values[i] or float("inf"))
    if best and verdicts[best] == "better":
        return f"Fastest without the profiler: {labels[best]}."
    if best:
        return f"{labels[best]} has the lowest median, {_WORDS[verdicts[best]]}."
    return f"None has a lower median than {labels[0]}."
