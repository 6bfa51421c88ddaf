"""How much memory was in use, and by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyze.blocks import Block, Column, Kind, Section, Series, Stat, Table
from analyze.metrics.memory_use import Churn, Made, Memory, MemoryUse, measure_memory
from analyze.metrics.question import Answers, Question
from analyze.units import duration, memory, percent

_LISTED = 30


def section(found: Memory) -> Section:
    """Memory by device: one line on one screen, curves and tables in longer reports."""
    main = max(found.devices, key=lambda use: (use.device >= 0, use.peak_bytes))
    blocks: list[Block] = []
    for use in found.devices:
        blocks.append(Stat("Memory", _line(use), brief=use is main))
        blocks += _blocks(use, "" if len(found.devices) == 1 else f" on {use.label}")
    return Section("memory", "Memory", tuple(blocks))


def _line(use: MemoryUse) -> str:
    where = f" in {use.peak_step}" if use.peak_step else ""
    text = f"{use.label}: peak {memory(use.peak_bytes)} allocated"
    if use.reserved_peak_bytes is not None:
        text += f", {memory(use.reserved_peak_bytes)} reserved"
    text += f"; {duration(use.peak_after_ns)} after the first memory event{where}, {use.peak_op}. "
    if use.level_known:
        text += f"{memory(use.start_bytes)} were there before"
    elif use.device_type == 0:
        text += "Only what was allocated while a profiler recorded counts"
    else:
        text += "The level at the start is unknown; the lowest possible one is shown"
    if use.parameters_bytes is not None and use.activations_bytes is not None:
        text += f"; parameters {memory(use.parameters_bytes)}, taken by the run itself {memory(use.activations_bytes)}"
    return text + "."


def _blocks(use: MemoryUse, where: str) -> Iterator[Block]:
    top = max((*use.allocated_points, *use.reserved_points))
    yield Series("allocated", Kind.MEMORY, use.allocated_points, top, brief=False)
    if use.reserved_points:
        yield Series("reserved", Kind.MEMORY, use.reserved_points, top, brief=False)
    yield _made(f"Alive at the peak, by op{where}", use.alive_at_peak, use)
    yield Table(
        title=f"Largest allocations alive at the peak{where}",
        columns=(
            Column("op", Kind.CODE),
            Column("size", Kind.MEMORY),
            Column("of peak", Kind.SHARE),
            Column("freed", Kind.TEXT),
        ),
        rows=tuple(
            (one.op, one.size_bytes, _share(one.size_bytes, use), "not in the recording" if one.outlives else "later")
            for one in use.largest_at_peak
        ),
    )
    yield Table(
        title=f"Never freed in the recording, by op{where}",
        columns=(Column("op", Kind.CODE), Column("size", Kind.MEMORY), Column("count", Kind.COUNT)),
        rows=tuple((one.op, one.size_bytes, one.count) for one in use.outliving[:_LISTED]),
        note=f"{memory(use.outliving_bytes)} in all.",
        total=len(use.outliving),
    )
    yield _churn(f"Allocated and freed per step{where}", use.churn)


def _made(title: str, rows: Sequence[Made], use: MemoryUse) -> Table:
    listed = [(one.op, one.size_bytes, _share(one.size_bytes, use), one.count) for one in rows[:_LISTED]]
    early = ("no recorded allocation", use.unmade_peak_bytes, _share(use.unmade_peak_bytes, use), None)
    return Table(
        title=title,
        columns=(
            Column("op", Kind.CODE),
            Column("size", Kind.MEMORY),
            Column("of peak", Kind.SHARE),
            Column("count", Kind.COUNT),
        ),
        rows=(*listed, early) if use.unmade_peak_bytes else tuple(listed),
        note=_unmade(use),
        total=len(rows) + bool(use.unmade_peak_bytes),
    )


def _unmade(use: MemoryUse) -> str:
    if not use.unmade_peak_bytes:
        return ""
    share = _share(use.unmade_peak_bytes, use)
    return (
        f"{memory(use.unmade_peak_bytes)}, {percent(share or 0.0)} of the peak, were allocated before the recording "
        "or on threads that were not recorded."
    )


def _share(part: int, use: MemoryUse) -> float | None:
    return part / use.peak_bytes if use.peak_bytes else None


def _churn(title: str, rows: Sequence[Churn]) -> Table:
    return Table(
        title=title,
        columns=(
            Column("step", Kind.CODE),
            Column("allocated", Kind.MEMORY),
            Column("freed", Kind.MEMORY),
            Column("allocations", Kind.COUNT),
        ),
        rows=tuple((one.step, one.allocated_bytes, one.freed_bytes, one.allocations) for one in rows),
        note="Counted by time, so allocations of other threads are included.",
    )


def _section(answers: Answers) -> Section | None:
    found = answers.ask(QUESTION)
    return section(found) if found.devices else None


QUESTION: Question[Memory] = Question(
    "memory",
    lambda a: measure_memory(a.trace, a.selection.host_interval, a.definitions.top),
    answer=Memory,
    section=_section,
    without_device=True,
    notices=lambda a: a.ask(QUESTION).notices(),
    not_measured=lambda a: a.ask(QUESTION).not_measured(),
)
