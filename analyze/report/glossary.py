"""What the words of a report mean: the terms of docs/definitions.md, by any form in which a report prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from msgspec import Struct

from analyze.kernels.categories import LABELS
from analyze.report.headline_metrics import METRICS

_HEADING = re.compile(r"^(#{2,3}) +(.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_TERM = "###"
# A report prints a term with these around it: "Idle: sync", "of window", "idle_sync_share", "launch_latency_p50".
_AROUND = re.compile(
    r"^(?:idle: |idle (?=.* )|of (?:the |its )?|device, |host, |device )|(?:,.*| share| time| p50| bound| \d+| \(.*\))$"
)
_ALIKE = {
    "allocations": "allocated",
    "better": "step spread",
    "blocked": "blocking call",
    "busbw": "bus bandwidth",
    "busbw p50": "bus bandwidth",
    "by kernel": "category",
    "by replay": "saving",
    "capture": "graph capture",
    "category by op": "by op",
    "churn": "allocated",
    "communication": "exposed communication",
    "compute": "computation",
    "computing": "computation",
    "copy": "exposed copies",
    "cost": "finding",
    "ended by": "gap",
    "exposed": "exposed sync",
    "exp. wait": "exposed wait",
    "exposed copy": "exposed copies",
    "freed": "allocated",
    "gb/s": "achieved rate",
    "gpu idle after": "exposed sync",
    "group": "category",
    "host": "host pause",
    "host meanwhile": "gap",
    "input": "input wait",
    "inside ops": "span",
    "lead": "host lead",
    "limited by": "achieved rate",
    "longest, in window at": "window",
    "in window at": "window",
    "memory bound": "memory-bound kernel",
    "memory peak": "peak",
    "mixed": "verdict",
    "no gpu activity": "verdict",
    "not judged": "incomplete records",
    "no straggler": "straggler",
    "op and input shapes": "achieved rate",
    "own": "own lateness",
    "own lead": "own lateness",
    "other idle": "idle",
    "pace": "host's pace",
    "pause": "host pause",
    "peak bandwidth": "achieved rate",
    "peak flop/s": "achieved rate",
    "peak tflop/s": "achieved rate",
    "queued": "queued, not started",
    "queueing": "queue time",
    "ran in": "precision",
    "self cpu": "self",
    "shows without": "hidden cost",
    "straggler own": "own lateness",
    "tflop/s": "achieved rate",
    "then saves": "hidden cost",
    "traffic": "chain",
    "transfer": "exposed transfer",
    "unlinked": "launch unknown",
    "within step spread": "step spread",
    "worse": "step spread",
    "without an op": "by op",
    "where the window goes": "ledger",
    "above median": "uneven",
    "busbw at least": "bus bandwidth",
    "clock": "clock offset",
    "clock ahead": "clock offset",
    "data": "data time",
    "dimension": "parallel dimension",
    "exposed wait or transfer": "wait or transfer",
    "ideal bubble": "bubble",
    "kind of work": "category",
    "last": "arrives last",
    "late rank": "straggler",
    "missing": "missing ranks",
    "most": "uneven",
    "stage": "pipeline stage",
    "wait for neighbour": "bubble",
    "waits most for": "waits for",
}


class Term(Struct, frozen=True):
    """One term.

    Attributes:
        name: as the definitions have it.
        text: its paragraphs, each on one line, without markup that only a browser shows.
    """

    name: str
    text: tuple[str, ...]


@cache
def terms() -> dict[str, Term]:
    """Every term by its plain form, in the order of the definitions."""
    page = (files("analyze") / "docs" / "definitions.md").read_text(encoding="utf-8")
    parts = _HEADING.split(page)[1:]
    found = (
        Term(name, tuple(_LINK.sub(r"\1", " ".join(one.split())) for one in body.strip().split("\n\n")))
        for level, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        if level == _TERM
    )
    return {_plain(term.name): term for term in found}


def find_term(word: str) -> Term | None:
    """The term that a word of a report means, None where there is none.

    Args:
        word: a term, a label, a column, a category, a metric or a verdict, in any case, with blanks, `-` or `_`.
    """
    known, plain = terms(), _plain(word)
    if plain.replace(" ", "_") in LABELS and plain not in known:
        return known["category"]
    for form in (form for layer in (plain, *_stripped(plain)) for form in _singular(layer)):
        if form in known:
            return known[form]
        if form in _ALIKE:
            return known[_plain(_ALIKE[form])]
    return None


def words() -> tuple[str, ...]:
    """What can be asked for by its own name."""
    return (*(term.name for term in terms().values()), *METRICS)


def _plain(word: str) -> str:
    return re.sub(r"[\s_-]+", " ", word.strip().lower())


def _stripped(plain: str) -> Iterator[str]:
    """The word without what a report puts around it, one layer after the other."""
    while (inner := _AROUND.sub("", plain, count=1)) != plain:
        yield inner
        plain = inner


def _singular(plain: str) -> tuple[str, ...]:
    return plain, plain.removesuffix("s"), plain.removesuffix("es"), re.sub("ies$", "y", plain)
