"""A trace as its file holds it: its bytes are copied, and nothing of it is decoded.

Tracks that `analyze export` added before are left out. They stand together, right behind the `[` of the list of events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO

from analyze.errors import NotATraceError
from analyze.report.files import mark, unmarked
from analyze.report.share.viewer import ADDED, FIRST_ROW
from analyze.trace.classes import TRACK_CATEGORY
from analyze.trace.pieces import Layout, after_head, find_separator
from analyze.trace.source import Source

MADE = "annotated"
_FIRST_NUMBER = 2_000_000_000  # no system numbers processes so high; only numbers as long as this are looked for
_SAMPLE_BYTES = 1 << 16
_LONGEST_BYTES = 1 << 10  # of what is looked for in a stream: it may lie across two blocks
_LAST_ROW = re.compile(
    rb'\{"ph": "M", "cat": "%b", "name": "process_labels", "pid": \d+, "tid": \d+, '
    rb'"args": \{"labels":"%b","last":1\}\},?' % (TRACK_CATEGORY.encode(), ADDED.encode())
)
_NUMBER = re.compile(rb'id"\s*:\s*"?\s*([^\s,}"]{10,40}|[^\s,}"]{0,40}[eE.][^\s,}"]{0,40})')
_BEHIND = b"\n"  # stands between the `[` and the first added row
_BEGIN = _BEHIND + FIRST_ROW


class Original:
    """The file that is copied.

    Attributes:
        path: where it is.
        cut: it ended early when it was copied.
    """

    def __init__(self, path: str | Path, *, trusted: bool = False) -> None:
        self.path = path
        self.cut = False
        self._trusted = trusted

    def is_ours(self) -> bool:
        """Whether rows that were added before stand where and as this program writes them."""
        source = Source(self.path, trusted=self._trusted)
        begin = b""
        for block in after_head(source.blocks(), Layout(source.name)):
            begin += block
            if len(begin) >= len(_BEGIN):
                break
        return begin.startswith(_BEGIN)

    def free_numbers(self) -> Iterator[int]:
        """Process and thread numbers that no row of the file has."""
        taken, last = set(), b""
        _, body = self._opened()
        for block in body:
            text = last + block
            taken |= {_whole(found) for found in _NUMBER.findall(text)}
            last = text[-_LONGEST_BYTES:]
        return (number for number in count(_FIRST_NUMBER) if number not in taken)

    def copy(self, rows: Iterator[bytes], file: IO[bytes]) -> int:
        """Write the document with more rows in front of its own; the number of those.

        They are set apart as the file's own rows are, so that who reads the file finds one layout.

        Args:
            rows: rows as JSON.
            file: where to.
        """
        layout, body = self._opened()
        begin = b""
        while len(begin) < _SAMPLE_BYTES and (block := next(body, b"")):
            begin += block
        separator, added = find_separator(begin) or b",\n", 0
        file.write(_head(layout))
        for row in rows:
            file.write((separator if added else _BEHIND) + row)
            added += 1
        if begin.lstrip()[:1] not in (b"", b"]"):
            file.write(b",")
        file.write(begin)
        for block in body:
            file.write(block)
        return added

    def _opened(self) -> tuple[Layout, Iterator[bytes]]:
        """The layout, and the bytes behind the `[`, without what was added before."""
        source = Source(self.path, trusted=self._trusted)
        layout = Layout(source.name)
        body = after_head(source.blocks(), layout)
        first = next(body)

        def rest() -> Iterator[bytes]:
            yield from _without_added(first, body, source.name)
            self.cut = source.cut is not None

        return layout, rest()


def _head(layout: Layout) -> bytes:
    """The bytes before the list, with the mark of this program in place of an older one."""
    if layout.bare_list:
        return b"["
    return mark(MADE) + unmarked(layout.head.lstrip()).removeprefix(b"{")


def _without_added(first: bytes, body: Iterator[bytes], name: str) -> Iterator[bytes]:
    while len(first) < len(_BEGIN) and (block := next(body, b"")):
        first += block
    if not first.startswith(_BEGIN):
        yield first
        yield from body
        return
    text = first
    while (last := _LAST_ROW.search(text)) is None or last.end() + _LONGEST_BYTES > len(text):
        block = next(body, b"")
        if not block and last is None:
            raise NotATraceError(f"{name} holds only a part of what `analyze export` added to it.", HINT)
        if not block:
            break
        text = (text[-_LONGEST_BYTES:] if last is None else text) + block
    assert last is not None
    yield text[last.end() :]
    yield from body


HINT = "Pass the trace that it was made from."


def _whole(text: bytes) -> int:
    """The number of a text, -1 where there is none."""
    try:
        return int(text) if text.isdigit() else int(float(text))
    except (ValueError, OverflowError):
        return -1
