"""Mutations of a document's tree: types, ranges, repeats, deletions, swapped ids, lists that are there twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.fuzz.document import Document, Raw, Row

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 0.5, -0.0, -7.25, 7, 10**6, 2**31, 2**43, 2.0**43 + 0.5, 2**52, 2**53 + 1, 2**61, 2**62,
    2**63 - 1, 2**63, 2**64 - 1, 2**64,
    2**100, -(2**63), -(2**64), 10**300, 9e12 + 0.5, 4.4e15, -4.4e15, 1e18, 1e300, Raw("1e400"),
    Raw("1e99999999999999999999"),
    Raw("-1e-99999999999"), Raw("9" * 5000), Raw("NaN"), Raw("-Infinity"), Raw("nan"), Raw("0x7f3a"),
    Raw("1712195495406752.123"), True, False, None,
)  # fmt: skip
TEXTS: tuple[Any, ...] = (
    "", " ", "7", "stream 7", "N/A", "inf", "nan", "1e999999", "9" * 600, "0x10", "x" * 70_000, "\x00",
    "\n", "\x1b[31mred\x1b[0m",
    "\u202ertl", "\ud83d\ude00", Raw('"\\ud800"'), Raw('"a\\ud800\\u0041"'), Raw('"\\c"'), Raw('"a"b"'), "`; touch X;`",
    "[memory]", "}, {", "],", '"traceEvents": [', "aten::mm", "ProfilerStep#2", "[TP0] 7",
    "CPU functions", "DataLoader", "nccl", "é",
)  # fmt: skip
SHAPES: tuple[Any, ...] = (
    [], {}, [1], {"a": 1}, [[]], [[1, 2], [3]], [None], [2**70], [-1, 0], [2**40, 2**40], ["x"], [[[[[[[[1]]]]]]]],
    Raw("[" * 900 + "]" * 900), Raw("[" * 2000 + "]" * 2000), Raw('{"a":' * 1500 + "1" + "}" * 1500),
    Raw("[" * 5000), Raw("tru"),
)  # fmt: skip
CATEGORIES = (
    "kernel", "Kernel", "cpu_op", "cuda_runtime", "gpu_memcpy", "gpu_memset", "user_annotation",
    "python_function", "overhead", "Trace",
    "ac2g", "gpu_user_annotation", "cuda_sync", "cuda_profiler_range", "cpu_instant_event", "invented",
    "kernel ", "", None, 5, ["kernel"],
)  # fmt: skip
PHASES = ("X", "x", "i", "I", "B", "E", "b", "s", "f", "M", "C", "", "XX", None, 5, [], "N")
KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")

Mutation = Callable[[Document, random.Random], None]


def hostile(r: random.Random) -> Any:
    """A value that nobody waits for."""
    return r.choice(r.choice((NUMBERS, TEXTS, SHAPES)))


def _row(document: Document, r: random.Random) -> Row:
    rows = [row for row in document.rows if isinstance(row, dict)]
    return r.choice(rows) if rows else {}


def _field(row: Row, r: random.Random) -> tuple[Row, str]:
    """A field of a row, or of its args."""
    args = row.get("args")
    if isinstance(args, dict) and args and r.random() < 0.5:
        return args, r.choice(list(args))
    return row, r.choice(list(row) or ["name"])


def set_value(document: Document, r: random.Random) -> None:
    place, key = _field(_row(document, r), r)
    place[key] = hostile(r)


def set_column(document: Document, r: random.Random) -> None:
    """One field of all rows of a kind."""
    row = _row(document, r)
    cat, (place, key) = row.get("cat"), _field(row, r)
    in_args, value = place is not row, hostile(r)
    for other in document.rows:
        if isinstance(other, dict) and other.get("cat") == cat:
            target = other.get("args") if in_args else other
            if isinstance(target, dict):
                target[key] = value


def delete_value(document: Document, r: random.Random) -> None:
    place, key = _field(_row(document, r), r)
    place.pop(key, None)


def rename_key(document: Document, r: random.Random) -> None:
    place, key = _field(_row(document, r), r)
    if key in place:
        place[r.choice((key.upper(), key + " ", "\ud800", *KEYS))] = place.pop(key)


def repeat_key(document: Document, r: random.Random) -> None:
    """A key that is there twice: the second one is written into the text of its neighbour's value."""
    row = _row(document, r)
    if "name" in row:
        key = r.choice(KEYS)
        row["name"] = Raw(f'"first", "{key}": {r.choice(("1", "null", "[]", chr(34) * 2))}')


def set_category(document: Document, r: random.Random) -> None:
    _row(document, r)["cat"] = r.choice(CATEGORIES)


def set_phase(document: Document, r: random.Random) -> None:
    _row(document, r)["ph"] = r.choice(PHASES)


def set_time(document: Document, r: random.Random) -> None:
    _row(document, r)[r.choice(("ts", "dur"))] = r.choice(NUMBERS)


def shift_times(document: Document, r: random.Random) -> None:
    """All times of the file, or of one category."""
    by, cat = r.choice((-(10**12), -1, 0.5, 10**6, 10**12, 10**15, 1.7e15)), _row(document, r).get("cat")
    whole = r.random() < 0.5
    for row in document.rows:
        if isinstance(row, dict) and isinstance(row.get("ts"), int | float) and (whole or row.get("cat") == cat):
            row["ts"] += by


def delete_rows(document: Document, r: random.Random) -> None:
    kept = r.random()
    document.rows[:] = [row for row in document.rows if r.random() < kept]


def delete_kind(document: Document, r: random.Random) -> None:
    cat = _row(document, r).get("cat")
    document.rows[:] = [row for row in document.rows if not (isinstance(row, dict) and row.get("cat") == cat)]


def repeat_rows(document: Document, r: random.Random) -> None:
    for _ in range(r.choice((1, 3, 40))):
        if document.rows:
            document.rows.insert(r.randrange(len(document.rows) + 1), deepcopy(r.choice(document.rows)))


def shuffle_rows(document: Document, r: random.Random) -> None:
    r.shuffle(document.rows)


def swap_values(document: Document, r: random.Random) -> None:
    """Two rows exchange a field: ids, threads, times, args."""
    one, other = _row(document, r), _row(document, r)
    place, key = _field(one, r)
    target = other if place is one else other.get("args")
    if isinstance(target, dict) and key in place and key in target:
        place[key], target[key] = deepcopy(target[key]), deepcopy(place[key])


def no_row(document: Document, r: random.Random) -> None:
    """Something else stands where a row should."""
    document.rows.insert(r.randrange(len(document.rows) + 1), hostile(r))


def further_list(document: Document, r: random.Random) -> None:
    rows = deepcopy(document.rows[: r.choice((0, 1, 5, len(document.rows)))])
    document.further.append((r.choice(("before", "after", "nested", "behind")), rows))


def set_metadata(document: Document, r: random.Random) -> None:
    place: Any = document.metadata
    while r.random() < 0.7:
        inner = [v for v in (place.values() if isinstance(place, dict) else place) if isinstance(v, dict | list) and v]
        if not inner:
            break
        place = r.choice(inner)
    key = r.choice(list(place)) if isinstance(place, dict) else r.randrange(len(place))
    place[key] = hostile(r)


def no_rows(document: Document, r: random.Random) -> None:
    document.rows[:] = r.choice(([], [{}], [{}] * 20, [None], [[]]))


MUTATIONS: tuple[tuple[Mutation, int], ...] = (
    (set_value, 12), (set_column, 6), (delete_value, 5), (rename_key, 2), (repeat_key, 2),
    (set_category, 4), (set_phase, 4), (set_time, 6),
    (shift_times, 2), (delete_rows, 2), (delete_kind, 2), (repeat_rows, 2), (shuffle_rows, 2),
    (swap_values, 6), (no_row, 2), (further_list, 3),
    (set_metadata, 6), (no_rows, 1),
)  # fmt: skip


def mutate(document: Document, r: random.Random) -> str:
    """Change a document in place; what was done."""
    mutations, weights = zip(*MUTATIONS, strict=True)
    chosen = r.choices(mutations, weights=weights, k=r.choice((1, 1, 1, 2, 3, 6)))
    for mutation in chosen:
        mutation(document, r)
    return " + ".join(mutation.__name__ for mutation in chosen)
