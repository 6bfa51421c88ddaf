"""Whether a file is a memory snapshot, by its first bytes and whatever its name says."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from analyze.errors import UnreadableError
from analyze.trace.stream import head

GZIP_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 1 << 16
_GZIP = 31  # zlib: window of 2^15, gzip header and trailer
_PROTOCOLS = range(2, 6)
_SUFFIXES = (".pickle", ".pkl")
_KEYS = rb"segments|device_traces|allocator_settings|external_annotations|host_segments|host_traces"
_FIRST_KEY = re.compile(rb'\s*\{\s*"(?:' + _KEYS + rb')"\s*:')
_SEGMENT_KEY = re.compile(rb'\s*\[\s*\{[^\]}]*"(?:total_size|segment_type|segment_pool_id|blocks)"\s*:')
_EVENTS_KEY = re.compile(rb'"(?:traceEvents|ph)"\s*:')


def is_snapshot(path: str | Path) -> bool:
    """Whether the file holds a memory snapshot, as a pickle or in JSON, gzipped or not.

    Args:
        path: the file, or "-" for standard input; of what can be read only once, nothing is taken away.

    Returns:
        False also for files that cannot be opened: whoever reads them says why.
    """
    first = _head(str(path))
    if is_pickle(first):
        return True
    if first.lstrip()[:1] not in (b"{", b"["):
        return bool(first) and str(path).lower().removesuffix(".gz").endswith(_SUFFIXES)
    if _FIRST_KEY.match(first) or _SEGMENT_KEY.match(first):
        return True
    return b'"device_traces"' in first and not _EVENTS_KEY.search(first)


def is_pickle(data: bytes) -> bool:
    """Whether the bytes begin as a pickle of protocol 2 to 5."""
    return len(data) > 1 and data[0] == 0x80 and data[1] in _PROTOCOLS


def _head(path: str) -> bytes:
    try:
        packed = head(path, _HEAD_BYTES)
        if packed.startswith(GZIP_MAGIC):
            return zlib.decompressobj(wbits=_GZIP).decompress(packed, _HEAD_BYTES)
    except (OSError, UnreadableError, zlib.error):
        return b""
    return packed
