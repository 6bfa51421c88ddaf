"""The comparison of two reports as a document, and as an addition to a report on the second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from analyze.blocks import Page, Section, Table
from analyze.compare.changes import Changes, FigureChange, FigureSpread, Side, find_changes
from analyze.compare.comparable import Comparable, comparable_of
from analyze.compare.judge import RANGE_STEPS, RANK_LEVEL, RANK_STEPS, VERDICTS
from analyze.compare.latency import MAIN as LATENCY_MAIN
from analyze.compare.latency import latency_row, latency_sentences
from analyze.compare.tables import basis, sections
from analyze.compare.wording import change_text, side_by_side
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.kernel_names import with_short_names
from analyze.report.notebook import Shown
from analyze.report.plain import frame, plain
from analyze.report.report import Report
from analyze.report.text import shorten
from analyze.units import duration, plural

_HEADLINES = {
    "better": "Faster",
    "worse": "Slower",
    "within-spread": "Within step spread",
    "equal": "Same step time",
}
RULE = (
    f"better or worse: the steps of one side lie beyond those of the other (from {RANGE_STEPS} steps on), or "
    f"Mann-Whitney p < {RANK_LEVEL} (from {RANK_STEPS} on)"
)
_SHOWN = 60  # characters of a name in a line
_BESIDE = ("compare-latency", "compare-time", "compare-shares")
SAME = "No figure differs."


class Comparison(Shown, Struct, frozen=True):
    """Two reports compared, independent of any format.

    Attributes:
        version: version of the program.
        changes: what changed.
        page: what text formats draw.
        sides: both reports, None where one of them is known by its figures only.
    """

    version: str
    changes: Changes
    page: Page
    sides: tuple[Report, Report] | None = None

    def as_json(self) -> dict[str, Any]:
        """The comparison by the keys of its contract, `pair_schema`."""
        page = self.page
        return {
            **frame(self.version, page),
            **plain(self.changes),
            "verdict": {"id": page.verdict, "headline": page.headline, "sentence": page.sentences[0]},
        }


def compare(
    a: Comparable | Report, b: Comparable | Report, *, names: Sequence[str] | None = None, top: int = 10
) -> Comparison:
    """Compare two reports: every change is the second minus the first.

    Args:
        a: the baseline.
        b: this run.
        names: what the title calls them; their files' names where None.
        top: how many kernels one screen lists at most.

    Raises:
        NotComparableError: the figures mean different things, as the definitions differ.
    """
    sides = (a, b) if isinstance(a, Report) and isinstance(b, Report) else None
    a, b = (comparable_of(one) if isinstance(one, Report) else one for one in (a, b))
    changes, program = find_changes(a, b), program_version()
    main = latency_row(changes) or _main(changes)
    page = Page(
        subject="Trace comparison",
        name=" and ".join(names or (a.name, b.name)),
        about=f"{_about(changes.a)}; {_about(changes.b)}",
        verdict=main.verdict if main else "not-judged",
        headline=_headline(changes, main),
        sentences=tuple(sentences(changes)),
        whole=None,
        sections=() if changes.equal else with_short_names(sections(changes, top), _kernels(a, b)),
        notices=changes.notices,
        not_measured=(),
        next_steps=(),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}; {RULE}; "
        f"sha256 {a.trace.sha256[:12]}, {b.trace.sha256[:12]}",
    )
    return Comparison(program, changes, page, sides)


def _kernels(a: Comparable, b: Comparable) -> Iterator[str]:
    """The activities of both sides, most time of the first side first."""
    return (one.name for side in (a, b) for one in side.activity_times)


def with_comparison(page: Page, comparison: Comparison) -> Page:
    """A report's page with the comparison before its evidence."""
    found = comparison.changes
    named = tuple(sentences(found))
    first = f"Against {found.a.name}: {named[0][0].lower()}{named[0][1:]}"
    return replace(
        page,
        sentences=(*page.sentences, first, *named[1:]),
        sections=(*(_shortened(section) for section in comparison.page.sections), *page.sections),
        notices=(*page.notices, *comparison.page.notices),
        footer=f"{page.footer}; {RULE}",
    )


def _shortened(section: Section) -> Section:
    """On one screen a report leaves room for the ledger's changes only; longer formats have all of them."""
    if section.id in _BESIDE:
        return section
    blocks = tuple(replace(block, brief=0) if isinstance(block, Table) else block for block in section.blocks)
    return replace(section, blocks=blocks)


def sentences(changes: Changes) -> Iterator[str]:
    """The comparison in sentences."""
    if changes.same_file:
        yield f"{'Both are the same file' if changes.equal else 'Both are reports on the same file'}. " + (
            SAME if changes.equal else "Figures differ all the same: they were measured by different programs."
        )
        return
    if changes.equal:
        yield SAME
        return
    latency, main = latency_row(changes), _main(changes)
    if latency is not None:
        yield from latency_sentences(latency)
        if main is None:
            return
    if main is None:
        yield "Neither a step nor device time is on both sides: only ops and counts compare."
        return
    a, b = side_by_side(main.unit, (main.a, main.b))
    change = change_text(main.unit, main.a, main.b)
    yield f"{_subject(main, changes)} goes from {a} to {b} ({change}): {_verdict(main)}."
    if main.a_steps and main.b_steps:
        yield f"Baseline: {_spread(main.a_steps)}; this: {_spread(main.b_steps)}."
    states = [row for row in changes.group("states").rows if row.change]
    if states:
        most = max(states, key=lambda row: abs(row.change or 0))
        a, b = side_by_side("ns", (most.a, most.b))
        yield f"Largest change {basis(changes)}: {most.label}, {a} to {b}, {VERDICTS[most.verdict]}."


def _main(changes: Changes) -> FigureChange | None:
    """The row that the headline is about: the step, else the window."""
    rows = (changes.row("step_time"), changes.row("window_time"))
    return next((row for row in rows if row and row.verdict != "not-comparable"), None)


def _headline(changes: Changes, main: FigureChange | None) -> str:
    if changes.equal:
        return "No difference"
    if main is None:
        return "Not judged"
    if main.verdict == "within-spread" and main.id == LATENCY_MAIN:
        return "Within spread"
    return _HEADLINES.get(main.verdict, "Not judged")


def _verdict(main: FigureChange) -> str:
    if main.verdict != "no-spread":
        return VERDICTS[main.verdict]
    counts = [steps.n if steps else 0 for steps in (main.a_steps, main.b_steps)]
    if main.id == "window_time":
        return "no spread, so not judged"
    return f"{plural(min(counts), 'step')}, no spread, so not judged"


def _subject(main: FigureChange, changes: Changes) -> str:
    return "The window" if main.id == "window_time" else "Step time (median)" if changes.a.steps > 1 else "Step time"


def _spread(steps: FigureSpread) -> str:
    if steps.n == 1:
        return f"{duration(int(steps.low))}, 1 step"
    return f"{duration(int(steps.low))} to {duration(int(steps.high))}, {plural(steps.n, 'step')}"


def _about(side: Side) -> str:
    parts = [side.label, *side.device_names, side.runtime, side.selection]
    window = f"{duration(side.window_ns)} window" if side.window_ns else ""
    parts.append(plural(side.steps, "step") if side.steps else window)
    return ", ".join(shorten(part, _SHOWN) for part in parts if part)
