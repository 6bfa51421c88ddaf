"""Reports without folders: of every path in a text only the file's own name stays."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

_FOLDERS = re.compile(
    r"(?<![\w.<:/\\])"  # not inside a word, a template or a URL
    r"(?:[A-Za-z]:|\.{1,2}|~\w*)?[\\/]{1,2}"  # a root, a drive, a home
    r"(?:[^\s\\/:*?\"<>|()',;]+[\\/])+"
)
_Any = TypeVar("_Any")


def shorten_paths(text: str) -> str:
    """The text with every absolute path cut to its last part."""
    return _FOLDERS.sub("", text) if "/" in text or "\\" in text else text


def redacted(value: _Any) -> _Any:
    """A document with every path in it shortened, whatever its types: dataclasses, tuples, lists, dictionaries."""
    found: Any = value
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        found = shorten_paths(value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{f.name: redacted(getattr(value, f.name)) for f in fields(value) if f.init})
    elif isinstance(value, tuple | list):
        found = type(value)(redacted(item) for item in value)
    elif isinstance(value, dict):
        found = {key: redacted(item) for key, item in value.items()}
    return found  # type: ignore[no-any-return]
