"""Every text of a document through one function, whatever its types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from analyze.metrics.question import Answers

_Any = TypeVar("_Any")


def map_texts(value: _Any, how: Callable[[str], str]) -> _Any:
    """A document with every text in it replaced: dataclasses, tuples, lists, dictionaries and their keys."""
    found: Any = value
    if isinstance(value, str):
        return value if isinstance(value, Enum) else how(value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{f.name: map_texts(getattr(value, f.name), how) for f in fields(value) if f.init})
    elif isinstance(value, Answers):
        found = value.mapped(lambda answer: map_texts(answer, how))
    elif isinstance(value, tuple | list):
        found = type(value)(map_texts(item, how) for item in value)
    elif isinstance(value, dict):
        found = {map_texts(key, how): map_texts(item, how) for key, item in value.items()}
    return found  # type: ignore[no-any-return]
