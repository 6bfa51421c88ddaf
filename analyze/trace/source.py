"""A path becomes a stream of plain bytes: sniffed by content, unpacked, hashed, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from analyze.errors import UnreadableError
from analyze.trace.folder import refuse_folder
from analyze.trace.foreign import refuse_document
from analyze.trace.foreign_formats import refuse_other_kind, refuse_url
from analyze.trace.stream import STDIN, is_stream, name_of, open_input
from analyze.trace.unpack import BLOCK_BYTES, GZIP_MAGIC, ZIP_MAGIC, ZSTD_MAGIC, unpack

_BOM = b"\xef\xbb\xbf"


class Source:
    """One input file, read once.

    Attributes:
        name: base name for the report; folders are private.
        size_bytes: size on disk, 0 for standard input.
        sha256: hash of the bytes on disk, complete once all blocks were read.
        cut: why the stream ended early, or None. The blocks before the cut are good.
        packed: the bytes on disk are compressed.
        trusted: no limit on how far compressed bytes may grow.
    """

    def __init__(self, path: str | Path, *, trusted: bool = False, key: bool = False) -> None:
        self.path = str(path)
        self.name = name_of(self.path)
        self.size_bytes = 0
        self.cut: str | None = None
        self.packed = False
        self.trusted = trusted
        self._hash = hashlib.sha256()
        self._key = hashlib.sha256() if key else None

    @property
    def content_key(self) -> str:
        """Hex digest of the unpacked bytes read so far: a file and its compressed copy have one. Empty if not asked."""
        if self._key is None:
            return ""
        return self._key.hexdigest() if self.packed else self.sha256

    @property
    def whole_bytes(self) -> int:
        """Size on disk before anything was read, 0 for standard input and pipes."""
        try:
            return 0 if is_stream(self.path) or not Path(self.path).is_file() else Path(self.path).stat().st_size
        except OSError:  # whoever opens it says why
            return 0

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
        if not first and self.packed:
            raise UnreadableError(f"{self.name} is empty (0 bytes after gunzip).", "Export the trace again.")
        if not first.strip():
            raise UnreadableError(f"{self.name} begins with nothing but blanks.", "Was the recording stopped early?")
        first = first.removeprefix(_BOM)
        refuse_other_kind(first, self.name)
        refuse_document(first, self.name)
        yield first
        yield from plain

    def read_rest(self) -> None:
        """Read what was not asked for, for the hash of the whole file; plain files only."""
        with _open(self.path) as file:
            file.seek(self.size_bytes)
            for _ in self._raw_blocks(file):
                pass

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
            self.packed = first.startswith((GZIP_MAGIC, ZSTD_MAGIC, ZIP_MAGIC))
            for block in unpack(chain([first], raw), file, self.name, self._note_cut, trusted=self.trusted):
                if self._key is not None and self.packed:
                    self._key.update(block)
                yield block

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

    def _note_cut(self, reason: str) -> None:
        self.cut = reason


def _open(path: str) -> BinaryIO:
    address = None if path == STDIN else refuse_url(path)
    if address is not None:
        raise address
    if not path:
        raise UnreadableError("The name of an input is empty.", "Pass a file.")
    place = Path(path)
    try:
        if path != STDIN and place.is_dir():
            raise refuse_folder(place)
        return open_input(path)
    except FileNotFoundError as error:
        raise UnreadableError(f"{path} does not exist.", "Check the path.") from error
    except PermissionError as error:
        raise UnreadableError(f"{path} may not be read.", "Check its permissions.") from error
    except OSError as error:
        raise UnreadableError(f"{path} cannot be opened: {error.strerror or error}.") from error
