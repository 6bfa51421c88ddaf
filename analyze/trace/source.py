"""A path becomes a stream of plain bytes: sniffed by content, unpacked, hashed, in bounded memory."""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from analyze.errors import UnreadableError
from analyze.trace.kinds import refuse_folder, refuse_other_kind

BLOCK_BYTES = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib: window of 2^15, gzip header and trailer
_BOM = b"\xef\xbb\xbf"


class Source:
    """One input file, read once.

    Attributes:
        name: base name for the report; folders are private.
        size_bytes: size on disk, 0 for standard input.
        sha256: hash of the bytes on disk, complete once all blocks were read.
        cut: why the stream ended early, or None. The blocks before the cut are good.
        packed: the bytes on disk are compressed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.name = "standard input" if self.path == "-" else Path(self.path).name
        self.size_bytes = 0
        self.cut: str | None = None
        self.packed = False
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes read so far."""
        return self._hash.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """Yield the unpacked bytes of a JSON document in blocks of about 1 MiB.

        Raises:
            UnreadableError: the file cannot be opened or read, or is empty.
            NotATraceError: the content is a known other format.
        """
        plain = self.unpacked()
        first = next(plain, b"")
        if not first.strip() and self.packed:
            raise UnreadableError(f"{self.name} is empty (0 bytes after gunzip).", "Export the trace again.")
        first = first.removeprefix(_BOM)
        refuse_other_kind(first, self.name)
        yield first
        yield from plain

    def unpacked(self) -> Iterator[bytes]:
        """Yield the unpacked bytes, whatever they are, in blocks of about 1 MiB.

        Raises:
            UnreadableError: the file cannot be opened or read, or is empty.
        """
        with _open(self.path) as file:
            raw = self._raw_blocks(file)
            first = next(raw, b"")
            if not first:
                raise UnreadableError(f"{self.name} is empty (0 bytes).", "Was the recording stopped early?")
            self.packed = first.startswith(GZIP_MAGIC)
            yield from self._gunzip(_chain(first, raw)) if self.packed else _chain(first, raw)

    def _raw_blocks(self, file: BinaryIO) -> Iterator[bytes]:
        while True:
            try:
                block = file.read(BLOCK_BYTES)
            except OSError as error:
                raise UnreadableError(f"{self.name} cannot be read: {error.strerror or error}.") from error
            if not block:
                return
            self.size_bytes += len(block)
            self._hash.update(block)
            yield block

    def _gunzip(self, packed: Iterator[bytes]) -> Iterator[bytes]:
        """Unpack gzip members one after the other; a damaged end is a cut, not an error."""
        unpacker, begun = zlib.decompressobj(wbits=_GZIP), False
        for block in packed:
            data = block
            while data:
                if not begun and not GZIP_MAGIC.startswith(data[: len(GZIP_MAGIC)]):
                    self._cut("bytes that are not gzip data follow the first part", packed)
                    return
                try:
                    plain = unpacker.decompress(data, BLOCK_BYTES)
                except zlib.error:
                    self._cut("the gzip data is damaged", packed)
                    return
                begun = True
                if plain:
                    yield plain
                data = unpacker.unconsumed_tail
                if unpacker.eof:
                    data = unpacker.unused_data.lstrip(b"\0")
                    unpacker, begun = zlib.decompressobj(wbits=_GZIP), False
        if begun:
            tail = unpacker.flush()
            if tail:
                yield tail
            if not unpacker.eof:
                self.cut = "the gzip data ends before its end mark"

    def _cut(self, reason: str, rest: Iterator[bytes]) -> None:
        """Note why the stream ends here; the rest is still read, for the hash of the whole file."""
        self.cut = reason
        for _ in rest:
            pass


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _open(path: str) -> BinaryIO:
    if path == "-":
        return sys.stdin.buffer
    place = Path(path)
    if place.is_dir():
        raise refuse_folder(place)
    try:
        return place.open("rb")
    except FileNotFoundError as error:
        raise UnreadableError(f"{path} does not exist.", "Check the path.") from error
    except PermissionError as error:
        raise UnreadableError(f"{path} may not be read.", "Check its permissions.") from error
    except OSError as error:
        raise UnreadableError(f"{path} cannot be opened: {error.strerror or error}.") from error
