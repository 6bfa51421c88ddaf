"""Compressed bytes become plain ones: gzip (members, damaged ends), zstd and zip, within limits."""

from __future__ import annotations

import importlib
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, BinaryIO, cast

from analyze.errors import NotATraceError, UnreadableError
from analyze.trace.foreign_formats import RECORD_HINT, refuse_archive

BLOCK_BYTES = 1 << 20
GZIP_MAGIC, ZSTD_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
BOMB_RATIO = 200  # traces pack to a twentieth or a fiftieth; zeros to a thousandth
BOMB_FREE_BYTES = 1 << 26  # below it no ratio does harm: a few seconds, and memory as for any trace
_SPOOLED_BYTES = 1 << 26  # larger copies lie on disk
_GZIP = 31  # zlib: window of 2^15, gzip header and trailer
_MEMBERS_LOOKED_AT = 10_000
_TRACE_SUFFIXES = (".json", ".json.gz", ".json.zst", ".gz")

NoteCut = Callable[[str], None]


def unpack(packed: Iterator[bytes], file: BinaryIO, name: str, cut: NoteCut, *, trusted: bool) -> Iterator[bytes]:
    """Yield the plain bytes of a stream, whatever its first bytes say it is packed with.

    Args:
        packed: the bytes on disk.
        file: the open file, for the archive format that needs to seek.
        name: file name, for messages.
        cut: called with the reason why the plain bytes end early, when they do.
        trusted: no limit on how far the file may grow.

    Raises:
        UnreadableError: it grows like a zip bomb, or the library for its compression is missing.
        NotATraceError: an archive with none or several traces.
    """
    first = next(packed, b"")
    whole = chain([first], packed)
    if first.startswith(GZIP_MAGIC):
        return _limited(*_counted(whole, lambda data: _gunzip(data, cut)), name, trusted=trusted)
    if first.startswith(ZSTD_MAGIC):
        return _limited(*_counted(whole, lambda data: _unzstd(data, name, cut)), name, trusted=trusted)
    if first.startswith(ZIP_MAGIC):
        inner = _unzip(file, name) if file.seekable() else _unzip_copy(whole, name)
        for _ in packed:  # for the hash of the whole file
            pass
        return _limited(
            *_counted(inner, lambda data: unpack(data, file, name, cut, trusted=trusted)), name, trusted=trusted
        )
    return whole


def _counted(
    packed: Iterator[bytes], opener: Callable[[Iterator[bytes]], Iterator[bytes]]
) -> tuple[Iterator[bytes], list[int]]:
    """The opened stream, and a running count of the packed bytes that went in."""
    taken = [0]

    def count() -> Iterator[bytes]:
        for block in packed:
            taken[0] += len(block)
            yield block

    return opener(count()), taken


def _limited(plain: Iterator[bytes], taken: list[int], name: str, *, trusted: bool) -> Iterator[bytes]:
    grown = 0
    for block in plain:
        grown += len(block)
        if not trusted and grown > BOMB_FREE_BYTES and grown > BOMB_RATIO * taken[0]:
            raise UnreadableError(
                f"{name} unpacks to more than {BOMB_RATIO} times its size, as a zip bomb does.",
                "Pass --trust-size if you know the file.",
            )
        yield block


def _fast_zlib() -> Any:
    """The zlib of isal where it is installed: it unpacks three times as fast."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def _gunzip(packed: Iterator[bytes], cut: NoteCut) -> Iterator[bytes]:
    """Unpack gzip members one after the other; a damaged end is a cut, not an error."""
    library = _fast_zlib()
    unpacker, begun = library.decompressobj(wbits=_GZIP), False
    for block in packed:
        data = block
        while data:
            if not begun and not GZIP_MAGIC.startswith(data[: len(GZIP_MAGIC)]):
                return _drain(packed, cut, "bytes that are not gzip data follow the first part")
            try:
                plain = unpacker.decompress(data, BLOCK_BYTES)
            except library.error:
                return _drain(packed, cut, "the gzip data is damaged")
            begun = True
            if plain:
                yield plain
            data = unpacker.unconsumed_tail
            if unpacker.eof:
                data = unpacker.unused_data.lstrip(b"\0")
                unpacker, begun = library.decompressobj(wbits=_GZIP), False
    if begun:
        tail = unpacker.flush()
        if tail:
            yield tail
        if not unpacker.eof:
            cut("the gzip data ends before its end mark")
    return None


def _drain(rest: Iterator[bytes], cut: NoteCut, reason: str) -> None:
    """Note why the plain bytes end here; the rest is still read, for the hash of the whole file."""
    cut(reason)
    for _ in rest:
        pass


def _unzstd(packed: Iterator[bytes], name: str, cut: NoteCut) -> Iterator[bytes]:
    try:
        library = importlib.import_module("zstandard")
    except ImportError as error:
        hint = "pip install 'gpuledger[fast]', or unpack it first: `zstd -d FILE`."
        raise UnreadableError(f"{name} is compressed with zstd, and no library for it is installed.", hint) from error
    unpacker = library.ZstdDecompressor().stream_reader(_Blocks(packed), read_across_frames=True)
    try:
        while plain := unpacker.read(BLOCK_BYTES):
            yield plain
    except library.ZstdError:
        _drain(packed, cut, "the zstd data is damaged")


def _unzip_copy(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same of what can be read only once: an archive has to be read from its end."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOLED_BYTES) as copy:
        for block in blocks:
            copy.write(block)
        yield from _unzip(cast(BinaryIO, copy), name)


class _Blocks:
    """Blocks as a file, for a library that asks for them."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._left = memoryview(b"")

    def read(self, size: int) -> bytes:
        """At most so many of the next bytes, none at the end."""
        if not self._left:
            self._left = memoryview(next(self._blocks, b""))
        taken, self._left = self._left[:size], self._left[size:]
        return bytes(taken)


def _unzip(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The bytes of the one trace in an archive."""
    try:
        archive = zipfile.ZipFile(file)
        traces = [info for info in archive.infolist() if info.filename.endswith(_TRACE_SUFFIXES)]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise UnreadableError(f"{name} is a damaged zip archive.", "Pass the trace itself.") from error
    if len(traces) != 1:
        names = [info.filename for info in archive.infolist()[:_MEMBERS_LOOKED_AT]]
        if any(one.endswith("/data.pkl") for one in names):
            raise NotATraceError(f"{name} is a file of torch.save (weights or tensors), not a trace.", RECORD_HINT)
        there = "no trace" if not traces else f"{len(traces)} traces"
        raise refuse_archive(name, f"a zip archive with {there}", names, "unzip")
    if traces[0].flag_bits & 1:
        raise UnreadableError(f"{name} is an encrypted zip archive.", "Unpack it and pass the trace inside.")
    return _member(archive, traces[0], name)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
    try:
        with archive.open(info) as member:
            while block := member.read(BLOCK_BYTES):
                yield block
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError) as error:
        raise UnreadableError(f"{name} is a damaged zip archive.", "Pass the trace itself.") from error
