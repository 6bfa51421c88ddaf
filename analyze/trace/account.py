"""Where every row of a file went: used, of a kind that no figure needs, or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import polars as pl
from msgspec import Struct

from analyze.notices import Notice
from analyze.trace.classes import COUNTER_RANGES
from analyze.trace.rest import MOST_LISTS, Rest
from analyze.trace.sorting import WAITS
from analyze.trace.stretch import Stretch
from analyze.units import plural

_LISTED = 3
_SHOWN = 40
FURTHER = "in further lists"


class Account(Struct, frozen=True):
    """The rows of a file; `total` is the sum of the three others.

    Attributes:
        total: rows in the file's lists of events, as they were decoded.
        used: rows in some table that have what figures need, by table.
        unused: rows of kinds that no figure needs, by kind.
        lost: rows that figures lack, by reason.
    """

    total: int
    used: Mapping[str, int]
    unused: Mapping[str, int]
    lost: Mapping[str, int]


DERIVED = ("threads", "collective_ops")  # tables whose rows are no rows of the file, or stand in another table too


def account_for(frames: Mapping[str, pl.DataFrame], part: Stretch, left_out: Mapping[str, int]) -> Account:
    """Count what became of each row.

    Args:
        frames: the tables as the trace holds them.
        part: what was read.
        left_out: rows that are in no table, by reason; `FURTHER` is one.
    """
    untimed = {name: _without_time(frame) for name, frame in frames.items() if name not in DERIVED}
    lost = {
        "unreadable": part.damage.lost,
        **left_out,
        "without a time": sum(untimed.values()),
        **{f"odd: {what}": count for what, count in part.counts.lost.items()},
    }
    unused = {
        **part.counts.unused,
        "metadata": part.metadata,
        **{f"category {cat}" if cat else "no category": count for cat, count in part.counts.unknown.items()},
    }
    used = {name: frames[name].height - count for name, count in untimed.items()}
    total = part.events + part.damage.lost + left_out[FURTHER]
    return Account(total, used, unused, lost)


def _without_time(frame: pl.DataFrame) -> int:
    """Rows that lack what places them in time."""
    needed = [frame[name] for name in ("start_ns", "dur_ns") if name in frame.columns]
    if not any(column.null_count() for column in needed):
        return 0
    return int((needed[0].is_null() | needed[1].is_null()).sum())


def row_notices(frames: Mapping[str, pl.DataFrame], part: Stretch, blank: int) -> Iterator[Notice]:
    """What a reader has to know of rows that figures lack, and of rows that were used though they are odd.

    Of activities without a time another notice speaks (`metrics.health`), with those that were never collected.
    """
    if part.counts.lost:
        total = part.counts.lost.total()
        what = plural(total, "row is no complete row and counts", "rows are no complete rows and count")
        yield Notice("odd-rows", f"{what} in no figure: {listed(part.counts.lost)}.", total)
    if part.counts.repaired:
        total = part.counts.repaired.total()
        what = plural(total, "row with an odd category or phase counts", "rows with an odd category or phase count")
        yield Notice("rows-mended", f"{what} by what else they hold: {listed(part.counts.repaired)}.", total)
    host = {name: frame for name, frame in frames.items() if name not in ("threads", "activities")}
    untimed = {name: count for name, frame in host.items() if (count := _without_time(frame))}
    if untimed:
        total = sum(untimed.values())
        what = plural(
            total, "row has no start or no duration and counts", "rows have no start or no duration and count"
        )
        yield Notice("rows-without-time", f"{what} in no figure: {listed(untimed)}.", total)
    if blank:
        what = plural(
            blank, "memory event lacks its time or size and counts", "memory events lack time or size and count"
        )
        yield Notice("memory-rows", f"{what} in no figure.", blank)
    yield from _unknown_rows(part.counts.unknown)
    waits, ranges = part.counts.unused[WAITS], part.counts.unused[COUNTER_RANGES]
    if waits:
        text = f"{plural(waits, 'row is a wait', 'rows are waits')} of the device for an event, and not work."
        yield Notice("device-waits", text, waits)
    if ranges:
        text = (
            f"The file holds {plural(ranges, 'range')} of CUPTI's range profiler (performance counters, no times of "
            "kernels). To get kernels, record again without profiler metrics."
        )
        yield Notice("counter-ranges", text, ranges)


def further_lists(around: Rest) -> Iterator[Notice]:
    """What stands before and behind the list of events that is read."""
    further = around.lists
    if around.stray:
        what = plural(around.stray, "row belongs to no list of events and counts", "rows belong to no list and count")
        yield Notice("stray-rows", f"{what} in no figure.", around.stray)
    total = sum(further)
    if total:
        count = f"{len(further) + 1:,}" if len(further) < MOST_LISTS else f"more than {MOST_LISTS:,}"
        text = (
            f"The file holds {count} lists of events (a second `traceEvents`, or a second document). All figures are "
            f"of one of them; {plural(total, 'row')} of the others count in none."
        )
        yield Notice("further-lists", text, total)


def _unknown_rows(unknown: Counter[str]) -> Iterator[Notice]:
    total = unknown.total()
    named = {cat: count for cat, count in unknown.items() if cat}
    nameless = total - sum(named.values())
    if named:
        text = f"{total - nameless:,} rows of unknown categories count as no work: {listed(named)}."
        yield Notice("unknown-category", text, total - nameless)
    if nameless:
        what = plural(nameless, "complete row has no category and counts", "complete rows have no category and count")
        text = f"{what} as no work."
        yield Notice("no-category", text, nameless)


def listed(counts: Mapping[str, int]) -> str:
    """The most frequent of some counts, most first."""
    worst = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = ", ..." if len(worst) > _LISTED else ""
    return ", ".join(f"{what[:_SHOWN]!r} ({count:,})" for what, count in worst[:_LISTED]) + more
