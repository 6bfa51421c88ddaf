"""Two jobs beside each other: medians over ranks, and who is late in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from analyze.blocks import Column, Kind, Page, Section, Table
from analyze.ranks import Job
from analyze.ranks.matching import lower_median
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.plain import frame, plain
from analyze.units import duration, percent

_FIGURES = (
    ("window_ns", "window"),
    ("computation_ns", "computation"),
    ("exposed_wait_ns", "exposed wait"),
    ("exposed_transfer_ns", "exposed transfer"),
    ("exposed_unsplit_ns", "exposed wait or transfer"),
    ("exposed_copy_ns", "exposed copies"),
    ("idle_ns", "idle"),
)
_LATEST = 3


class MedianChange(Struct, frozen=True):
    """One part of the window.

    Attributes:
        name: the part.
        a_ns: lower median over the ranks of the first job.
        b_ns: of the second.
    """

    name: str
    a_ns: int
    b_ns: int


class RanksComparison(Struct, frozen=True):
    """Two jobs, the first one the baseline.

    Attributes:
        version: version of the program.
        names: of both folders.
        changes: medians over ranks.
        stragglers: of both, the latest ranks with their own lateness in ns; empty where ranks are missing.
        page: what text formats draw.
    """

    version: str
    names: tuple[str, str]
    changes: tuple[MedianChange, ...]
    stragglers: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
    page: Page

    def as_json(self) -> dict[str, Any]:
        """The comparison by key."""
        return {
            **frame(self.version, self.page),
            "kind": "ranks-comparison",
            "names": list(self.names),
            "changes": plain(self.changes),
            "stragglers": [[{"rank": rank, "own_ns": own} for rank, own in ranks] for ranks in self.stragglers],
        }


def compare_jobs(a: Job, b: Job) -> RanksComparison:
    """What changed from one job to another; both have a rank at least."""
    changes = tuple(
        MedianChange(label, *(lower_median(job.ranks[name].to_numpy()) for job in (a, b))) for name, label in _FIGURES
    )
    late = tuple(tuple((one.rank, one.own_ns) for one in job.stragglers[:_LATEST]) for job in (a, b))
    program = program_version()
    window = changes[0]
    page = Page(
        subject="Comparison",
        name=f"{a.name} and {b.name}",
        about=f"{a.ranks.height} and {b.ranks.height} ranks; medians over ranks",
        verdict="mixed",
        headline="Compared",
        sentences=tuple(_sentences(window, late)),
        whole=None,
        sections=(Section("changes", "Changes", (_changes(changes), _late(a, b, late))),),
        notices=(),
        not_measured=(),
        next_steps=(),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}",
    )
    return RanksComparison(program, (a.name, b.name), changes, (late[0], late[1]), page)


def _sentences(window: MedianChange, late: tuple[tuple[tuple[int, int], ...], ...]) -> Iterator[str]:
    change = window.b_ns - window.a_ns
    share = f" ({percent(abs(change) / window.a_ns)})" if window.a_ns else ""
    word = "longer" if change > 0 else "shorter"
    said = f"{duration(abs(change))}{share} {word} than" if change else "as long as"
    yield f"The median window of B is {said} that of A: {duration(window.a_ns)} in A, {duration(window.b_ns)} in B."
    for ranks, name in zip(late, ("A", "B"), strict=True):
        if ranks and ranks[0][1]:
            yield f"The latest rank in {name} is rank {ranks[0][0]}, with an own lead of {duration(ranks[0][1])}."


def _changes(changes: tuple[MedianChange, ...]) -> Table:
    return Table(
        title="Medians over ranks",
        columns=(
            Column("part of the window", Kind.TEXT),
            Column("A", Kind.TIME),
            Column("B", Kind.TIME),
            Column("B - A", Kind.TIME),
        ),
        rows=tuple((one.name, one.a_ns, one.b_ns, one.b_ns - one.a_ns) for one in changes),
        brief=len(changes),
        note="Lower medians over the ranks of each job; they need not add up.",
    )


def _late(a: Job, b: Job, late: tuple[tuple[tuple[int, int], ...], ...]) -> Table:
    rows = [
        (name, str(rank), own)
        for name, ranks in zip((f"A {a.name}", f"B {b.name}"), late, strict=True)
        for rank, own in ranks
    ]
    return Table(
        title="Latest ranks",
        columns=(Column("job", Kind.CODE), Column("rank", Kind.TEXT), Column("own lead", Kind.TIME)),
        rows=tuple(rows),
        brief=len(rows),
        note="Of a job with missing ranks, none is listed.",
    )
