"""A folder of traces as one job, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from msgspec import Struct

from analyze import schema
from analyze.errors import NotATraceError
from analyze.ranks.document import job_document, straggler_order
from analyze.ranks.engine import Failure, ForeignPool, Outcome, Progress, engine, summarise_all
from analyze.ranks.files import Candidate, candidates, is_candidate
from analyze.ranks.joined import Joined, join_ranks
from analyze.ranks.kinds import KINDS
from analyze.ranks.rounds import LeftOut, choose
from analyze.ranks.standing import Standing, standings
from analyze.ranks.store import Store
from analyze.ranks.tables import COLLECTIVES, RANKS, ROWS, WAITS
from analyze.ranks.waits import PARTS
from analyze.trace.folder import refuse_folder
from analyze.trace.foreign_formats import RECORD_HINT

if TYPE_CHECKING:
    from concurrent.futures import Executor

_ROWS_AT_ONCE = 1 << 20


class Job(Struct, frozen=True, dict=True):
    """The traces of one distributed job, one per rank, joined.

    Attributes:
        name: of the folder.
        joined: ranks, collectives and waits; None where no file has device activity and a rank.
        left_out: files that are in no figure.
        foreign: files that are no traces.
        rounds: how many recordings of the job there are, and which one this is, counted from 0.
        stored: files whose summaries were in the store already.
        unstored: why summaries could not be stored, empty where they could.
    """

    name: str
    joined: Joined | None
    left_out: tuple[LeftOut, ...]
    foreign: tuple[str, ...] = ()
    rounds: tuple[int, int] = (1, 0)
    stored: int = 0
    unstored: str = ""

    @classmethod
    def load(
        cls,
        path: str | Path | Iterable[str | Path],
        *,
        workers: int | None = None,
        store: str | Path | None = None,
        executor: Executor | None = None,
        job: str | None = None,
        round: int | None = None,  # noqa: A002 - the option's name
        progress: Progress | None = None,
    ) -> Job:
        """Read the traces of a folder, or those given, and join them.

        Args:
            path: a folder, or several files.
            workers: processes; as many as there are cores where None.
            store: folder of summaries, where files that were read before are taken from.
            executor: runs the workers in place of local processes.
            job: which of several jobs, by its number of ranks.
            round: which of several recordings of it, counted from 0.
            progress: called with files done, all files, and how many came from the store.

        Raises:
            UnreadableError: there is no such path.
            NotATraceError: there is no trace.
            SelectionError: there is no such job or round.
        """
        paths = [str(path)] if isinstance(path, str | Path) else [str(one) for one in path]
        outcome, foreign = read_all(paths, workers=workers, store=store, executor=executor, progress=progress)
        return cls.of(_name(paths), outcome, foreign, job=job, round=round)

    @classmethod
    def of(
        cls,
        name: str,
        outcome: Outcome,
        foreign: Sequence[str] = (),
        *,
        job: str | None = None,
        round: int | None = None,  # noqa: A002
    ) -> Job:
        """Join summaries; arguments as for `load`."""
        chosen = choose(outcome.summaries, job=job, round=round)
        failed = [LeftOut(one.path, one.reason) for one in outcome.failures if not one.foreign]
        others = [*foreign, *(one.path for one in outcome.failures if one.foreign)]
        return cls(
            name=name,
            joined=join_ranks(chosen.files, chosen.world) if chosen.files else None,
            left_out=tuple(sorted([*chosen.left_out, *failed], key=lambda one: one.path)),
            foreign=tuple(sorted(others)),
            rounds=chosen.rounds,
            stored=outcome.stored,
            unstored=outcome.unstored,
        )

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        """What each rank waits and makes others wait."""
        return standings(self.joined) if self.joined else ()

    @property
    def stragglers(self) -> list[Standing]:
        """Ranks from the latest on; nobody where ranks are missing."""
        return straggler_order(self.standings) if self.joined and self.joined.whole else []

    def document(self) -> dict[str, Any]:
        """All figures as plain dictionaries."""
        return job_document(self.joined, self.standings, self.left_out)

    @cached_property
    def ranks(self) -> pl.DataFrame:
        """One row per rank; schema `tables.RANKS`."""
        found = self.document()["ranks"]
        rows = [{"rank": int(rank), **values} for rank, values in found.items()]
        return pl.DataFrame(rows, schema=schema.dtypes(RANKS))

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """One row per collective; schema `tables.COLLECTIVES`."""
        if self.joined is None:
            return schema.empty(COLLECTIVES)
        joined, entries, waits, late = self.joined, self.joined.entries, self.joined.waits, self.joined.lateness
        groups = [joined.groups[at] for at in entries.group.tolist()]
        columns: dict[str, Any] = {
            "entry": np.arange(len(entries.begin)),
            "group": [group.key for group in groups],
            "index": entries.index,
            "kind": [KINDS[kind] for kind in entries.kind.tolist()],
            "dimension": [group.dimension for group in groups],
            "matched_by": [joined.how[at] for at in entries.group.tolist()],
            "ranks": entries.count,
            "missing": joined.missing,
            "split": waits.split,
            "last": waits.last,
            "last_arrival_ns": waits.arrival_ns,
            "lead_ns": waits.lead_ns,
            "decided": waits.decided,
            "data_ns": waits.data_ns,
            "inherited_ns": late.inherited_ns,
            "own_ns": late.own_ns,
            "size_bytes": joined.rates.size_bytes,
            "busbw_bytes_per_s": joined.rates.busbw,
        }
        frame = pl.DataFrame(columns).cast(schema.dtypes(COLLECTIVES))  # type: ignore[arg-type]
        only_split = ("last", "last_arrival_ns", "lead_ns", "decided", "data_ns", "inherited_ns", "own_ns")
        blame = pl.col("split") if joined.whole else pl.lit(value=False)
        shown = {name: blame if name in ("inherited_ns", "own_ns") else pl.col("split") for name in only_split}
        known = {name: pl.col(name) >= 0 for name in ("missing", "size_bytes", "busbw_bytes_per_s")}
        return frame.with_columns(pl.when(when).then(name).alias(name) for name, when in {**shown, **known}.items())

    @cached_property
    def rows(self) -> pl.DataFrame:
        """One row per rank and collective; schema `tables.ROWS`."""
        if self.joined is None:
            return schema.empty(ROWS)
        entries, waits = self.joined.entries, self.joined.waits
        split = pl.Series(waits.split[entries.of_row])
        before = self.joined.before_ns
        frame = pl.DataFrame(
            {
                "entry": entries.of_row,
                "rank": entries.rank,
                "event": entries.event,
                "start_ns": entries.start_ns,
                "end_ns": entries.end_ns,
                "wait_ns": waits.wait_ns,
                "transfer_ns": entries.end_ns - entries.start_ns - waits.wait_ns,
                "exposed_wait_ns": self.joined.exposed_wait_ns,
                **{f"before_{part}_ns": before[at] for at, part in enumerate(PARTS)},
            }
        ).cast(schema.dtypes(ROWS))  # type: ignore[arg-type]
        names = ("wait_ns", "transfer_ns", "exposed_wait_ns")
        return frame.with_columns(frame[name].set(~split, None) for name in names)

    @cached_property
    def waits(self) -> pl.DataFrame:
        """Who waits for whom, most exposed wait first; schema `tables.WAITS`."""
        if self.joined is None:
            return schema.empty(WAITS)
        entries, waits = self.joined.entries, self.joined.waits
        cells = []
        for first in range(0, max(len(entries.of_row), 1), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            frame = pl.DataFrame(
                {
                    "rank": entries.rank[rows],
                    "last": waits.last[entries.of_row[rows]],
                    "count": np.ones(len(entries.rank[rows]), np.int64),
                    "wait_ns": waits.wait_ns[rows],
                    "exposed_wait_ns": self.joined.exposed_wait_ns[rows],
                }
            )
            cells.append(frame.filter(pl.col("wait_ns") > 0).group_by("rank", "last").sum())
        grouped = pl.concat(cells).group_by("rank", "last").sum()
        ordered = grouped.sort(["exposed_wait_ns", "rank", "last"], descending=[True, False, False])
        return ordered.select(schema.names(WAITS)).cast(schema.dtypes(WAITS))  # type: ignore[arg-type]


def read_all(
    paths: Sequence[str],
    *,
    workers: int | None = None,
    store: str | Path | None = None,
    executor: Executor | None = None,
    cluster: str | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> tuple[Outcome, list[str]]:
    """Summaries of all files, and the files that are no traces.

    Args:
        paths: folders and files.
        workers: local processes.
        store: folder of summaries.
        executor: in place of local processes.
        cluster: address of a Dask scheduler.
        shard: of N parts of the files only part I.
        progress: progress.

    Raises:
        NotATraceError: there is no trace.
    """
    listed = candidates(paths)
    usable = [one for one in listed if is_candidate(one)]
    chosen = set(usable)
    foreign = [one.shown for one in listed if one not in chosen]
    if all(one.problem for one in usable):
        raise _no_trace(paths, usable)
    if shard is not None:
        usable = [one for at, one in enumerate(usable) if at % shard[1] == shard[0]]
    kept = Store(store) if store is not None else None
    if executor is not None:
        return summarise_all(usable, store=kept, pool=ForeignPool(executor), progress=progress), foreign
    with engine(len(usable), workers=workers, cluster=cluster) as made:
        return summarise_all(usable, store=kept, pool=made, progress=progress), foreign


def _no_trace(paths: Sequence[str], unread: Sequence[Candidate]) -> NotATraceError:
    """The error for paths of which none is a trace."""
    place = Path(paths[0])
    if unread:
        text = f"No file could be read; the first, {unread[0].shown}: {unread[0].problem}."
        return NotATraceError(text, "Check the paths.")
    if len(paths) == 1 and place.is_dir():
        return refuse_folder(place)
    what = f"None of the {len(paths)} inputs holds a trace." if len(paths) > 1 else f"{paths[0]} holds no trace."
    return NotATraceError(what, "Pass a folder of trace files, or several of them. " + RECORD_HINT)


def from_store(folder: str | Path) -> Outcome:
    """What a store holds, without looking at any trace.

    Raises:
        NotATraceError: it holds nothing.
    """
    store = Store(folder)
    summaries = [store.get(info) for info in store.files()]
    if not summaries:
        raise NotATraceError(f"{folder} holds no summaries.", "Fill it: analyze FOLDER --shard I/N --store DIR.")
    return Outcome(summaries, stored=len(summaries))


def _name(paths: Sequence[str]) -> str:
    if len(paths) > 1:
        return f"{len(paths)} inputs"
    return Path(paths[0]).absolute().name if "://" not in paths[0] else paths[0]


__all__ = ["Failure", "Job", "from_store", "read_all"]
