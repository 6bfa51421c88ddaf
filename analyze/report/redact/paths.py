"""Paths in texts: of each only the file's own name stays."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath
from typing import Any, TypeVar

from analyze.blocks import Page
from analyze.report.walk import map_texts

_FOLDERS = re.compile(
    r"(?<![\w.<:/\\])"  # not inside a word, a template or a URL
    r"(?:[A-Za-z]:|\.{1,2}|~\w*)?[\\/]{1,2}"  # a root, a drive, a home
    r"(?:[^\s\\/:*?\"<>|()',;]+[\\/])+"
)
_ROOT = re.compile(
    r"(?<![\w<])(?:[A-Za-z][A-Za-z0-9+.-]*:/{1,3}(?=\S)|[A-Za-z]:\\|~[\w.-]*[\\/]|\.{1,2}[\\/]|[\w.-]+:[\\/]|[\\/]{1,2})"
    r"(?=[^\s\\/<>=])"
)
_RELATIVE = re.compile(r"[\\/][^\\/]*\.\w{1,6}(?![\w])")
_LAST = re.compile(r".*[\\/]", re.DOTALL)
_Any = TypeVar("_Any")


def shorten_paths(text: str) -> str:
    """A sentence with every absolute path cut to its last part."""
    return _FOLDERS.sub("", text) if "/" in text or "\\" in text else text


def cut_paths(name: str) -> str:
    """A name without folders: from the first sign of a path up to the last separator nothing stays.

    A path in a name may hold blanks, commas, quotes and brackets, so more is cut rather than less.
    """
    if "/" not in name and "\\" not in name:
        return name
    root = _ROOT.search(name)
    if root is not None:
        last = _LAST.match(name)
        assert last is not None
        return name[: root.start()] + name[max(last.end(), root.end()) :]
    return _LAST.sub("", name) if _RELATIVE.search(name) else name


def base_name(path: str) -> str:
    """The last part of a path of any system."""
    return re.split(r"[\\/]", path)[-1]


def _without_folders(command: str) -> str:
    """A command with the base names of its files, however they were given; the values of its options stay."""
    words = shlex.split(command)
    options = [at for at, word in enumerate(words) if word.startswith("-")]
    files = words[: options[0]] if options else words
    return shlex.join([*(PurePath(word).name for word in files), *words[len(files) :]])


def redacted(report: _Any) -> _Any:
    """A document with every path in it shortened; what else `--redact` takes away is never read into it."""
    found: Any = map_texts(report, shorten_paths)
    page, original = getattr(found, "page", None), getattr(report, "page", None)
    if isinstance(page, Page) and isinstance(original, Page):
        from msgspec.structs import replace

        steps = tuple(_without_folders(command) for command in original.next_steps)
        found = replace(found, page=replace(page, next_steps=steps))
    return found  # type: ignore[no-any-return]
