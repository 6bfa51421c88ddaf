"""Every text of a document through one function, whatever its types."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from analyze.metrics.question import Answers

_Any = TypeVar("_Any")


def map_texts(value: _Any, how: Callable[[str], str]) -> _Any:
    """A document with every text in it replaced: records, tuples, lists, dictionaries and their keys."""
    found: Any = value
    if isinstance(value, str):
        return value if isinstance(value, Enum) else how(value)  # type: ignore[return-value]
    if isinstance(value, Struct):
        found = replace(value, **{name: map_texts(item, how) for name, item in asdict(value).items()})
    elif isinstance(value, Answers):
        found = value.mapped(lambda answer: map_texts(answer, how))
    elif isinstance(value, tuple | list):
        found = type(value)(map_texts(item, how) for item in value)
    elif isinstance(value, dict):
        found = {map_texts(key, how): map_texts(item, how) for key, item in value.items()}
    return found  # type: ignore[no-any-return]
