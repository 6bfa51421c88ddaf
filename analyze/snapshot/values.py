"""Values of a snapshot, each looked at before it is believed: numbers of 64 bits, short texts, lists without tricks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from analyze.errors import SnapshotError
from analyze.snapshot.stacks import cleaned

MOST_BYTES = 1 << 62  # what all sizes of one device may add up to
INT = range(-(1 << 63), 1 << 64)
_MOST_TIME_US = 1 << 62
Pool = tuple[int, int]


def column(rows: Sequence[dict[str, Any]], key: str, default: Any) -> list[Any]:
    """The values of one key; None counts as missing."""
    try:
        return [row[key] for row in rows]
    except KeyError:
        return [default if value is None else value for value in [row.get(key) for row in rows]]


def check_numbers(values: Sequence[Any], key: str, *, missing: bool = False) -> None:
    """Refuse a column of anything but whole numbers of at most 64 bits.

    Raises:
        SnapshotError: names the key.
    """
    if set(map(type, values)) - ({int, type(None)} if missing else {int}):
        raise SnapshotError(f"The snapshot has an event whose {key} is no whole number.")
    there = [value for value in values if value is not None] if missing and None in values else values
    if there and (min(there) < INT.start or max(there) >= INT.stop):
        raise SnapshotError(f"The snapshot has an event whose {key} needs more than 64 bits.")


def _each(values: list[Any], make: Callable[[Any], Any]) -> list[Any]:
    """A column with each distinct value made once."""
    try:
        made = {value: make(value) for value in set(values)}
    except TypeError as error:  # unhashable: a list where a name belongs
        raise SnapshotError("The snapshot has an event with a list where a name or a number belongs.") from error
    return [made[value] for value in values]


def texts(values: list[Any]) -> list[str]:
    """A column of texts, each cleaned.

    Raises:
        SnapshotError: something else is among them.
    """
    return _each(values, cleaned)


def pools(values: list[Any]) -> list[Pool | None]:
    """A column of pool ids.

    Raises:
        SnapshotError: something else is among them.
    """
    if not any(isinstance(value, list) for value in values):
        return _each(values, pool)
    return [pool(value) for value in values]  # JSON has no tuples


def pool(value: Any) -> Pool | None:
    """One pool id, None where not recorded.

    Raises:
        SnapshotError: it is no pair of numbers.
    """
    if value is None:
        return None
    if isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return (number(value[0], "pool id") or 0, number(value[1], "pool id") or 0)
    raise SnapshotError("The snapshot has a pool id that is no pair of numbers.")


def number(value: Any, key: str) -> int | None:
    """One whole number of at most 64 bits, None where there is none.

    Raises:
        SnapshotError: it is something else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value not in INT:
        raise SnapshotError(f"The snapshot has a {key} that is no whole number of 64 bits.")
    return value


def size_of(row: dict[str, Any], key: str, default: int = 0) -> int:
    """One size in bytes.

    Raises:
        SnapshotError: it is no size that a machine can have.
    """
    size = number(row.get(key), key)
    if size is None:
        return default
    if not 0 <= size <= MOST_BYTES:
        raise SnapshotError(f"The snapshot has a {key} beyond any machine's memory.")
    return size


def listed(row: dict[str, Any], key: str) -> Sequence[Any]:
    """A list under a key, empty where there is none.

    Raises:
        SnapshotError: it is something else.
    """
    value = row.get(key)
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise SnapshotError(f"The snapshot has {key} that are no list.")
    return value


def check_distinct(rows: Sequence[Any], key: str) -> None:
    """Refuse a list that holds the same object twice: real snapshots never do, and small bombs are made so.

    Raises:
        SnapshotError: names the key.
    """
    if len(set(map(id, rows))) != len(rows):
        raise SnapshotError(f"The snapshot has the same object twice in its {key}, as no memory snapshot does.")


def check_times(values: Sequence[int | None]) -> None:
    """Refuse instants that no clock shows.

    Raises:
        SnapshotError: one is further than a hundred thousand years away.
    """
    there = [value for value in values if value is not None] if None in values else values
    if there and (min(there) < -_MOST_TIME_US or max(there) > _MOST_TIME_US):  # type: ignore[type-var, operator]
        raise SnapshotError("The snapshot has a time_us that no clock shows.")
