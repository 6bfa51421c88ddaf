"""Reports into files: the format by suffix, whole or not at all, never over somebody else's file."""

from __future__ import annotations

import gzip
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from analyze.errors import OutputError
from analyze.inert import printable
from analyze.report.about import TOOL
from analyze.report.formats import find_format, format_of

if TYPE_CHECKING:
    from analyze.report.report import Document

_MARK_BYTES = 1 << 14  # the generator line is the last one, and shorter than this
_GENERATOR = rf"{TOOL} [^\s,]+, report schema \d+\.\d+\b[^\n]*"
_CLOSES = re.compile(rf"(?:\A|\n)(?:{_GENERATOR}|<sub>{_GENERATOR}</sub>|<!-- {_GENERATOR} -->)\s*\Z")
_STDIN = "-"


def render(document: Document, format: str) -> str:  # noqa: A002 - the option's own name
    """The document in a format: terminal, md, html or json.

    Raises:
        OutputError: no such format.
    """
    return find_format(format).render(document)


def write(document: Document, path: str | Path, *, force: bool = False) -> None:
    """Write a document in the format that the suffix asks for (.txt, .md, .html, .json).

    Args:
        document: a report or a comparison.
        path: where to; a file there is replaced when it is a report of this program. A symbolic link is followed.
        force: replace any file.

    Raises:
        OutputError: unknown suffix, somebody else's file, or no way to write there.
    """
    form = format_of(path)
    text = form.render(document)
    if form.name == "terminal":  # on a screen the footer is left out; in a file it says who made it, and from what
        text += f"\n{printable(document.page.footer)}\n"
    write_text(text, path, force=force)


def write_text(text: str, path: str | Path, *, force: bool = False) -> None:
    """Write a text whole or not at all, over nothing that this program did not make.

    What is no plain file, such as a pipe or /dev/null, is written to as it is.

    Raises:
        OutputError: somebody else's file, or no way to write there.
    """
    refuse_others(path, force=force)
    place = Path(_real(path))
    try:
        with _replacing(place) if _is_replaceable(place) else place.open("wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.", "Check the folder.") from error


def refuse_others(path: str | Path, *, force: bool = False) -> None:
    """Refuse a place that holds what this program did not make, before a long file is read.

    Raises:
        OutputError: somebody else's file, a folder, a file that may not be written.
    """
    if not str(path):
        raise OutputError("The name of an output is empty.", "Name a file.")
    place = Path(path)
    try:
        if place.is_dir():
            raise OutputError(f"{path} is a folder.", "Name a file in it.")
        if not place.is_file():
            return
    except OSError as error:  # a name that is too long, for one
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.", "Choose another name.") from error
    if not os.access(place, os.W_OK):
        raise OutputError(f"{path} may not be written.", "Check its permissions, or choose another name.")
    if not force and not _made_by_us(place):
        raise OutputError(f"{path} exists and is no report of {TOOL}.", "Choose another name, or pass --force.")


def refuse_no_folder(folder: str | Path) -> None:
    """Refuse a place for several files that is no folder, or may not be written; one that is missing can be made.

    Raises:
        OutputError: it is a file, or a folder that may not be written.
    """
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise OutputError(f"{folder} is no folder.", "Name a folder.")
    if place.is_dir() and not os.access(place, os.W_OK):
        raise OutputError(f"{folder} may not be written.", "Check its permissions, or choose another name.")


def refuse_inputs(outputs: Sequence[str], inputs: Sequence[str]) -> None:
    """Refuse outputs that are an input, and two outputs that are one file, by whatever names and links.

    Raises:
        OutputError: one of them is.
    """
    read = [(name, found) for name in inputs if (found := _status(name)) is not None]
    places: dict[str, str] = {}
    for output in outputs:
        there = _status(output)
        for name, found in read:
            if there is not None and os.path.samestat(found, there) and not stat.S_ISCHR(there.st_mode):
                what = "standard input" if name == _STDIN else name
                raise OutputError(f"{output} is the input {what} itself.", "Choose another name.")
        same = places.setdefault(_real(output), output)
        if same is not output and (there is None or stat.S_ISREG(there.st_mode)):
            raise OutputError(f"{same} and {output} are one file.", "Give each output a name of its own.")


def _status(path: str) -> os.stat_result | None:
    try:
        return os.fstat(sys.stdin.fileno()) if path == _STDIN else Path(path).stat()
    except (OSError, ValueError, AttributeError):  # not there, or standard input is closed
        return None


def _real(path: str | Path) -> str:
    """The path behind all links."""
    try:
        return os.path.realpath(path)
    except OSError:  # the working folder was deleted
        return str(path)


def _is_replaceable(place: Path) -> bool:
    """Whether a file may be made beside the place and given its name: plain files in folders that can be written."""
    return (not place.exists() or place.is_file()) and (os.access(place.parent, os.W_OK) or not place.exists())


@contextmanager
def _replacing(place: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place when the block ends well; its mode is the old one's, or follows the umask."""
    half = place.with_name(f".{place.name[:_NAME_KEPT]}.{os.urandom(4).hex()}")
    try:
        with half.open("xb") as file:
            yield file
        with suppress(FileNotFoundError):
            half.chmod(stat.S_IMODE(place.stat().st_mode))
        half.replace(place)
    except BaseException:
        half.unlink(missing_ok=True)
        raise


def write_trace(
    path: str | Path,
    made: str | None,
    fill: Callable[[IO[bytes]], None],
    check: Callable[[Path], None] = lambda _half: None,
    *,
    force: bool = False,
) -> None:
    """Write a trace whole or not at all, packed where its name ends with .gz.

    Args:
        path: where to, a .json or a .json.gz file.
        made: what was done to it, a word; it begins the file, after the name of this program. With None, `fill`
            writes a document from its beginning, with its `mark`, or as a list of events that begins with one of ours.
        fill: writes the document's members, and the brace that ends it.
        check: raises where the finished file is not to take its place.
        force: replace any file.

    Raises:
        OutputError: another suffix, somebody else's file, or no way to write there.
    """
    refuse_no_trace(path, force=force)
    try:
        with _replacing(Path(_real(path))) as raw:
            if str(path).lower().endswith(".gz"):
                with gzip.GzipFile("", "wb", _PACKING, raw, mtime=0) as packed:
                    packed.write(b"" if made is None else mark(made))
                    fill(packed)  # type: ignore[arg-type]
            else:
                raw.write(b"" if made is None else mark(made))
                fill(raw)
            raw.flush()
            check(Path(raw.name))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.", "Check the folder.") from error


def refuse_no_trace(path: str | Path, *, force: bool = False) -> None:
    """Refuse a place where no trace can be written, before a long file is read.

    Raises:
        OutputError: another suffix, somebody else's file, or no folder.
    """
    if not str(path).lower().endswith((".json", ".json.gz")):
        raise OutputError(f"{path}: a trace is a .json or a .json.gz file.", "Name one: -o trace.json.gz")
    if not Path(path).absolute().parent.is_dir():
        raise OutputError(f"{path}: there is no such folder.", "Create it first.")
    if Path(path).exists() and not Path(path).is_file():
        raise OutputError(f"{path} is no plain file.", "A trace is read again before it is kept: name a file.")
    refuse_others(path, force=force)


_PACKING = 6
_MADE = b'{"madeBy": "' + TOOL.encode() + b", "
_MARK = re.compile(re.escape(_MADE) + rb'\w+",\n')
_OURS = b'[\n{"ph": "M", "cat": "' + TOOL.encode() + b'", '  # begins a document that is nothing but a list of events


def mark(made: str) -> bytes:
    """The beginning of a trace that this program wrote, with its first key."""
    return _MADE + made.encode() + b'",\n'


def unmarked(head: bytes) -> bytes:
    """The beginning of a document without such a key."""
    return _MARK.sub(b"{", head, count=1) if head.startswith(_MADE) else head


def _is_trace_of_ours(place: Path) -> bool:
    """Whether a file is a trace that this program wrote."""
    with suppress(OSError, EOFError, zlib.error), place.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        begin = (gzip.GzipFile(fileobj=raw) if packed else raw).read(max(len(_MADE), len(_OURS)))
        return begin.startswith((_MADE, _OURS))
    return False


_NAME_KEPT = 60  # characters: with the rest it stays below the 255 bytes of a name


def _made_by_us(place: Path) -> bool:
    """Whether a file is a report: JSON by its structure, other formats by the generator line that closes them."""
    from analyze.report.stored import is_report, read_stored

    try:
        size = place.stat().st_size
        with place.open("rb") as file:
            file.seek(max(size - _MARK_BYTES, 0))
            last = file.read().decode("utf-8", "replace")
    except OSError:
        return False
    if not size or _CLOSES.search(last):
        return True
    if _is_trace_of_ours(place):
        return True
    stored = read_stored(place)
    return stored is not None and is_report(stored)
