"""A trace with tracks of the ledger, of findings and of amounts over time in it, for Perfetto and chrome://tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from analyze.errors import NotATraceError, OutputError, SelectionError
from analyze.report.build import build_report
from analyze.report.files import refuse_no_trace, write_trace
from analyze.report.share.original import HINT, Original
from analyze.report.share.tracks import Tracks, tracks_of
from analyze.report.share.viewer import rows_of
from analyze.trace import Trace
from analyze.trace.classes import TRACKS
from analyze.trace.stream import is_stream


class Exported(Struct, frozen=True):
    """What was written.

    Attributes:
        rows: rows that were added.
        tracks: what they are.
        cut: the trace ends early, and so does its copy.
    """

    rows: int
    tracks: Tracks
    cut: bool

    def lines(self) -> Iterator[str]:
        """What was added, a line each."""
        yield f"{self.rows:,} rows added in front of the rows of the trace, which stay as they are."
        yield from (f"  {line}" for line in self.tracks.lines)
        if self.cut:
            yield "The trace ends early, and so does its copy: some viewers refuse such files."


def export_file(
    path: str | Path,
    output: str | Path,
    *,
    steps: tuple[int | None, int | None] | None = None,
    range: str | None = None,  # noqa: A002 - the option's own name
    force: bool = False,
    trusted: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a copy of a trace with tracks added to it. Tracks that an earlier run added are replaced.

    Args:
        path: the trace; it is read more than once, so it must be a file.
        output: where to, a .json or a .json.gz file.
        steps: first and last profiler step that the tracks are about, the last one excluded.
        range: name of a user range that they are about instead.
        force: replace any file.
        trusted: let a compressed file grow without limit.
        on_progress: see `Trace.load`.

    Raises:
        SelectionError: the input can be read only once, or there are no such steps or range.
        NotATraceError: another program has rewritten the tracks that an earlier run added.
        OutputError: the place is somebody else's file, or there is nothing to add.
    """
    if is_stream(path):
        raise SelectionError("The trace is read more than once, and a pipe can be read only once.", "Pass a file.")
    refuse_no_trace(output, force=force)
    original = Original(path, trusted=trusted)
    trace = Trace.load(path, trusted=trusted, on_progress=on_progress)
    if trace.recording.account.unused.get(TRACKS) and not original.is_ours():
        raise NotATraceError(f"{trace.name} has tracks of `analyze export` that another program rewrote.", HINT)
    tracks, cut = tracks_of(build_report(trace, steps=steps, range=range)), trace.recording.cut
    if not tracks.groups:
        what = f"{trace.name} has no GPU activity and no memory events: there is nothing to add to it."
        raise OutputError(what, "Open it as it is: analyze open TRACE --plain")
    del trace  # the copy needs none of it
    numbers, rows = original.free_numbers(), [0]

    def fill(file: IO[bytes]) -> None:
        rows[0] = original.copy(rows_of(tracks.groups, numbers), file)

    write_trace(output, None, fill, force=force)
    return Exported(rows[0], tracks, cut)
