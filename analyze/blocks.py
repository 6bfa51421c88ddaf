"""The closed set of blocks that every report is made of. Renderers draw blocks and know no metric."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from analyze.notices import Notice, NotMeasured

Cell = str | int | float | None


class Kind(Enum):
    """What the cells of a column are, and so how they print."""

    TEXT = "text"
    CODE = "code"  # a name from the trace: shortened in the middle, escaped, never wrapped
    TIME = "time_ns"
    COUNT = "count"
    SHARE = "share"  # 0..1
    BAR = "bar"  # 0..1, drawn
    MEMORY = "memory_bytes"
    FIGURE = "figure"  # a number with its own unit, as text: for rows of one unit each


class Column(Struct, frozen=True):
    """One column of a table.

    Attributes:
        head: caption; for shares it says of what.
        kind: what the cells are.
    """

    head: str
    kind: Kind


class Stat(Struct, frozen=True):
    """One line: a label and a sentence of figures.

    Attributes:
        label: one word.
        text: the figures.
        brief: belongs on a one-screen report.
    """

    label: str
    text: str
    brief: bool = True


class Part(Struct, frozen=True):
    """One part of a whole.

    Attributes:
        label: what it is.
        ns: how much of the whole.
        idle: the device idles in it.
    """

    label: str
    ns: int
    idle: bool


class Breakdown(Struct, frozen=True):
    """A whole and parts that sum to it exactly.

    Attributes:
        title: what is broken down.
        of: the whole, as percents name it: "of window".
        parts: in printing order; zero parts are kept here and left out in text.
    """

    title: str
    of: str
    parts: tuple[Part, ...]

    @property
    def total_ns(self) -> int:
        """The whole."""
        return sum(part.ns for part in self.parts)


class Table(Struct, frozen=True):
    """Rows under captions.

    Attributes:
        title: what the rows are.
        columns: captions and kinds.
        rows: cells in column order.
        brief: rows that a one-screen report shows.
        note: how to read it, one sentence, or empty.
        total: how many rows there are in truth, where only the first ones were kept; 0 where all were.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    brief: int = 0
    note: str = ""
    total: int = 0

    def heading(self, shown: int) -> str:
        """The title, with how many of how many rows are shown where some are not."""
        there = max(self.total, len(self.rows))
        return self.title if shown == there else f"{self.title} ({shown:,} of {there:,})"


class Series(Struct, frozen=True):
    """One amount over the recording.

    Attributes:
        name: what it is, one word.
        kind: what the points are: MEMORY, TIME or COUNT.
        points: from start to end; between them the largest value of each of many equal parts.
        top: what the full height stands for; the same for series that are read together.
        brief: belongs on a one-screen report.
    """

    name: str
    kind: Kind
    points: tuple[int, ...]
    top: int
    brief: bool = True


class Suggestion(Struct, frozen=True):
    """One thing to do, with what it would save.

    Attributes:
        id: stable name, also its anchor.
        title: the problem with its culprit, in at most eight words.
        severity: high, medium or low.
        saved_ns: what it would save, None where that is not known.
        saved_share: share of the whole, 0..1.
        bound: the saving is an upper bound.
        change: the exact change.
        paragraphs: heading and text of what is to be known about it.
        evidence: where the cost arises.
        link: documentation of the change; the one link that a report has, and never from a file.
        shared: which earlier suggestion claims most of the same time, a phrase; empty without one.
    """

    id: str
    title: str
    severity: str
    saved_ns: int | None
    saved_share: float | None
    bound: bool
    change: str
    paragraphs: tuple[tuple[str, str], ...]
    evidence: tuple[Table, ...]
    link: str
    shared: str = ""


class Advice(Struct, frozen=True):
    """What to do, most saving first, and which questions brought nothing.

    Attributes:
        title: what the list is.
        of: the whole that shares are of: "of window".
        suggestions: most saving first.
        note: how to read the savings, one sentence, or empty.
        passed: names and reasons of rules that found nothing.
        unmeasured: names and reasons of rules that could not be asked.
    """

    title: str
    of: str
    suggestions: tuple[Suggestion, ...]
    note: str
    passed: tuple[tuple[str, str], ...]
    unmeasured: tuple[tuple[str, str], ...]


Block = Stat | Breakdown | Table | Series | Advice


class Section(Struct, frozen=True):
    """One question and the blocks that answer it.

    Attributes:
        id: stable anchor.
        title: the question's subject.
        blocks: the answer.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]


class Page(Struct, frozen=True):
    """Everything that a text format draws, in order. What it is about makes no difference to a renderer.

    Attributes:
        subject: what was analysed: "Trace", "Memory snapshot".
        name: file name.
        about: what was measured, in one line.
        verdict: id of the verdict, for its colour.
        headline: the verdict in a word or two.
        sentences: the verdict in sentences.
        whole: the breakdown that comes first, None where there is none.
        sections: the evidence, by question.
        notices: what was odd.
        not_measured: what the file cannot answer.
        next_steps: commands that go on from here.
        footer: versions, definitions and the file's hash, in one line.
        gates: one line per gate with its mark; they come last, and nothing is left out of them.
        full: a terminal shows all of it rather than one screen.
        findings: ids of the findings, None where none are looked for: snapshots and comparisons.
    """

    subject: str
    name: str
    about: str
    verdict: str
    headline: str
    sentences: tuple[str, ...]
    whole: Breakdown | None
    sections: tuple[Section, ...]
    notices: tuple[Notice, ...]
    not_measured: tuple[NotMeasured, ...]
    next_steps: tuple[str, ...]
    footer: str
    gates: tuple[str, ...] = ()
    findings: tuple[str, ...] | None = None
    full: bool = False
