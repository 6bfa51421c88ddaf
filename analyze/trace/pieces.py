"""A byte stream becomes head, pieces of whole events, and tail.

A piece is cut at the separator that the file uses between events. The cut need not be proven here: a piece that parses
as a JSON array proves both of its ends, and one that does not is joined with the next (see `part`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from analyze.errors import DamagedTraceError
from analyze.trace.foreign import refuse_json_without_events
from analyze.trace.metadata import keys_before

PIECE_BYTES = 1 << 18
HEAD_LIMIT_BYTES = 1 << 26
EVENT_LIMIT_BYTES = 1 << 25  # no event is longer; a stretch of it without a separator is no list of events
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(?:\{\s*"traceEvents"\s*:\s*)?\[')
_FILLED = re.compile(_EVENTS.pattern + rb"(?=\s*[^\s\]])")  # an empty list is passed over as long as there is another
_SEPARATOR = re.compile(rb"\}(\s*,\s*)\{")
_NO_BLANK = re.compile(rb"[^\s]")
_SAMPLE_BYTES = 1 << 16
_MOST_LISTS = 8  # that are tried
_PATIENCE_BYTES = 1 << 23  # a stretch of it without the known separator: the layout has changed


class Layout(Struct):
    """How the document is laid out.

    Attributes:
        name: file name, for messages.
        head: the bytes before the first event, up to and with the `[`.
        bare_list: the document is a list of events without an object around it.
        separator: the text between two events, empty until it is known.
    """

    name: str
    head: bytes = b""
    bare_list: bool = False
    separator: bytes = b""


def split(blocks: Iterator[bytes], layout: Layout) -> Iterator[bytes]:
    """Yield pieces of about 256 KiB that hold whole events; the last one also holds the document's tail.

    Args:
        blocks: the document's bytes from its beginning.
        layout: filled before the first piece is yielded.

    Raises:
        NotATraceError: JSON without `traceEvents`.
        DamagedTraceError: the events do not begin within 64 MiB, or one of them is over 32 MiB long.
    """
    yield from cut(after_head(blocks, layout), layout)


def cut(blocks: Iterator[bytes], layout: Layout) -> Iterator[bytes]:
    """Yield the pieces of a stream that begins with an event."""
    buffer, scanned = bytearray(), 0
    for block in blocks:
        buffer += block
        if not layout.separator and len(buffer) >= _SAMPLE_BYTES:
            layout.separator = find_separator(bytes(buffer[:_SAMPLE_BYTES]))
        yield from _whole_pieces(buffer, layout.separator, scanned)
        scanned = max(len(buffer) - len(layout.separator) - 1, 0) if len(buffer) >= 2 * PIECE_BYTES else 0
        if len(buffer) > _PATIENCE_BYTES:
            _skip_blanks(buffer)
            layout.separator, scanned = find_separator(bytes(buffer[-_SAMPLE_BYTES:])) or layout.separator, 0
        if len(buffer) > EVENT_LIMIT_BYTES:
            raise DamagedTraceError(
                f"{layout.name} holds 32 MiB without an end of an event.", "Export the trace again."
            )
    layout.separator = layout.separator or find_separator(bytes(buffer[:_SAMPLE_BYTES]))
    yield bytes(buffer)


def _skip_blanks(buffer: bytearray) -> None:
    """Drop blanks in front, of which a file may have any number."""
    first = _NO_BLANK.search(buffer)
    del buffer[: first.start() if first else len(buffer)]


def find_separator(sample: bytes) -> bytes:
    """The text that stands most often between `}` and `{`, empty where nothing does."""
    counts = Counter(_SEPARATOR.findall(sample))
    return counts.most_common(1)[0][0] if counts else b""


def after_head(blocks: Iterator[bytes], layout: Layout) -> Iterator[bytes]:
    """Yield the document's bytes from its first event on, in blocks of any size.

    Args:
        blocks: the document's bytes from its beginning.
        layout: its head is filled before anything is yielded.

    Raises:
        NotATraceError: JSON without `traceEvents`.
        DamagedTraceError: the events do not begin within 64 MiB.
    """
    head = bytearray()
    for block in blocks:
        head += block
        begin = _begin_of_events(head, layout)
        if begin:
            layout.head, body = bytes(head[:begin]), bytes(head[begin:])
            break
        if len(head) > HEAD_LIMIT_BYTES:
            raise DamagedTraceError(f"{layout.name} has no events in its first 64 MiB.", "Export the trace again.")
    else:
        empty = _EVENTS.search(head)
        if empty is None:
            raise refuse_json_without_events(bytes(head[:_SAMPLE_BYTES]), layout.name)
        layout.head, body = bytes(head[: empty.end()]), bytes(head[empty.end() :])
    yield body
    yield from blocks


def _begin_of_events(head: bytearray, layout: Layout) -> int:
    """Where the first event begins, 0 while it is not there yet.

    That is in the first list under a top-level key, or in the first one at all where the text before it is damaged.
    """
    if head.lstrip()[:1] == b"[":
        layout.bare_list = True
        begin = head.index(b"[") + 1
        if bytes(head[begin:].lstrip()[:1]) not in (b"{", b"]", b""):
            raise refuse_json_without_events(bytes(head[:_SAMPLE_BYTES]), layout.name)
        return begin
    first = 0
    for match in islice(_FILLED.finditer(head), _MOST_LISTS):
        if keys_before(bytes(head[: match.end()])) is not None:
            return match.end()
        first = first or match.end()
    return first


def _whole_pieces(buffer: bytearray, separator: bytes, scanned: int) -> Iterator[bytes]:
    """Take whole pieces off the front of the buffer; the first `scanned` bytes hold no separator."""
    if not separator:
        return
    mark = b"}" + separator + b"{"
    begin = 0
    while len(buffer) - begin >= 2 * PIECE_BYTES:
        at = buffer.rfind(mark, max(begin, scanned), begin + PIECE_BYTES)
        if at < 0:
            at = buffer.find(mark, max(begin + PIECE_BYTES, scanned))
        if at < 0:
            break
        yield bytes(buffer[begin : at + 1])
        begin = at + 1 + len(separator)
    del buffer[:begin]
