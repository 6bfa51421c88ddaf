"""Values that no figure can use: each is left out where it enters, and counted by its field with an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import msgspec
from msgspec import Struct, field

from analyze.notices import Notice
from analyze.trace.clock import NULL
from analyze.units import plural

_SHOWN = 32
_LISTED = 4
_NO_VALUE = ("", "N/A", "null")  # what writers put where they have none


class Odd(Struct):
    """Values that were left out.

    Attributes:
        counts: how many, by field.
        examples: the first of each field, as it is printed.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, value: object, count: int = 1) -> None:
        """Count values of one field that were left out."""
        if name not in self.examples:
            self.examples[name] = shown(value)
        self.counts[name] += count

    def count(self, name: str, values: Iterable[object]) -> None:
        """Count each of some values of one field."""
        for value in values:
            self.note(name, value)

    def note_unread(self, name: str, given: Iterable[object], read: Iterable[int]) -> None:
        """Count the values of a column that were given and came out as `NULL`."""
        for value, number in zip(given, read, strict=True):
            if number == NULL and not is_absent(value):
                self.note(name, value)

    def __add__(self, later: Odd) -> Odd:
        """The values of two stretches of a document."""
        return Odd(self.counts + later.counts, {**later.examples, **self.examples})

    def notice(self) -> Notice | None:
        """What a reader has to know, None where every value could be used."""
        total = self.counts.total()
        if not total:
            return None
        worst = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        fields = [f"{name} ({count:,}, such as {self.examples[name]})" for name, count in worst[:_LISTED]]
        more = f" and {plural(len(worst) - _LISTED, 'other field')}" if len(worst) > _LISTED else ""
        text = (
            f"{plural(total, 'value is', 'values are')} of the wrong type or beyond what can be true, and left out: "
            f"{', '.join(fields)}{more}. The rest of their rows is used."
        )
        return Notice("odd-values", text, total)


def is_absent(value: object) -> bool:
    """Whether a value is one of the ways to say that there is none."""
    if isinstance(value, msgspec.Raw):
        value = bytes(value).decode("ascii", "replace").strip().strip('"')
    if isinstance(value, str):
        return value in _NO_VALUE
    return value is None or (isinstance(value, int) and value == NULL)


def shown(value: object) -> str:
    """A value in a few plain ASCII characters, whatever it is."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Decimal):
        return f"{value:.6g}"
    text = bytes(value).decode("ascii", "replace") if isinstance(value, msgspec.Raw) else str(value)
    return ascii(text[:_SHOWN])
