"""A job of many ranks as pictures: collectives of all ranks in common time, and who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from analyze import palette
from analyze.arrays import Int64
from analyze.report.html.columns import Names, deltas
from analyze.units import duration

_SLICES = 100_000
_RANKS = 64
KIND_COLOURS = {
    "all_reduce": palette.ORANGE,
    "reduce_scatter": palette.SKY,
    "all_gather": palette.GREEN,
    "all_to_all": palette.PURPLE,
    "barrier": palette.GREY,
    "send": palette.BLUE,
    "recv": palette.VERMILION,
}
_OTHER = palette.YELLOW
_WAIT = {
    "id": "sync",
    "label": "wait",
    "cause": "this rank was in the collective, and the last rank had not arrived",
}


class HeatCell(Struct, frozen=True):
    """What one rank waited for another: places in the picture, the share of the largest, and a sentence."""

    row: int
    column: int
    share: float
    title: str


class HeatMap(Struct, frozen=True):
    """Ranks by ranks: rows wait, columns came last.

    Attributes:
        ranks: those that are shown.
        cells: the waits that are not 0.
        rows: who, for whom, how often, how long; most first.
        left_out: ranks that are not shown.
    """

    ranks: tuple[int, ...]
    cells: tuple[HeatCell, ...]
    rows: tuple[tuple[int, int, int, int], ...]
    left_out: int


def heat_map(document: dict[str, Any]) -> HeatMap | None:
    """Who waits for whom, None where nothing can be told.

    Args:
        document: the figures of a job, see `ranks.document`.
    """
    waits: dict[tuple[int, int], list[int]] = {}
    for one in document["collectives"]:
        for rank, wait in one.get("wait_ns", {}).items():
            if wait:
                found = waits.setdefault((int(rank), one["last"]), [0, 0])
                found[0] += 1
                found[1] += wait
    if not waits:
        return None
    ranks = [int(rank) for rank in document["ranks"]]
    shown = sorted(_busiest(ranks, waits))
    place, most = {rank: i for i, rank in enumerate(shown)}, max(ns for _, ns in waits.values())
    cells = tuple(
        HeatCell(
            place[who], place[last], ns / most,
            f"Rank {who} waits {duration(ns)} for rank {last}, in {count:,} collectives",
        )
        for (who, last), (count, ns) in sorted(waits.items())
        if who in place and last in place
    )  # fmt: skip
    rows = sorted(((who, last, count, ns) for (who, last), (count, ns) in waits.items()), key=lambda row: -row[3])
    return HeatMap(tuple(shown), cells, tuple(rows), len(ranks) - len(shown))


def _busiest(ranks: Sequence[int], waits: dict[tuple[int, int], list[int]]) -> list[int]:
    """The ranks that wait, or are waited for, most."""
    amount = dict.fromkeys(ranks, 0)
    for (who, last), (_, ns) in waits.items():
        amount[who] = amount.get(who, 0) + ns
        amount[last] = amount.get(last, 0) + ns
    return sorted(amount, key=lambda rank: -amount[rank])[:_RANKS]


class _Row(Struct, frozen=True):
    """One rank's kernel of a collective."""

    rank: int
    start_ns: int
    dur_ns: int
    wait_ns: int
    last: int
    kind: str
    name: str


def ranks_scene(document: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """The scene of a job, and what had to be left out; None without collectives.

    A rank is a lane of its collectives, and below it a lane of its waits, each with the rank that came last.

    Args:
        document: the figures of a job, see `ranks.document`.
    """
    rows = sorted(_rows(document), key=lambda row: row.start_ns)
    if not rows:
        return None
    left_out, rows = max(len(rows) - _SLICES, 0), rows[:_SLICES]
    origin, end = rows[0].start_ns, max(row.start_ns + row.dur_ns for row in rows)
    kinds = sorted({row.kind for row in rows})
    names = Names()
    ranks = [int(rank) for rank in document["ranks"]]
    place = {rank: i for i, rank in enumerate(ranks)}
    devices = [_rank(rank, [row for row in rows if row.rank == rank], origin, kinds, names, place) for rank in ranks]
    note = f"The last {left_out:,} kernels of collectives are not drawn." if left_out else ""
    nothing: dict[str, Any] = {"parent": [], "name": [], "kind": [], "calls": [], "host": [], "device": []}
    content = {
        "origin": str(origin),
        "window": [0, end - origin],
        "categories": [{"id": kind, "label": kind, "colour": KIND_COLOURS.get(kind, _OTHER)} for kind in kinds],
        "states": [_WAIT],
        "devices": devices,
        "threads": [],
        "stacks": nothing,
        "memory": [],
        "steps": {"name": [], "start": [], "dur": []},
        "places": {},
        "names": names.texts,
    }
    return content, note


def _rows(document: dict[str, Any]) -> list[_Row]:
    found = []
    for one in document["collectives"]:
        size = f", {one['bytes']:,} bytes" if one.get("bytes") is not None else ""
        name = f"{one['kind']} {one['index']} of {one['dimension'] or one['group']}{size}"
        for rank, start in one["start_ns"].items():
            wait = one.get("wait_ns", {}).get(rank, 0)
            found.append(_Row(int(rank), start, one["duration_ns"][rank], wait, one.get("last", -1), one["kind"], name))
    return found


def _rank(
    rank: int, rows: list[_Row], origin: int, kinds: list[str], names: Names, place: dict[int, int]
) -> dict[str, Any]:
    waits = [row for row in rows if row.wait_ns > 0]
    blank = [-1] * len(rows)
    stream = {
        "stream": None,
        "label": f"rank {rank}",
        "start": deltas(_column([row.start_ns - origin for row in rows])),
        "dur": [row.dur_ns for row in rows],
        "count": [1] * len(rows),
        "name": names.numbers([row.name for row in rows]),
        "category": [kinds.index(row.kind) for row in rows],
        **dict.fromkeys(("node", "shape", "detail", "thread"), blank),
        **{name: [0] * len(rows) for name in ("lag", "call")},
    }
    gaps = {
        "label": f"rank {rank} waits",
        "start": deltas(_column([row.start_ns - origin for row in waits])),
        "dur": [row.wait_ns for row in waits],
        "state": [0] * len(waits),
        "thread": [-1] * len(waits),
        "launch": [0] * len(waits),
        "last": [place.get(row.last, -1) for row in waits],
        "note": names.numbers([f"for rank {row.last}, in {row.name}" for row in waits]),
        "parts": {},
    }
    return {"label": f"rank {rank}", "window": [0, 1], "streams": [stream], "gaps": gaps, "queue": _NO_SERIES}


_NO_SERIES: dict[str, Any] = {"time": [], "value": [], "part": 0}


def _column(values: list[int]) -> Int64:
    return np.array(values, np.int64)
