"""Which traces lie in a folder, or among some paths; from object stores too, where fsspec is installed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from analyze.errors import UnreadableError
from analyze.trace.folder import is_trace

SUFFIXES = (".json", ".json.gz")
CLUSTER_HINT = "pip install 'gpuledger[cluster]', and the driver of your object store: s3fs, gcsfs, adlfs."


class Candidate(Struct, frozen=True):
    """A file that may be a trace.

    Attributes:
        path: where it is.
        shown: how reports name it: below the folder that was given.
        size_bytes: its size.
        modified_ns: when it was last written, or 0 where the store does not say.
        etag: what changes with its content in an object store, empty for local files.
        problem: why it cannot be read at all, empty where it may be.
    """

    path: str
    shown: str
    size_bytes: int
    modified_ns: int
    etag: str = ""
    problem: str = ""

    @property
    def remote(self) -> bool:
        """It lies in an object store."""
        return "://" in self.path


def candidates(paths: Iterable[str]) -> list[Candidate]:
    """The files of folders and paths by name, in order of how they are shown; a file that is given counts as it is.

    Raises:
        UnreadableError: a path does not exist, or its object store cannot be reached.
    """
    found: dict[str, Candidate] = {}
    for path in paths:
        if path == "-":
            raise UnreadableError(
                "Standard input holds one trace, not a job of many ranks.", "Pass a folder, or files."
            )
        for one in _remote(path) if "://" in path else _local(Path(path)):
            found.setdefault(one.path, one)
    return sorted(found.values(), key=lambda one: (one.shown, one.path))


def is_candidate(one: Candidate) -> bool:
    """Whether a file begins as a trace does, or cannot be looked at: files of object stores are when they are read."""
    return one.remote or bool(one.problem) or is_trace(Path(one.path))


def _local(place: Path) -> Iterator[Candidate]:
    if not place.is_dir():
        one = _candidate(place, place.name)
        if one.problem:
            raise UnreadableError(f"{place}: {one.problem}.", "Check the path.")
        yield one
        return
    for folder, below, names in os.walk(place):
        below.sort()
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                path = Path(folder, name)
                yield _candidate(path, path.relative_to(place).as_posix())


def _candidate(path: Path, shown: str) -> Candidate:
    try:
        found = path.stat()
    except FileNotFoundError:
        what = "a link to a file that does not exist" if path.is_symlink() else "there is no such file"
        return Candidate(str(path), shown, 0, 0, problem=what)
    except OSError as error:
        return Candidate(str(path), shown, 0, 0, problem=f"it cannot be opened ({error.strerror or error})")
    if not stat.S_ISREG(found.st_mode):
        return Candidate(str(path), shown, 0, 0, problem="a pipe or a device, not a file")
    if not os.access(path, os.R_OK):
        return Candidate(str(path), shown, 0, 0, problem="there is no permission to read it")
    return Candidate(str(path), shown, found.st_size, found.st_mtime_ns)


def _remote(url: str) -> Iterator[Candidate]:
    try:
        import fsspec
    except ImportError as error:
        raise UnreadableError(f"{url} needs fsspec, which is not installed.", CLUSTER_HINT) from error
    try:
        system, root = fsspec.core.url_to_fs(url)
        details = system.find(root, detail=True)
    except Exception as error:  # each driver raises its own
        raise UnreadableError(f"{url} cannot be listed: {error}.", CLUSTER_HINT) from error
    protocol = url.split("://", 1)[0]
    base = PurePosixPath(root)
    for path, info in sorted(details.items()):
        if path.endswith(SUFFIXES):
            place = PurePosixPath(path)
            shown = place.relative_to(base).as_posix() if place != base and base in place.parents else place.name
            etag = str(info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("created") or "")
            yield Candidate(f"{protocol}://{path.lstrip('/')}", shown, int(info.get("size") or 0), 0, etag)
