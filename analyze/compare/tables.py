"""The sections of a comparison: ledger, shares, work, precision, launches, kernels and ops that changed most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from analyze.blocks import Block, Column, Kind, Section, Stat, Table
from analyze.compare.changes import Changes, FigureChange
from analyze.compare.content_changes import FindingChanges, PrecisionChange, Structure, TimeChange
from analyze.compare.judge import RANGE_STEPS, VERDICTS
from analyze.compare.latency import latency_blocks
from analyze.compare.wording import change_text, side_by_side, signed_duration
from analyze.units import duration, plural

_SMALL = 0.0005  # of the window on both sides: rows below it stay in JSON
_CATEGORIES_BRIEF, _NAMES_BRIEF, _LISTED = 5, 5, 20
_NOTE = (
    f"No spread: fewer than {RANGE_STEPS} steps on a side. Idle time has one step less than the rest: the gap before "
    "the first step's work lies outside the window."
)
_PAIR = ("baseline", "this")


def sections(changes: Changes, top: int) -> tuple[Section, ...]:
    """All sections that have something to say, in order."""
    found = (
        Section("compare-latency", "Latency", tuple(latency_blocks(changes))),
        Section("compare-time", "Time", tuple(_time(changes))),
        Section("compare-shares", "Shares of the window", tuple(_shares(changes))),
        Section("compare-work", "Work by category", tuple(_work(changes))),
        Section("compare-precision", "Precision", tuple(_precision(changes))),
        Section("compare-launches", "Launches, waits, memory", tuple(_launches(changes))),
        Section("compare-kernels", "Kernels and ops that changed most", tuple(_names(changes, top))),
        Section("compare-findings", "Findings", tuple(_findings(changes.structure.findings))),
    )
    return tuple(section for section in found if section.blocks)


def basis(changes: Changes) -> str:
    """What amounts are of: a step, or the window."""
    return "per step" if changes.per_step else "per window"


def _time(changes: Changes) -> Iterator[Block]:
    large = {row.id.removesuffix("_time") for row in _large_states(changes)}
    rows = [row for row in changes.group("headline").rows if row.verdict != "not-comparable"]
    rows += [row for row in changes.group("states").rows if row.id.removesuffix("_time") in large]
    if rows:
        yield replace(_rows(f"Time {basis(changes)}", rows, len(rows)), note=_NOTE)


def _large_states(changes: Changes) -> list[FigureChange]:
    """The states that have some part of the window on either side."""
    shares = changes.group("state-shares").rows
    states = changes.group("states").rows
    return [
        state
        for state, share in zip(states, shares, strict=False)
        if max(share.a or 0, share.b or 0) >= _SMALL and (state.a or state.b)
    ]


def _shares(changes: Changes) -> Iterator[Block]:
    rows = [row for row in changes.group("state-shares").rows if max(row.a or 0, row.b or 0) >= _SMALL]
    if rows:
        yield _rows("Share of the window", rows, len(rows))


def _work(changes: Changes) -> Iterator[Block]:
    rows = _by_change(changes.group("categories").rows)
    if rows:
        yield _rows(f"Work by category {basis(changes)}", rows, _CATEGORIES_BRIEF)
        yield _rows("Work by category, share of activity time", _by_change(changes.group("category-shares").rows), 0)


def _by_change(rows: Sequence[FigureChange]) -> list[FigureChange]:
    return sorted(rows, key=lambda row: -abs(row.change or 0))


def _precision(changes: Changes) -> Iterator[Block]:
    found = changes.structure
    rows = changes.group("precision").rows
    named = [_precision_line(found)] if found.precision_matched else []
    named += _share_lines([row for row in rows if row.change])
    if named:
        yield Stat("Math", "; ".join(named))
    if rows:
        yield _rows("Precision, share of the category's time", rows, 0)
    if found.precision:
        yield Table(
            title="Products in another precision",
            columns=(
                Column("op and input shapes", Kind.CODE),
                Column("precision", Kind.TEXT),
                *(Column(head, Kind.TIME) for head in _PAIR),
                Column("change", Kind.FIGURE),
            ),
            rows=tuple(
                (f"{p.op} {p.input_dims}", f"{p.a_precision} → {p.b_precision}", p.a_ns, p.b_ns,
                 change_text("ns", p.a_ns, p.b_ns))
                for p in found.precision[:_LISTED]
            ),
            total=len(found.precision),
            note="By the precision with most device time. Where input types say fp32, kernels may have run in tf32.",
        )  # fmt: skip


def _share_lines(rows: Sequence[FigureChange]) -> list[str]:
    """Per category, the precisions whose share of its time changed, largest change first."""
    found: dict[str, list[str]] = {}
    for row in _by_change(rows):
        category, _, precision = row.label.partition(" in ")
        a, b = side_by_side("share", (row.a, row.b))
        found.setdefault(category, []).append(f"{precision} {a} → {b}")
    return [f"{category} time: {', '.join(changes)}" for category, changes in found.items()]


def _precision_line(found: Structure) -> str:
    matched = f"of {plural(found.precision_matched, 'product')} of the same op and shapes"
    if not found.precision:
        return f"{matched}, none changed precision"
    kinds: dict[tuple[str, str], list[PrecisionChange]] = {}
    for change in found.precision:
        kinds.setdefault((change.a_precision, change.b_precision), []).append(change)
    named = (
        f"{len(rows):,} went {a} → {b} ({duration(sum(r.a_ns for r in rows))} → {duration(sum(r.b_ns for r in rows))})"
        for (a, b), rows in kinds.items()
    )
    return f"{matched}, {', '.join(named)}"


def _launches(changes: Changes) -> Iterator[Block]:
    groups = (changes.group(name).rows for name in ("launches", "waits", "memory"))
    rows = [row for group in groups for row in group if not (row.a is None and row.b is None)]
    if any(row.a or row.b for row in rows):
        yield _rows(f"Launches, waits {basis(changes)}", rows, len(rows))


def _names(changes: Changes, top: int) -> Iterator[Block]:
    """Kernels, and ops by their own time: on the device, and on the host beside it, which may be what changed."""
    found = changes.structure
    if found.appeared or found.vanished:
        yield Stat("Kernels", _structural_line(found, basis(changes)))
    both = sorted((*found.kernels, *found.appeared, *found.vanished), key=lambda row: (-abs(row.change_ns), row.name))
    brief = min(_NAMES_BRIEF, top)
    if both:
        yield _time_table(f"Kernels by change {basis(changes)}", both, top, brief)
    if found.ops:
        by = f"{found.ops_by} self time {basis(changes)}"
        yield _time_table(f"Ops by change of {by}", found.ops, top, brief if not both else 0)
    if found.host_ops:
        yield _time_table(f"Ops by change of host self time {basis(changes)}", found.host_ops, top, 0)
    if found.appeared:
        yield _time_table("Kernels only in this run", found.appeared, top, 0)
    if found.vanished:
        yield _time_table("Kernels only in the baseline", found.vanished, top, 0)


def _structural_line(found: Structure, of: str) -> str:
    named = [
        f"{len(rows):,} {word} ({duration(abs(sum(row.change_ns for row in rows)))} {of})"
        for rows, word in ((found.appeared, "appeared"), (found.vanished, "vanished"))
        if rows
    ]
    return f"by name, {' and '.join(named)}"


def _time_table(title: str, rows: Sequence[TimeChange], top: int, brief: int) -> Table:
    return Table(
        title=title,
        columns=(
            Column("name", Kind.CODE),
            *(Column(head, Kind.TIME) for head in _PAIR),
            Column("change", Kind.FIGURE),
            Column("count", Kind.FIGURE),
        ),
        rows=tuple((row.name, row.a_ns, row.b_ns, signed_duration(row.change_ns), _counts(row)) for row in rows[:top]),
        brief=brief,
        total=len(rows),
    )


def _counts(row: TimeChange) -> str:
    a, b = side_by_side("count", (row.a_count, row.b_count))
    return str(a) if a == b else f"{a} → {b}"


def _findings(found: FindingChanges) -> Iterator[Block]:
    parts = (
        ("fixed", found.fixed),
        ("new", found.new),
        ("left", found.left),
        ("judged on one side only", found.untold),
    )
    if any(ids for _, ids in parts):
        named = (f"{word}: {', '.join(ids) or 'none'}" for word, ids in parts if ids or word in ("fixed", "new"))
        yield Stat("Findings", "; ".join(named))


def _rows(title: str, rows: Iterable[FigureChange], brief: int) -> Table:
    return Table(
        title=title,
        columns=(
            Column("figure", Kind.TEXT),
            *(Column(head, Kind.FIGURE) for head in _PAIR),
            Column("change", Kind.FIGURE),
            Column("verdict", Kind.TEXT),
        ),
        rows=tuple(
            (row.label, *side_by_side(row.unit, (row.a, row.b)), change_text(row.unit, row.a, row.b),
             VERDICTS[row.verdict])
            for row in rows
        ),
        brief=brief,
    )  # fmt: skip
