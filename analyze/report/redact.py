"""Reports without folders: of every path in a text only the file's own name stays."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

from analyze.blocks import Page

_FOLDERS = re.compile(
    r"(?<![\w.<:/\\])"  # not inside a word, a template or a URL
    r"(?:[A-Za-z]:|\.{1,2}|~\w*)?[\\/]{1,2}"  # a root, a drive, a home
    r"(?:[^\s\\/:*?\"<>|()',;]+[\\/])+"
)
_Any = TypeVar("_Any")


def shorten_paths(text: str) -> str:
    """The text with every absolute path cut to its last part."""
    return _FOLDERS.sub("", text) if "/" in text or "\\" in text else text


def _without_folders(command: str) -> str:
    """A command with the base names of its files, however they were given; the values of its options stay."""
    words = shlex.split(command)
    options = [at for at, word in enumerate(words) if word.startswith("-")]
    files = words[: options[0]] if options else words
    return shlex.join([*(PurePath(word).name for word in files), *words[len(files) :]])


def redacted(value: _Any) -> _Any:
    """A document with every path in it shortened, whatever its types: dataclasses, tuples, lists, dictionaries."""
    found: Any = value
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        found = shorten_paths(value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{f.name: redacted(getattr(value, f.name)) for f in fields(value) if f.init})
        if isinstance(value, Page):
            found = replace(found, next_steps=tuple(_without_folders(command) for command in value.next_steps))
    elif isinstance(value, tuple | list):
        found = type(value)(redacted(item) for item in value)
    elif isinstance(value, dict):
        found = {key: redacted(item) for key, item in value.items()}
    return found  # type: ignore[no-any-return]
