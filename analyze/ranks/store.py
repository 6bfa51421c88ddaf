"""Summaries as files: one Parquet set per trace, named by content and definitions, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import orjson
import polars as pl
from msgspec.structs import fields, replace

from analyze.notices import Notice
from analyze.ranks.files import Candidate
from analyze.ranks.summary import MOST_EVENTS, MOST_STRETCHES, SUMMARY_VERSION, FileInfo, Summary
from analyze.ranks.tables import PARTS
from analyze.settings import Definitions

_KEY, _DEFINITIONS = 12, 8
_FILE = "file"
_INFO = "info"
_FIELDS = {field.name for field in fields(FileInfo)}


def default_folder() -> Path:
    """The user's cache folder for summaries."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gpuledger" / "ranks"


def definitions_hash() -> str:
    """A name for the definitions and the version of the tables that summaries were made with."""
    text = msgspec.json.encode([SUMMARY_VERSION, MOST_EVENTS, MOST_STRETCHES, Definitions()])
    columns = orjson.dumps({name: [(c.name, str(c.dtype)) for c in schema] for name, schema in PARTS.items()})
    return hashlib.sha256(text + columns).hexdigest()[:_DEFINITIONS]


class StoredFrames(Mapping[str, pl.DataFrame]):
    """The frames of a stored summary, read when they are asked for: a job of ten thousand ranks holds none of them."""

    def __init__(self, stem: Path) -> None:
        self.stem = stem

    def __getitem__(self, name: str) -> pl.DataFrame:
        """One frame."""
        if name not in PARTS:
            raise KeyError(name)
        return pl.read_parquet(_place(self.stem, name))

    def __iter__(self) -> Iterator[str]:
        """The names of all frames."""
        return iter(PARTS)

    def __len__(self) -> int:
        """How many frames there are."""
        return len(PARTS)


class Store:
    """A folder of summaries.

    Attributes:
        folder: where.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._suffix = f"-{definitions_hash()}"

    def put(self, summary: Summary) -> None:
        """Write a summary; its file table comes last, so that a summary that has one is whole.

        Raises:
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = self._stem(summary.file)
        for name in PARTS:
            _write(summary.frames[name], _place(stem, name))
        text = msgspec.json.encode(summary.file).decode()
        _write(pl.DataFrame({_INFO: [text]}, schema={_INFO: pl.String}), _place(stem, _FILE))

    def get(self, info: FileInfo) -> Summary:
        """A stored summary under the name that its file has now."""
        return Summary(info, StoredFrames(self._stem(info)))

    def files(self) -> list[FileInfo]:
        """All files that are stored whole, in order of their paths; what cannot be read is as if it were not there."""
        found = []
        for place in sorted(self.folder.glob(f"*{self._suffix}.{_FILE}.parquet")):
            info = _info(place)
            if info is not None:
                found.append(info)
        return sorted(found, key=lambda one: (one.path, one.key))

    def known(self) -> dict[tuple[str, int, int, str], FileInfo]:
        """The stored files by path as shown, size, time and etag: what need not be read again."""
        return {(one.path, one.size_bytes, one.modified_ns, one.etag): one for one in self.files()}

    def _stem(self, info: FileInfo) -> Path:
        place = hashlib.sha256(info.path.encode("utf-8", "surrogateescape")).hexdigest()[:4]
        return self.folder / f"{info.key[:_KEY]}{place}{self._suffix}"


def identity(one: Candidate) -> tuple[str, int, int, str]:
    """What says that a file has not changed since it was read."""
    return one.shown, one.size_bytes, one.modified_ns, one.etag


def _place(stem: Path, name: str) -> Path:
    return stem.with_name(f"{stem.name}.{name}.parquet")


def _write(frame: pl.DataFrame, place: Path) -> None:
    """Write a frame under another name, and give it its own when it is whole."""
    made = io.BytesIO()  # Polars has errors of its own for a full disk
    frame.write_parquet(made, compression="zstd")
    handle, half = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(made.getbuffer())
        Path(half).replace(place)
    except BaseException:
        Path(half).unlink(missing_ok=True)
        raise


def _info(place: Path) -> FileInfo | None:
    try:
        value = orjson.loads(pl.read_parquet(place)[_INFO][0])
        info = FileInfo(**{name: item for name, item in value.items() if name in _FIELDS})
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError):
        return None
    notices = tuple(Notice(**notice) for notice in value.get("notices", ()))
    return replace(info, dropped_steps=tuple(info.dropped_steps), notices=notices)
