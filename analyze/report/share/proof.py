"""Proof that two files have the same figures: every number of the one report is in the other, at the same place."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import Struct

from analyze.errors import OutputError
from analyze.report.build import build_report
from analyze.trace import Trace

# Not figures of the run: texts, the file's own size, and notices, which are about how the file was written.
_NO_FIGURES = frozenset(("sections", "tool", "schema_version", "notices"))
_OF_THE_FILE = frozenset(("size_bytes", "sha256"))


class Numbers(Struct, frozen=True):
    """Every number of a report.

    Attributes:
        places: keys and the number that they lead to, or the numbers of a whole row, with how often each is there.
        count: how many numbers there are.
    """

    places: Counter[tuple[str, str]]
    count: int


def figures_of(path: str | Path, *, trusted: bool = False) -> Numbers:
    """Every number of the JSON report on a trace.

    Rows of a list are compared as wholes and in any order: rows of equal cost stand in order of their names.
    """
    document = build_report(Trace.load(path, trusted=trusted)).as_json()
    found, count = Counter[tuple[str, str]](), 0
    for key, part in document.items():
        if key in _NO_FIGURES:
            continue
        of_run = {name: value for name, value in part.items() if name not in _OF_THE_FILE} if key == "trace" else part
        numbers = _numbers(of_run)
        count += _count(numbers)
        _collect(numbers, key, found)
    return Numbers(found, count)


def prove_equal(before: Numbers, after: Numbers) -> int:
    """How many figures are the same.

    Raises:
        OutputError: at least one is not.
    """
    old, new = before.places, after.places
    if old != new:
        changed = sorted({place for place, _ in (old - new) + (new - old)})
        raise OutputError(
            f"The redacted trace has other figures than the original: {', '.join(changed[:3])}. Nothing was written.",
            "Share a report instead: analyze TRACE --redact -o report.html",
        )
    return before.count


def _numbers(value: Any) -> Any:
    """The value without its texts; lists in an order that does not depend on them."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return sorted((_numbers(item) for item in value), key=_text)
    return None if isinstance(value, str) else value


def _count(value: Any) -> int:
    """Numbers and truth values in a value."""
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else int(value is not None)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _collect(value: Any, place: str, found: Counter[tuple[str, str]]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _collect(item, f"{place}.{key}", found)
    elif isinstance(value, list):
        found[f"{place}.length", str(len(value))] += 1
        for item in value:
            found[place, _text(item)] += 1
    else:
        found[place, _text(value)] += 1
