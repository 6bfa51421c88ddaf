"""Values that stay JSON text (shapes, types, grids): checked once per distinct text, then a code."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import orjson

from analyze.trace.codes import NO_TEXT, Texts

_DEEPEST = 6  # a list of tensors has three levels
_MOST_ELEMENTS = 2**50
_LARGEST_GRID = 2**31
_MOST_BLOCKS = 2**62


Check = Callable[[Any], bool]


class RawCodes(dict[bytes, int]):
    """Raw JSON -> code of its compact text, `NO_TEXT` for what is refused.

    Attributes:
        refused: texts that are not what they should be.
    """

    def __init__(self, texts: Texts, check: Check) -> None:
        super().__init__({b"": NO_TEXT})
        self.texts = texts
        self.check = check
        self.refused: set[bytes] = set()

    def __missing__(self, raw: bytes) -> int:
        """The code of a text that was not seen in this layout."""
        code = self[raw] = self._read(raw)
        return code

    def _read(self, raw: bytes) -> int:
        try:
            value = orjson.loads(raw)
            if value is None or value == "":
                return NO_TEXT
            if self.check(value):
                return self.texts[orjson.dumps(value).decode()]
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            pass
        self.refused.add(raw)
        return NO_TEXT


def are_sizes(value: Any, level: int = 0) -> bool:
    """Whether a value is a list of shapes that some memory could hold, with whatever else between them."""
    if not isinstance(value, list) or level > _DEEPEST:
        return False
    elements = 1
    for inner in value:
        if isinstance(inner, list):
            if not are_sizes(inner, level + 1):
                return False
        elif isinstance(inner, int) and inner:
            elements *= abs(inner)
            if elements > _MOST_ELEMENTS:
                return False
    return True


def are_words(value: Any, level: int = 0) -> bool:
    """Whether a value is a list of texts or numbers, or of such lists."""
    if not isinstance(value, list) or level > _DEEPEST:
        return False
    return all(are_words(inner, level + 1) for inner in value if isinstance(inner, list | dict))


def is_grid(value: Any) -> bool:
    """Whether a value is a list of a few counts whose product is one too."""
    if not isinstance(value, list) or not all(isinstance(n, int) and 0 <= n < _LARGEST_GRID for n in value):
        return False
    return prod(value) <= _MOST_BLOCKS
