"""A byte stream becomes head, pieces of whole events, and tail.

A piece is cut at the separator that the file uses between events. The cut need not be proven here: a piece that
parses as a JSON array proves both of its ends, and one that does not is joined with the next (see `decode`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyze.errors import DamagedTraceError
from analyze.trace.kinds import refuse_json_without_events

PIECE_BYTES = 1 << 18
HEAD_LIMIT_BYTES = 1 << 26
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*(?:\{\s*"traceEvents"\s*:\s*)?\[')
_SEPARATOR = re.compile(rb"\}(\s*,\s*)\{")
_SEPARATOR_SAMPLE_BYTES = 1 << 16


@dataclass
class Layout:
    """How the document is laid out.

    Attributes:
        head: the bytes before the first event, up to and with the `[`.
        bare_list: the document is a list of events without an object around it.
    """

    head: bytes = b""
    bare_list: bool = False
    separator: bytes = field(default=b"", repr=False)


def split(blocks: Iterator[bytes], name: str, layout: Layout) -> Iterator[bytes]:
    """Yield pieces of about 256 KiB that hold whole events; the last one also holds the document's tail.

    Args:
        blocks: the document's bytes.
        name: file name, for messages.
        layout: filled as a side product, before the first piece is yielded.

    Raises:
        NotATraceError: JSON without `traceEvents`.
        DamagedTraceError: the events do not begin within the first 64 MiB.
    """
    rest = _after_head(blocks, name, layout)
    buffer = bytearray()
    for block in rest:
        buffer += block
        if not layout.separator and len(buffer) >= _SEPARATOR_SAMPLE_BYTES:
            layout.separator = _separator(bytes(buffer[:_SEPARATOR_SAMPLE_BYTES]))
        yield from _cut(buffer, layout.separator)
    layout.separator = layout.separator or _separator(bytes(buffer[:_SEPARATOR_SAMPLE_BYTES]))
    yield bytes(buffer)


def _after_head(blocks: Iterator[bytes], name: str, layout: Layout) -> Iterator[bytes]:
    head = bytearray()
    for block in blocks:
        head += block
        if head.lstrip()[:1] == b"[":
            layout.bare_list = True
            layout.head, body = bytes(head[: head.index(b"[") + 1]), bytes(head[head.index(b"[") + 1 :])
            break
        match = _EVENTS.search(head)
        if match:
            layout.head, body = bytes(head[: match.end()]), bytes(head[match.end() :])
            break
        if len(head) > HEAD_LIMIT_BYTES:
            raise DamagedTraceError(f"{name} has no events in its first 64 MiB.", "Export the trace again.")
    else:
        raise refuse_json_without_events(bytes(head), name)
    yield body
    yield from blocks


def _separator(sample: bytes) -> bytes:
    """The text that stands most often between `}` and `{`."""
    counts = Counter(_SEPARATOR.findall(sample))
    return counts.most_common(1)[0][0] if counts else b""


def _cut(buffer: bytearray, separator: bytes) -> Iterator[bytes]:
    """Take whole pieces off the front of the buffer."""
    if not separator:
        return
    mark = b"}" + separator + b"{"
    begin = 0
    while len(buffer) - begin >= 2 * PIECE_BYTES:
        at = buffer.rfind(mark, begin, begin + PIECE_BYTES)
        if at < 0:
            at = buffer.find(mark, begin + PIECE_BYTES)
        if at < 0:
            break
        yield bytes(buffer[begin : at + 1])
        begin = at + 1 + len(separator)
    del buffer[:begin]
