"""Two reports in, one comparison out: every change is this run minus the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from analyze.compare.comparability import check_definitions, find_notices
from analyze.compare.comparable import Comparable
from analyze.compare.content_changes import Structure, find_structure
from analyze.compare.figures import Figure, Figures, figures_of
from analyze.compare.judge import Verdict, judge
from analyze.notices import Notice


class FigureSpread(Struct, frozen=True):
    """The steps of one side.

    Attributes:
        n: how many.
        low: smallest value.
        high: largest value.
    """

    n: int
    low: float
    high: float


class FigureChange(Struct, frozen=True):
    """One figure of both sides.

    Attributes:
        id: stable name; metrics keep theirs.
        label: row label.
        unit: ns, share, count or bytes.
        better: "lower", "higher", or empty.
        a: the baseline's figure, None where it was not measured.
        b: this run's.
        change: second minus first, None where one is missing.
        ratio: second through first, None where one is missing or the first is 0.
        verdict: better, worse, changed (neither good nor bad), within-spread, no-spread, equal, not-comparable.
        a_steps: the baseline's values per step, None where it has none.
        b_steps: this run's.
    """

    id: str
    label: str
    unit: str
    better: str
    a: float | int | None
    b: float | int | None
    change: float | int | None
    ratio: float | None
    verdict: Verdict
    a_steps: FigureSpread | None
    b_steps: FigureSpread | None


class FigureGroup(Struct, frozen=True):
    """The changes of one question.

    Attributes:
        id: stable name.
        title: the question's subject.
        rows: the changes in printing order.
    """

    id: str
    title: str
    rows: tuple[FigureChange, ...]


class Side(Struct, frozen=True):
    """One input, as the comparison names it.

    Attributes:
        label: how tables name it.
        name: base name of the trace.
        sha256: hash of the trace's bytes.
        device_names: its GPUs.
        runtime: CUDA or ROCm version, empty where not recorded.
        selection: what was selected of it, empty for everything.
        steps: how many steps.
        window_ns: window of the headline device.
        verdict: id of its verdict.
        schema_version: of the report that it was read from.
    """

    label: str
    name: str
    sha256: str
    device_names: tuple[str, ...]
    runtime: str
    selection: str
    steps: int
    window_ns: int
    verdict: str
    schema_version: str


class Changes(Struct, frozen=True):
    """Two reports compared.

    Attributes:
        a: the baseline.
        b: this run.
        per_step: amounts are medians of steps, those of kernels and ops means; else of the whole windows.
        same_file: both sides are the same part of the same file.
        equal: no figure differs.
        groups: the figures, by question.
        structure: what runs on one side only, or in another precision; findings come and gone.
        notices: what a reader of the figures has to know.
    """

    a: Side
    b: Side
    per_step: bool
    same_file: bool
    equal: bool
    groups: tuple[FigureGroup, ...]
    structure: Structure
    notices: tuple[Notice, ...]

    def group(self, name: str) -> FigureGroup:
        """A group by its id."""
        return next(group for group in self.groups if group.id == name)

    def row(self, name: str) -> FigureChange | None:
        """The change of a figure by its id."""
        return next((row for group in self.groups for row in group.rows if row.id == name), None)


def find_changes(a: Comparable, b: Comparable, labels: Sequence[str] = ("baseline", "this")) -> Changes:
    """What changed from a baseline to this run.

    Args:
        a: the baseline.
        b: this run.
        labels: how tables name the two.

    Raises:
        NotComparableError: the figures mean different things, as the definitions differ.
    """
    check_definitions((a, b), labels)
    per_step = bool(a.step_ledgers and b.step_ledgers)
    both = figures_of(a, per_step=per_step), figures_of(b, per_step=per_step)
    groups = tuple(_group(x, y) for x, y in zip(*both, strict=True))
    structure = find_structure(a, b, per_step=per_step)
    return Changes(
        a=side(a, labels[0]),
        b=side(b, labels[1]),
        per_step=per_step,
        same_file=(a.trace.sha256, a.trace.selection) == (b.trace.sha256, b.trace.selection),
        equal=structure.equal and all(row.a == row.b for group in groups for row in group.rows),
        groups=groups,
        structure=structure,
        notices=find_notices((a, b), labels),
    )


def side(subject: Comparable, label: str) -> Side:
    """How a comparison names an input."""
    trace, ledger = subject.trace, subject.ledger
    return Side(
        label=label,
        name=trace.name,
        sha256=trace.sha256,
        device_names=trace.device_names,
        runtime=trace.runtime,
        selection=trace.selection,
        steps=len(subject.steps),
        window_ns=ledger.window_ns if ledger else 0,
        verdict=subject.verdict.id,
        schema_version=subject.schema_version,
    )


def _group(a: Figures, b: Figures) -> FigureGroup:
    """The changes of two lists of figures: in the order of the first, then what only the second has."""
    left, right = {f.id: f for f in a.rows}, {f.id: f for f in b.rows}
    names = dict.fromkeys((*left, *right))
    nothing = None if not left or not right else 0  # work that a side does not have took no time, if work was recorded
    return FigureGroup(a.id, a.title, tuple(_change(left.get(n), right.get(n), nothing) for n in names))


def _change(a: Figure | None, b: Figure | None, nothing: int | None) -> FigureChange:
    one = a or b
    assert one is not None
    x, y = (figure.value if figure else nothing for figure in (a, b))
    steps = _steps(a, b), _steps(b, a)
    return FigureChange(
        id=one.id,
        label=one.label,
        unit=one.unit,
        better=one.better,
        a=x,
        b=y,
        change=None if x is None or y is None else y - x,
        ratio=None if not x or y is None else y / x,
        verdict=judge(x, y, *steps, one.better),
        a_steps=_spread(steps[0]),
        b_steps=_spread(steps[1]),
    )


def _steps(mine: Figure | None, other: Figure | None) -> tuple[float, ...]:
    return mine.steps if mine else (0,) * len(other.steps if other else ())


def _spread(steps: Sequence[float]) -> FigureSpread | None:
    return FigureSpread(len(steps), min(steps), max(steps)) if steps else None
