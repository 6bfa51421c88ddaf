"""Host threads that take turns: one works while the other waits, so that they shift together."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from analyze.timeline.host import Host
from analyze.timeline.intervals import Intervals, intersect, join

_MEET = 0.05  # of a thread's own time: threads that work side by side for longer are independent


def group_threads(
    host: Host, processes: pl.DataFrame, *threads: pl.Series, engine: frozenset[int] = frozenset()
) -> dict[int, int]:
    """The group of each thread: threads whose ops and API calls never run side by side are one chain.

    A training step goes back and forth between the main thread and autograd's: what delays one delays the other.
    The backward engine's threads do what another thread asks for, and are one with the busiest of their process.
    Threads of different processes of a merged file are never one.

    Args:
        host: the host side.
        processes: schema `THREADS`.
        threads: the threads that matter.
        engine: those of the backward engine.
    """
    of = dict(processes.select("thread", pl.col("process").cast(pl.String).fill_null("")).iter_rows())
    names: Iterable[int] = sorted({int(t) for series in threads for t in series.to_list()})
    work = {thread: host.states(thread).grown[-1] for thread in names}
    groups: list[tuple[str, Intervals]] = []
    found: dict[int, int] = {}
    for thread in sorted(work, key=lambda t: (t in engine, -work[t].total_ns, t)):
        mine = work[thread]
        at = next(
            (
                i
                for i, (process, group) in enumerate(groups)
                if process == of[thread]
                and (thread in engine or intersect(group, mine).total_ns <= _MEET * mine.total_ns)
            ),
            None,
        )
        if at is None:
            groups.append((of[thread], mine))
            at = len(groups) - 1
        else:
            groups[at] = (of[thread], join(groups[at][1], mine))
        found[thread] = at
    return found
