"""Inputs that can be read only once: standard input, pipes, `<(zcat trace.json.gz)`. What was looked at is kept."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from analyze.errors import UnreadableError

STDIN = "-"
_PIECE_BYTES = 1 << 16
_NAMELESS = ("/dev/fd/", "/proc/")  # what a shell makes of <(...)


class Stream(io.RawIOBase):
    """An input read from its beginning, after a look at what comes first."""

    def __init__(self, file: BinaryIO, *, kept_open: bool) -> None:
        super().__init__()
        self.file, self._kept_open = file, kept_open
        self._seen, self._at = bytearray(), 0

    def peek(self, size: int) -> bytes:
        """The first bytes, which are still to be read; fewer only where the input ends."""
        while len(self._seen) < size and (piece := self.file.read(min(size - len(self._seen), _PIECE_BYTES))):
            self._seen += piece
        return bytes(self._seen[:size])

    def read(self, size: int = -1) -> bytes:
        """The next bytes: those that were looked at, then the rest."""
        seen = bytes(self._seen[self._at : len(self._seen) if size < 0 else self._at + size])
        self._at += len(seen)
        if self._seen and self._at == len(self._seen):
            self._seen, self._at = bytearray(), 0
        if size < 0:
            return seen + self.file.read()
        return seen or self.file.read(size)

    def close(self) -> None:
        """Close it, unless it is standard input."""
        if not self._kept_open:
            self.file.close()
        super().close()


_looked_at: dict[str, Stream] = {}


def is_stream(path: str | Path) -> bool:
    """Whether an input can be read only once."""
    if str(path) == STDIN:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def identity(path: str) -> tuple[int, int] | str | None:
    """What distinguishes inputs that can be read only once, whatever they are called; None for files."""
    if not is_stream(path):
        return None
    try:
        found = os.fstat(_stdin().fileno()) if path == STDIN else Path(path).stat()
    except (OSError, ValueError, UnreadableError):
        return path
    if stat.S_ISREG(found.st_mode) or stat.S_ISCHR(found.st_mode):
        return path
    return found.st_dev, found.st_ino


def name_of(path: str) -> str:
    """How a report names an input: by its base name, where it has one."""
    if path == STDIN:
        return "standard input"
    return "pipe" if path.startswith(_NAMELESS) and is_stream(path) else Path(path).name


def head(path: str | Path, size: int) -> bytes:
    """The first bytes of an input; they are still there for whoever reads it.

    Raises:
        OSError: it cannot be opened or read.
        UnreadableError: standard input is closed.
    """
    if not is_stream(path):
        with Path(path).open("rb") as file:
            return file.read(size)
    known = _looked_at.get(str(path))
    if known is None or (str(path) == STDIN and known.file is not _stdin()):
        known = _looked_at[str(path)] = _stream(str(path))
    return known.peek(size)


def open_input(path: str) -> BinaryIO:
    """An input from its beginning, whatever was looked at before.

    Raises:
        OSError: it cannot be opened.
        UnreadableError: standard input is closed.
    """
    if not is_stream(path):
        return Path(path).open("rb")
    known = _looked_at.pop(path, None)
    if known is None or (path == STDIN and known.file is not _stdin()):
        known = _stream(path)
    return known  # type: ignore[return-value]


def _stream(path: str) -> Stream:
    if path == STDIN:
        return Stream(_stdin(), kept_open=True)
    return Stream(Path(path).open("rb"), kept_open=False)


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise UnreadableError("Standard input is closed.", "Pass a file.")
    return sys.stdin.buffer
