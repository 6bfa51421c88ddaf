"""Several programs in one file, appended one behind the other: whose calls and activities are whose.

Their ids repeat, and every kernel may stand under the same pid. The rows that name a program's processes part the file:
between two blocks of them lie the rows of one program, whether the blocks come before or behind its other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from msgspec import Struct

from analyze import schema
from analyze.arrays import Int64
from analyze.notices import Notice
from analyze.units import plural

UNKNOWN = -1
_THREADED = ("ops", "runtime", "ranges", "frames", "memory")
_NAMED = 4


class Announcement(Struct, frozen=True):
    """A row that names a process.

    Attributes:
        pid: the process, as recorded.
        rows_before: per table the rows that stand before it in the file.
    """

    pid: str
    rows_before: dict[str, int]

    def behind(self, rows: Mapping[str, int]) -> Announcement:
        """The same row in a document that has so many rows of each table before this stretch."""
        return Announcement(self.pid, {name: count + rows[name] for name, count in self.rows_before.items()})


class Programs(Struct, frozen=True):
    """The programs of a file whose ids repeat.

    Attributes:
        names: their processes as recorded.
        of_call: program of each row of `runtime`.
        of_activity: program of each row of `activities`, `UNKNOWN` where nothing says whose it is.
        repeated: ids that calls of several programs carry.
    """

    names: tuple[str, ...]
    of_call: Int64
    of_activity: Int64
    repeated: int

    @property
    def lost(self) -> int:
        """Activities that may be any program's."""
        return int((self.of_activity == UNKNOWN).sum())

    def notice(self) -> Notice:
        """What a reader has to know."""
        count = len(self.names)
        shown = ", ".join(self.names[:_NAMED]) + (", ..." if count > _NAMED else "")
        what = f"{count} programs (processes {shown}) have the same ids: {self.repeated:,} correlation ids repeat."
        if count == 2:
            what = (
                f"The file holds two processes with the same ids ({shown}): {self.repeated:,} correlation ids repeat."
            )
        lost = self.lost
        if not lost:
            how = "Each activity is linked to launches of its own program only, by its place in the file."
        elif lost == len(self.of_activity):
            how = "Nothing says whose activities are whose, so those with such an id are linked to no launch."
        else:
            how = f"Nothing says whose {plural(lost, 'activity is', 'activities are')}: they are linked to no launch."
        shared = "What they run on one device number counts as the work of one GPU."
        return Notice("repeated-ids", f"{what} {how} {shared}", lost or self.repeated)


def separate(
    frames: dict[str, pl.DataFrame], announced: Sequence[Announcement]
) -> tuple[dict[str, pl.DataFrame], Programs | None]:
    """Find the programs of a file whose ids repeat; files of one program, or without repeated ids, have none.

    Args:
        frames: the tables.
        announced: rows that name processes, in order of the file.

    Returns:
        The tables, with threads of their own for programs whose processes carry one number, and the programs.
    """
    edges = _edges(announced)
    frames = _part_threads(frames, announced, edges)
    named = frames["threads"].filter(pl.col("thread").is_in(frames["runtime"]["thread"].unique().implode()))
    if named.select("process", "pid").n_unique() < 2:
        return frames, None
    threads = named.select("thread", "process", "pid", program=pl.struct("process", "pid").rank("dense").cast(pl.Int64))
    calls = (
        frames["runtime"].select("thread", "correlation").join(threads, on="thread", how="left", maintain_order="left")
    )
    repeated = (
        calls.drop_nulls("correlation")
        .group_by("process", "correlation")
        .agg(pl.col("program").n_unique())
        .filter(pl.col("program") > 1)
        .select("process", "correlation")
    )
    if not repeated.height:
        return frames, None
    of_call = calls["program"].to_numpy()
    of_activity = _owners(frames["activities"], calls, repeated, edges)
    names = tuple(threads.unique("program").sort("program")["pid"])
    return frames, Programs(names, of_call, of_activity, repeated.height)


def _edges(announced: Sequence[Announcement]) -> list[dict[str, int]]:
    """Where in each table the stretches of the file begin: at every block of announcements."""
    found: list[dict[str, int]] = []
    for announcement in announced:
        if not found or announcement.rows_before != found[-1]:
            found.append(announcement.rows_before)
    return found


def _stretches(edges: Sequence[dict[str, int]], table: str, rows: int) -> Int64:
    """Number of the stretch that each row of a table lies in."""
    begin = np.array([edge[table] for edge in edges], dtype=np.int64)
    return np.searchsorted(begin, np.arange(rows), side="right")


def _owners(
    activities: pl.DataFrame, calls: pl.DataFrame, repeated: pl.DataFrame, edges: Sequence[dict[str, int]]
) -> Int64:
    """Program of each activity: the only one with calls in its stretch, else the only one with its id."""
    at = _stretches(edges, "runtime", calls.height)
    pairs = np.unique(np.stack([at, calls["program"].to_numpy()], axis=1), axis=0)
    alone = np.full(len(edges) + 1, UNKNOWN, dtype=np.int64)
    for stretch, program in pairs[np.isin(pairs[:, 0], *_once(pairs[:, 0]))].tolist():
        alone[stretch] = program
    placed = alone[_stretches(edges, "activities", activities.height)]
    keys = ["process", "correlation"]
    by_id = calls.drop_nulls("correlation").unique(keys, keep="first").join(repeated, on=keys, how="anti")
    known = activities.select(keys).join(by_id.select(*keys, "program"), on=keys, how="left", maintain_order="left")
    return np.where(placed != UNKNOWN, placed, known["program"].fill_null(UNKNOWN).to_numpy())


def _once(values: Int64) -> tuple[Int64]:
    """The values that occur once."""
    found, counts = np.unique(values, return_counts=True)
    return (found[counts == 1],)


def _part_threads(
    frames: dict[str, pl.DataFrame], announced: Sequence[Announcement], edges: Sequence[dict[str, int]]
) -> dict[str, pl.DataFrame]:
    """Give a process that is announced in several stretches, with ids that repeat, one set of threads in each."""
    places = {(one.pid, tuple(one.rows_before.values())) for one in announced}
    again = {pid for pid, _ in places if sum(other == pid for other, _ in places) > 1}
    if not again:
        return frames
    threads = frames["threads"]
    mine = threads.filter(pl.col("pid").is_in(again))
    runtime = frames["runtime"].select("thread", "correlation")
    runtime = runtime.with_columns(at=pl.Series(_stretches(edges, "runtime", runtime.height)))
    calls = runtime.join(mine.select("thread", "pid"), on="thread").drop_nulls("correlation")
    twice = calls.group_by("pid", "correlation").agg(pl.col("at").n_unique()).filter(pl.col("at") > 1)
    mine = mine.filter(pl.col("pid").is_in(twice["pid"].unique().implode()))
    if not mine.height:
        return frames
    frames = dict(frames)
    code = {thread: i for i, thread in enumerate(mine["thread"])}
    last = 0
    for name in _THREADED:
        table = frames[name]
        found = table["thread"].to_numpy().copy()
        stretch = _stretches(edges, name, table.height)
        for thread, i in code.items():
            moved = (found == thread) & (stretch > 0)
            last = max(last, int(stretch[moved].max(initial=0)))
            found[moved] = threads.height + (stretch[moved] - 1) * len(code) + i
        frames[name] = table.with_columns(thread=pl.Series(found, dtype=pl.UInt32))
    frames["threads"] = _numbered(threads, mine, last)
    return frames


def _numbered(threads: pl.DataFrame, mine: pl.DataFrame, programs: int) -> pl.DataFrame:
    """The threads, and those of the later programs behind them."""
    later = [
        mine.with_columns(
            thread=(pl.int_range(pl.len()) + threads.height + i * mine.height).cast(pl.UInt32),
            pid=pl.col("pid") + f" ({i + 2})",
        )
        for i in range(programs)
    ]
    return pl.concat([threads, *later]).select(schema.names(schema.THREADS))
