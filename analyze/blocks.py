"""The closed set of blocks that every report is made of. Renderers draw blocks and know no metric."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        head: caption; for shares it says of what.
        kind: what the cells are.
    """

    head: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Stat:
    """One line: a label and a sentence of figures."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole.

    Attributes:
        label: what it is.
        ns: how much of the whole.
        idle: the device idles in it.
    """

    label: str
    ns: int
    idle: bool


@dataclass(frozen=True, slots=True)
class Breakdown:
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


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under captions.

    Attributes:
        title: what the rows are.
        columns: captions and kinds.
        rows: cells in column order.
        brief: rows that a one-screen report shows.
        note: how to read it, one sentence, or empty.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    brief: int = 0
    note: str = ""


Block = Stat | Breakdown | Table


@dataclass(frozen=True, slots=True)
class Section:
    """One question and the blocks that answer it.

    Attributes:
        id: stable anchor.
        title: the question's subject.
        blocks: the answer.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]
