"""A file becomes plain lists and dictionaries: a pickle without executing it, or JSON."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

import orjson
from msgspec import Struct

from analyze.errors import SnapshotError, UnreadableError
from analyze.snapshot.opcodes import check_opcodes
from analyze.snapshot.sniff import is_pickle
from analyze.trace.collection import collection_paused
from analyze.trace.source import Source

_MOST_BYTES = 1 << 32  # of the unpacked pickle; objects made of it take about five times as much
_MOST_JSON_BYTES = 1 << 30  # JSON repeats every stack, and every repetition becomes objects
_MOST_RATIO = 100  # gzip of real snapshots gains a factor of 10 to 40
_FREE_BYTES = 1 << 26
_HINT = "Record one with `capture`, or with torch.cuda.memory._dump_snapshot('snapshot.pickle')."


class Loaded(Struct, frozen=True):
    """What a file held.

    Attributes:
        name: base name of the file.
        sha256: hash of its bytes.
        size_bytes: size on disk.
        form: "pickle" or "JSON".
        document: the object in it, not yet looked at.
        path: the file as it was given, "-" for standard input.
    """

    name: str
    sha256: str
    size_bytes: int
    form: str
    document: Any
    path: str = ""


def read(path: str | Path) -> Loaded:
    """Read a memory snapshot without executing anything in it.

    Args:
        path: the file, or "-" for standard input.

    Raises:
        UnreadableError: the file cannot be opened or unpacked.
        SnapshotError: it holds something else, is damaged, or asks for more than a snapshot needs.
    """
    source = Source(path)
    data = _unpack(source)
    if source.cut is not None:
        raise UnreadableError(f"{source.name} is damaged: {source.cut}.", "Copy it again, or record it again.")
    try:
        with collection_paused():
            form, document = (
                ("pickle", _unpickle(data, source.name)) if is_pickle(data) else ("JSON", _parse(data, source.name))
            )
        return Loaded(source.name, source.sha256, source.size_bytes, form, document, source.path)
    except MemoryError as error:
        raise SnapshotError(f"{source.name} needs more memory than there is.", "Use a machine with more.") from error


def _unpack(source: Source) -> bytes:
    buffer = io.BytesIO()
    for block in source.unpacked():
        buffer.write(block)
        size = buffer.tell()
        if size > _MOST_BYTES:
            raise SnapshotError(f"{source.name} is larger than {_MOST_BYTES >> 30} GiB.", "Record fewer events.")
        if source.packed and size > max(_FREE_BYTES, _MOST_RATIO * source.size_bytes):
            raise SnapshotError(f"{source.name} unpacks to more than {_MOST_RATIO} times its size.", _HINT)
    return buffer.getvalue()


class DenyingUnpickler(pickle.Unpickler):
    """An unpickler that imports nothing. `check_opcodes` leaves it nothing to deny."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        """Refuse every import."""
        raise pickle.UnpicklingError(f"import of {module}.{name}")

    def persistent_load(self, _pid: Any, /) -> NoReturn:
        """Refuse every reference to the outside."""
        raise pickle.UnpicklingError("reference to the outside")


_BROKEN = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError,
    RecursionError,
)  # fmt: skip


def _unpickle(data: bytes, name: str) -> Any:
    end = check_opcodes(data, name)
    try:
        return DenyingUnpickler(io.BytesIO(data if end == len(data) else data[:end])).load()
    except _BROKEN as error:
        raise SnapshotError(f"{name} is a damaged pickle: its instructions do not fit together.", _HINT) from error


def _parse(data: bytes, name: str) -> Any:
    if data.lstrip()[:1] not in (b"{", b"["):
        raise SnapshotError(f"{name} is neither a pickle of protocol 2 to 5 nor JSON.", _HINT)
    if len(data) > _MOST_JSON_BYTES:
        raise SnapshotError(f"{name} is JSON of more than {_MOST_JSON_BYTES >> 30} GiB.", "Pass the pickle instead.")
    try:
        return orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise SnapshotError(f"{name} is damaged JSON.", "Copy it again, or pass the pickle instead.") from error
