"""A trace into a file that can be given away: written row by row, then proven to have the figures of the original."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from analyze.errors import SelectionError
from analyze.report.files import refuse_no_trace, write_trace
from analyze.report.redact.policy import Redaction
from analyze.report.redact.traces import names_of_calls
from analyze.report.share.keys import shared_keys
from analyze.report.share.kinds import Taken, sentences
from analyze.report.share.proof import Numbers, figures_of, prove_equal
from analyze.report.share.rows import Row, Rows
from analyze.report.share.shared import Sharing
from analyze.trace import Trace
from analyze.trace.classes import TRACK_CATEGORY
from analyze.trace.stream import is_stream
from analyze.units import plural

_ADDED = msgspec.Raw(msgspec.json.encode(TRACK_CATEGORY))  # `analyze export` makes them anew, of a report's own words


class Shared(Struct, frozen=True):
    """What was done.

    Attributes:
        rows: rows written.
        figures: figures that are the same in both files.
        taken: what was taken out.
        pseudonyms: how many different texts have a pseudonym, by their kind.
    """

    rows: int
    figures: int
    taken: Taken
    pseudonyms: dict[str, int]

    def lines(self) -> Iterator[str]:
        """What was done, a line each; no word of what was taken out."""
        yield f"{plural(self.rows, 'row')}; all {self.figures:,} figures of the report are the same as in the original."
        yield from sentences(self.taken, self.pseudonyms)
        yield "Kept: the names of kernels, ops and API calls, and the numbers of processes and threads."


def redact_file(
    path: str | Path, output: str | Path, *, names: bool = False, force: bool = False, trusted: bool = False
) -> Shared:
    """Write a redacted copy of a trace.

    Args:
        path: the trace; it is read twice, so it must be a file.
        output: where to, a .json or a .json.gz file.
        names: give pseudonyms to user ranges, modules and functions too.
        force: replace any file.
        trusted: let a compressed file grow without limit.

    Raises:
        SelectionError: the input can be read only once.
        DamagedTraceError: the trace is no valid JSON to its end.
        OutputError: the place is somebody else's file, or a figure would change; then nothing is written.
    """
    if is_stream(path):
        raise SelectionError("The trace is read twice, and a pipe can be read only once.", "Pass a file.")
    refuse_no_trace(output, force=force)
    sharing, counts = Sharing(Redaction(names=names)), [0, 0]
    before, twice = _first_look(path, trusted=trusted)
    sharing.redaction.keep(twice)

    def fill(file: IO[bytes]) -> None:
        counts[0] = _write(Rows(path, trusted=trusted), sharing, file)

    def check(half: Path) -> None:
        counts[1] = prove_equal(before, figures_of(Trace.load(half, trusted=True)))

    write_trace(output, "redacted", fill, check, force=force)
    return Shared(counts[0], counts[1], sharing.taken, dict(sharing.redaction.given()))


def _first_look(path: str | Path, *, trusted: bool) -> tuple[Numbers, frozenset[str]]:
    """The figures, and the names that calls share. The trace itself is let go before the copy is written."""
    trace = Trace.load(path, trusted=trusted)
    return figures_of(trace), names_of_calls(trace.recording)


def _write(rows: Rows, sharing: Sharing, file: IO[bytes]) -> int:
    """The document without what has to go; the number of its rows."""
    count, first = 0, True
    for piece in rows.pieces():
        if first:
            file.write(_members(_keys(rows.before, sharing)) + b'"traceEvents": [\n')
        texts = [msgspec.json.encode(sharing.row(row)) for row in piece if row.get("cat") != _ADDED]
        file.write((b",\n" if count and texts else b"") + b",\n".join(texts))
        count, first = count + len(texts), False
    after = _keys(rows.after, sharing)
    file.write(b"\n]," + _members(after) + b'"traceName": "trace.json"}\n')
    return count


def _keys(keys: Row, sharing: Sharing) -> dict[str, Any]:
    kept = shared_keys({key: raw for key, raw in keys.items() if key != _NAME}, sharing.redaction)
    for key, raw in keys.items():
        text = f"{key}={bytes(raw).decode('utf-8', 'replace')}"
        if key == _NAME:
            sharing.taken.look(text)
        elif key not in kept:
            sharing.taken.drop("top-level key", text)
        elif kept[key] != msgspec.json.decode(raw):
            sharing.taken.change("top-level key", text)
    return kept


_NAME = "traceName"  # the place that the trace was written to; it gets another


def _members(keys: dict[str, Any]) -> bytes:
    return b"".join(
        msgspec.json.encode(key) + b": " + msgspec.json.encode(value) + b",\n" for key, value in keys.items()
    )
