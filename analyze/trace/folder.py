"""A folder in place of a file: which traces lie in it or below it."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from analyze.errors import NotATraceError
from analyze.inert import printable
from analyze.trace.foreign_formats import RECORD_HINT
from analyze.trace.unpack import GZIP_MAGIC

_LISTED = 8
_LOOKED_AT = 200  # files that are opened
_WALKED = 20_000  # files that are seen
_FOLDERS = 5_000
_HEAD_BYTES = 1 << 14
_GZIP = 31  # zlib: window of 2^15, gzip header and trailer
_SUFFIXES = (".json", ".json.gz")
_TRACE = re.compile(rb'\s*\[\s*\{[^}]*"ph"\s*:|"(?:traceEvents|schemaVersion|deviceProperties)"\s*:')
_TLPARSE = ("compile_directory.json", "raw.jsonl")
_SNAPSHOTS = (".pickle", ".pkl")


def refuse_folder(place: Path) -> NotATraceError:
    """The error for a folder: it names the traces in it, else those below it, by their content."""
    candidates = list(islice(_files(place), _WALKED))
    looked_at = candidates[:_LOOKED_AT]
    found = [path for path in looked_at if is_trace(path)]
    if found:
        listed = "".join(f"\n  {printable(str(path))}" for path in found[:_LISTED])
        more = f"\n  and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        return NotATraceError(f"{place} is a folder.", f"Pass one of its files:{listed}{more}")
    if all((place / name).is_file() for name in _TLPARSE):
        what = "a folder of tlparse (logs of torch.compile, no times on a device)"
    elif not candidates and (snapshot := next(_files(place, _SNAPSHOTS), None)):
        what = "a folder of pickles, and of no trace"
        return NotATraceError(f"{place} is {what}.", f"Pass one memory snapshot: {printable(str(snapshot))}")
    elif not candidates:
        what = "a folder without .json or .json.gz files"
    elif len(candidates) > len(looked_at):
        what = f"a folder; none of the first {len(looked_at):,} .json files in it is a trace"
    else:
        what = "a folder without a trace: none of its .json files holds profiler events"
    return NotATraceError(f"{place} is {what}.", "Pass one trace file. " + RECORD_HINT)


def _files(place: Path, suffixes: tuple[str, ...] = _SUFFIXES) -> Iterator[Path]:
    """JSON files, those of each folder in order of their names and before those below it."""
    for folder, below, names in islice(os.walk(place), _FOLDERS):
        below.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(suffixes))


def is_trace(path: Path) -> bool:
    """Whether a file begins as a profiler trace does."""
    try:
        if not path.is_file():  # a pipe would keep its reader waiting
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(GZIP_MAGIC):
            head = zlib.decompressobj(wbits=_GZIP).decompress(head, _HEAD_BYTES)
    except (OSError, zlib.error):
        return False
    return _TRACE.search(head) is not None and b'"dynamo_timed"' not in head
