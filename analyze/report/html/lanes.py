"""The lanes of a device: what its streams ran, and where all of them were idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.kernels.categories import NAMES as CATEGORIES
from analyze.report.axis.gaps import IDLE_STATES, main_states, states_of_gaps
from analyze.report.html.columns import Names, deltas
from analyze.report.html.slices import Merged, merge_runs, merge_to
from analyze.report.html.stacks import StackTree
from analyze.settings import Definitions
from analyze.timeline import DeviceTimeline
from analyze.timeline.attribution import Attribution
from analyze.timeline.calls import OP
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW
from analyze.units import transfer

_SLICES = 80_000


class Scale(Struct, frozen=True):
    """What all times and names of a scene are relative to.

    Attributes:
        origin_ns: the instant that the scene calls 0, on the file's own clock.
        names: its texts.
    """

    origin_ns: int
    names: Names


def device_lanes(
    trace: Trace, lines: Sequence[DeviceTimeline], found: Attribution, stacks: StackTree, scale: Scale
) -> tuple[list[list[dict[str, Any]]], int]:
    """One table of slices per stream of each device, and the limit below which slices are merged, in nanoseconds.

    Args:
        trace: the trace.
        lines: its devices.
        found: the activities with the calls that launched them.
        stacks: the nodes of those calls.
        scale: origin and names.
    """
    rows = _rows(trace, lines, found)
    if not rows.height:
        return [[] for _ in lines], 0
    start, end, stream = (rows[name].to_numpy() for name in ("start_ns", "end_ns", "lane"))
    none, dur = np.empty(0, np.int64), end - start

    def merge(limit_ns: int) -> Merged:
        return merge_runs(start, end, stream, np.flatnonzero(dur < limit_ns), none, limit_ns)

    merged = merge_to(_SLICES, rows.height, merge)
    shown = _with_merged(rows, merged)
    node = np.append(stacks.node, NO_ROW)
    tables: list[list[dict[str, Any]]] = [[] for _ in lines]
    for _, mine in shown.group_by("lane", maintain_order=True):
        tables[int(mine["line"][0])].append(_table(trace, mine, node, found, scale))
    return tables, merged.limit_ns


def _rows(trace: Trace, lines: Sequence[DeviceTimeline], found: Attribution) -> pl.DataFrame:
    """All timed activities of the devices, by stream and start, with their calls."""
    timed = trace.activities.filter("timed").with_row_index("at").with_columns(pl.col("at").cast(pl.Int64))
    timed = timed.join(found.work.select("at", "call"), on="at", how="left", maintain_order="left")
    keys = pl.DataFrame(
        {
            "process": [line.process for line in lines],
            "device": [line.device for line in lines],
            "line": list(range(len(lines))),
        },
        schema={"process": pl.String, "device": pl.Int64, "line": pl.Int64},
    )
    timed = timed.with_columns(pl.col("process").cast(pl.String).fill_null(""))
    timed = timed.join(keys, on=["process", "device"], how="inner", maintain_order="left")
    timed = timed.sort("line", "stream", "start_ns", maintain_order=True, nulls_last=True)
    number = pl.struct("line", "stream").rle_id().cast(pl.Int64)
    return timed.with_columns(lane=number, count=pl.lit(1, pl.Int64))


def _with_merged(rows: pl.DataFrame, merged: Merged) -> pl.DataFrame:
    """The rows with runs of short ones as one row each, of the category with most of their time."""
    if not len(merged.count):
        return rows
    work = rows[merged.members].select("category", "dur_ns", run=pl.Series(merged.run))
    most = (
        work.group_by("run", "category")
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "category", descending=[True, False])
    )
    most = most.unique("run", keep="first", maintain_order=True).sort("run")
    runs = rows[merged.first].with_columns(
        most["category"],
        pl.Series("start_ns", merged.start_ns),
        pl.Series("end_ns", merged.end_ns),
        pl.Series("count", merged.count),
        dur_ns=pl.Series(merged.end_ns - merged.start_ns),
    )
    return pl.concat([rows[merged.kept], runs]).sort("lane", "start_ns", maintain_order=True)


def _table(trace: Trace, rows: pl.DataFrame, node: Int64, found: Attribution, scale: Scale) -> dict[str, Any]:
    """One stream as columns; runs of merged slices have a count above 1, and no name."""
    one = rows["count"] == 1
    call = rows["call"].fill_null(NO_ROW).to_numpy()
    call = np.where(one.to_numpy(), call, NO_ROW)
    category = rows["category"].cast(pl.String).fill_null("other").to_list()
    number = {name: i for i, name in enumerate(CATEGORIES)}
    lag = (rows["start_ns"] - rows["launch_start_ns"]).to_numpy()
    known = (rows["launch"].is_not_null() & one).to_numpy()
    names = rows["name"].cast(pl.String).fill_null("").set(~one, None)
    return {
        "stream": rows["stream"][0],
        "start": deltas(rows["start_ns"].to_numpy() - scale.origin_ns),
        "dur": (rows["end_ns"] - rows["start_ns"]).to_list(),
        "count": rows["count"].to_list(),
        "name": scale.names.numbers(names.to_list()),
        "category": [number[one] for one in category],
        "node": node[call].tolist(),
        "shape": scale.names.numbers(_shapes(trace, found, call)),
        "detail": scale.names.numbers(_details(rows.with_columns(one=one))),
        "lag": np.where(known, np.nan_to_num(lag), 0).astype(np.int64).tolist(),
        "call": _call_ns(rows, known),
        "thread": np.where(known, rows["launch_thread"].cast(pl.Int64).fill_null(NO_ROW).to_numpy(), NO_ROW).tolist(),
    }


def _call_ns(rows: pl.DataFrame, known: Any) -> list[int]:
    length = (rows["launch_end_ns"] - rows["launch_start_ns"]).fill_null(0).to_numpy()
    found: list[int] = np.where(known, length, 0).tolist()
    return found


def _shapes(trace: Trace, found: Attribution, call: Int64) -> list[str | None]:
    """Input shapes of the op that launched each activity, None where they were not recorded."""
    tree = found.tree
    if not len(tree) or not trace.ops.height:
        return [None] * len(call)
    is_op = (call != NO_ROW) & (np.append(tree.kind, NO_ROW)[call] == OP)
    row = pl.Series(np.where(is_op, np.append(tree.calls["row"].to_numpy(), NO_ROW)[call], NO_ROW))
    shapes: list[str | None] = trace.ops["input_dims"].cast(pl.String).gather(row.set(row < 0, None)).to_list()
    return shapes


def _details(rows: pl.DataFrame) -> list[str | None]:
    """Launch geometry of kernels, size and rate of copies."""
    columns = ("one", "kind", "grid", "block", "registers", "shared_memory_bytes", "size_bytes", "dur_ns")
    texts = rows.select(pl.col("kind", "grid", "block").cast(pl.String), *(c for c in columns if c not in _TEXTS))
    found: list[str | None] = []
    for row in texts.select(columns).iter_rows():
        one, kind, grid, block, registers, shared, size, dur = row
        if not one:
            found.append(None)
        elif kind != "kernel":
            rate = f" at {size / dur:.3g} GB/s" if size and dur else ""
            found.append(f"{transfer(size)}{rate}" if size is not None else None)
        else:
            parts = (f"grid {grid}" if grid else "", f"block {block}" if block else "",
                     f"{registers} registers" if registers else "",
                     f"{shared:,} B shared" if shared else "")  # fmt: skip
            found.append(", ".join(part for part in parts if part) or None)
    return found


_TEXTS = ("kind", "grid", "block")


def idle_lane(gaps: pl.DataFrame, scale: Scale, definitions: Definitions) -> dict[str, Any]:
    """The gaps of one device as columns: the state with most of each, and what every state has of it."""
    states = states_of_gaps(gaps, definitions)
    start = gaps["start_ns"].to_numpy()
    launch = (gaps["launch_start_ns"] - gaps["start_ns"]).fill_null(0)
    return {
        "start": deltas(start - scale.origin_ns),
        "dur": (gaps["end_ns"] - gaps["start_ns"]).to_list(),
        "state": main_states(states).tolist(),
        "thread": gaps["thread"].cast(pl.Int64).fill_null(NO_ROW).to_list(),
        "launch": launch.to_list(),
        "parts": {state.id: states[state.id].tolist() for state in IDLE_STATES if states[state.id].any()},
    }
