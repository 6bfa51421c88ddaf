"""Proof that two files have the same figures: every number of the one report is in the other, at the same place."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from msgspec import Struct

from analyze.errors import OutputError
from analyze.report.build import build_report
from analyze.trace import Trace
from analyze.units import plural

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


def figures_of(trace: Trace) -> Numbers:
    """Every number of the JSON report on a trace.

    Rows of a list are compared as wholes and in any order: rows of equal cost stand in order of their names.
    """
    document = build_report(trace).as_json()
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
        OutputError: at least one is not; the error names the first few places with their numbers, and no text.
    """
    lost, new = before.places - after.places, after.places - before.places
    if lost or new:
        raise OutputError(
            "The redacted trace has other figures than the original, so nothing was written. "
            f"{_differences(lost, new)}",
            "Share a report instead, analyze TRACE --redact -o report.html, and report the lines above: they hold no "
            "text of the trace.",
        )
    return before.count


_LISTED, _COMPARED = 3, 50


def _differences(lost: Counter[tuple[str, str]], new: Counter[tuple[str, str]]) -> str:
    """The first places that differ: what the original has there and what the copy has."""
    places = sorted({place for place, _ in (*lost, *new)})
    shown = [f"{place}: {_difference(lost, new, place)}" for place in places[:_LISTED]]
    more = len(places) - len(shown)
    return "; ".join(shown) + (f"; and {plural(more, 'more place')}" if more > 0 else "")


def _difference(lost: Counter[tuple[str, str]], new: Counter[tuple[str, str]], place: str) -> str:
    """The numbers of a place, and of rows the first two that are most alike, without what they have in common."""
    old, made = ([json.loads(text) for at, text in numbers if at == place][:_COMPARED] for numbers in (lost, new))
    if not old or not made:
        return f"{plural(len(old or made), 'row')} {'lost' if old else 'added'}"
    one, other = min(((a, b) for a in old for b in made), key=lambda pair: len(_unequal(*pair)))
    if not isinstance(one, dict):
        return f"{_text(one)} became {_text(other)}"
    return ", ".join(f"{key} {_text(a)} became {_text(b)}" for key, a, b in _unequal(one, other)[:_LISTED])


def _unequal(one: Any, other: Any) -> list[tuple[str, Any, Any]]:
    """The members of two rows that differ."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return []
    keys = sorted(one.keys() | other.keys())
    return [(key, one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)]


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
