"""A file becomes a recording: one frame per kind of row, metadata, and what had to be said about the file.

The document is never held as Python objects: pieces of about 256 KiB are decoded, appended to typed columns while they
are in the cache, and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
from msgspec import Struct

from analyze.notices import Notice
from analyze.trace.account import DERIVED, FURTHER, Account, account_for, further_lists, row_notices
from analyze.trace.devices import place_on_devices
from analyze.trace.metadata import Metadata, keys_after, keys_before, select
from analyze.trace.parallel import read_in_parallel
from analyze.trace.pieces import Layout, split
from analyze.trace.programs import Programs, separate
from analyze.trace.rest import Rest
from analyze.trace.source import Source
from analyze.trace.steps import steps_are_ranges
from analyze.trace.stretch import Stretch, lists_before, read_part, too_damaged
from analyze.trace.writers import Writer, name_writer
from analyze.units import plural

_LOST_SHARE = 0.05  # more lost events than this, and the file is interleaved or worse: no figure can be trusted

OnProgress = Callable[[int, int], None]
"""Called with the bytes read so far and the size on disk, 0 where that is unknown."""


class Recording(Struct, frozen=True):
    """A file as frames.

    Attributes:
        name: base name of the file.
        path: the file as it was given, "-" for standard input.
        sha256: hash of its bytes.
        size_bytes: size on disk.
        metadata: what the document says about itself.
        frames: raw frames by name, see `analyze.schema`.
        programs: whose calls and activities are whose, None in files of one program.
        writer: who wrote it.
        cut: the document ends before its events do.
        account: where every row of the file went.
        notices: what was odd in the file.
        content_key: hash of its unpacked bytes, empty where it was not asked for.
    """

    name: str
    path: str
    sha256: str
    size_bytes: int
    metadata: Metadata
    frames: dict[str, pl.DataFrame]
    programs: Programs | None
    writer: Writer
    cut: bool
    account: Account
    notices: tuple[Notice, ...]
    content_key: str = ""


def read(
    path: str | Path,
    *,
    jobs: int | None = None,
    trusted: bool = False,
    on_progress: OnProgress | None = None,
    key: bool = False,
) -> Recording:
    """Read a Chrome trace of the PyTorch profiler, plain or compressed, "-" for standard input.

    Args:
        path: the file.
        jobs: processes to read with; by the file's size where None. Compressed files are read by one.
        trusted: let a compressed file grow without limit.
        on_progress: progress.
        key: hash the unpacked bytes too.

    Raises:
        UnreadableError: the file cannot be opened or unpacked.
        NotATraceError: the content is something else.
        DamagedTraceError: too little of it can be read to trust any figure.
    """
    source, layout = Source(path, trusted=trusted, key=key), Layout("")
    layout.name = source.name
    whole = source.whole_bytes
    progress = (lambda _size: on_progress(source.size_bytes, whole)) if on_progress else None
    part = read_in_parallel(source, layout, jobs, progress)
    if part is None:
        source, layout = Source(path, trusted=trusted, key=key), Layout(source.name)
        part = read_part(split(source.blocks(), layout), layout, to_the_end=True, on_progress=progress)
    return _finish(source, layout, part)


def _finish(source: Source, layout: Layout, part: Stretch) -> Recording:
    frames, programs = separate(part.tables.frames(), part.announced)
    damage = part.damage
    read_rows = sum(frame.height for name, frame in frames.items() if name not in DERIVED)
    if damage.lost > _LOST_SHARE * (read_rows + damage.lost) and damage.lost > 1:
        raise too_damaged(source.name, damage, f"{read_rows + damage.lost:,}")
    writer = name_writer(source.name, frames, part)
    before, after = keys_before(layout.head), keys_after(bytes(part.rest.text)) if part.rest else {}
    around = lists_before(layout) + (part.rest or Rest(b","))
    odd = damage.odd + part.tables.odd
    metadata = select({**(before or {}), **(after or {}), **part.keys_after}, odd)
    placed = place_on_devices(frames["activities"], programs, tuple(device.id for device in metadata.devices))
    programs = placed.programs
    memory = frames["memory"].drop_nulls(["time_ns", "size_bytes"])
    blank = frames["memory"].height - memory.height
    frames = steps_are_ranges({**frames, "activities": placed.activities, "memory": memory})
    values = odd.notice()
    return Recording(
        name=source.name,
        path=source.path,
        sha256=source.sha256,
        size_bytes=source.size_bytes,
        metadata=metadata,
        frames=frames,
        programs=programs,
        writer=writer,
        cut=damage.cut or source.cut is not None,
        content_key=source.content_key,
        account=account_for(
            frames,
            part,
            {FURTHER: around.rows, "without a device": placed.lost, "memory without a time or size": blank},
        ),
        notices=(
            *([programs.notice()] if programs else []),
            *_notices(source, part, readable_head=layout.bare_list or before is not None),
            *further_lists(around),
            *row_notices(frames, part, blank),
            *placed.notices,
            *([values] if values else []),
        ),
    )


def _notices(source: Source, part: Stretch, *, readable_head: bool) -> Iterator[Notice]:
    damage = part.damage
    if source.cut or damage.cut:
        why = source.cut or "the document ends inside its list of events"
        yield Notice("file-cut", f"The file is cut: {why}. All figures cover the first part only.", 1)
    if damage.lost:
        text = (
            f"{plural(damage.lost, 'event')} could not be read and are missing from all figures, such as "
            f"{damage.example}."
        )
        yield Notice("events-lost", text, damage.lost)
    if damage.repaired:
        text = f"{damage.repaired:,} events were not valid JSON and were repaired; their names are approximate."
        yield Notice("events-mended", text, damage.repaired)
    if not readable_head:
        text = "The metadata before the events cannot be read: device names and flags are missing."
        yield Notice("metadata-lost", text, 1)
