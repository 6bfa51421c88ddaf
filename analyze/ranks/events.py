"""A trace comes down to its collectives, their groups, and who owns its device's time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import polars as pl

from analyze import schema
from analyze.arrays import Int64, UInt8
from analyze.metrics.collectives import EXCHANGE, kind_of
from analyze.ranks.summary import MOST_EVENTS, MOST_STRETCHES
from analyze.ranks.tables import EVENTS, GROUPS, IDLE_OWNERS, OWNERS, STRETCHES
from analyze.timeline import IDLE_PARTS, DeviceTimeline, Intervals, join, subtract
from analyze.timeline.attribution import external_ids_are_ops
from analyze.trace import GroupInfo, Timed, Trace, matching

_GROUP_CALL = r"(?i)^(nccl|rccl|xccl|ucc|mpi|_?c10d\w*):|record_param_comms"
_CUT = "..."


def collect(trace: Trace, line: DeviceTimeline) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    """The collectives of a device (schema `EVENTS`), their groups (`GROUPS`), and the steps that were left out."""
    rows = line.activities.filter(
        (pl.col("kind").cast(pl.String) == "kernel") & (pl.col("category").cast(pl.String) == "communication")
    ).sort("start_ns", "end_ns", maintain_order=True)
    rows, dropped = _bounded(trace, rows)
    rows = said_by_ops(trace, rows)
    rows, groups = _grouped(rows, trace.metadata.job.groups)
    computation = line.by_class[0]
    end = rows["end_ns"].to_numpy()
    base = trace.metadata.base_ns
    kinds, said_by = _kinds(trace, rows)
    events = rows.select(
        pl.int_range(pl.len()).cast(pl.UInt32).alias("event"),
        "group",
        pl.col("group_sequence").alias("seq"),
        pl.Series("kind", kinds, dtype=pl.String),
        pl.Series("kind_from", said_by, dtype=pl.String),
        pl.col("source_rank").alias("source"),
        pl.col("target_rank").alias("target"),
        "in_elements",
        "out_elements",
        pl.col("element_type").cast(pl.String),
        "stream",
        pl.col("start_ns") + base,
        pl.col("end_ns") + base,
        pl.Series("computes_at_end", computation.covered_within(end - 1, end) > 0),
    )
    return events.cast(schema.dtypes(EVENTS)), groups, dropped  # type: ignore[arg-type]


def said_by_ops(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """The collectives with what their host ops say, as `op_collective` and in the columns that their own args lack.

    A kernel's External id has to be that of an op, and of one op of a process group only. Where one op launched several
    kernels, the number of elements is that of all together, and is left out.
    """
    rows = rows.with_columns(op_collective=pl.lit(None, pl.String))
    bare = rows["collective"].null_count()
    if not bare or not trace.collective_ops.height or trace.recording.programs is not None:
        return rows
    if not external_ids_are_ops(trace.activities):
        return rows
    ops = trace.collective_ops.drop_nulls("external_id").unique("external_id", keep="none")
    names = [name for name in ops.columns if name != "external_id"]
    ops = ops.rename({name: f"op_{name}" for name in names})
    joined = rows.drop("op_collective").join(ops, on="external_id", how="left", maintain_order="left")
    alone = pl.len().over("external_id") == 1
    without = pl.col("collective").is_null()
    filled = []
    for name in names:
        if name != "collective":
            usable = without & alone if name in ("in_elements", "out_elements") else without
            own, op = pl.col(name), pl.col(f"op_{name}")
            if joined.schema[name] == pl.Categorical:
                own, op = own.cast(pl.String), op.cast(pl.String)
            filled.append(pl.when(usable & own.is_null()).then(op).otherwise(own).alias(name))
    return joined.with_columns(*filled, pl.col("op_collective").cast(pl.String)).select(*rows.columns)


def _bounded(trace: Trace, rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The collectives without those of the last steps, where they are too many: never a sample inside a step."""
    if rows.height <= MOST_EVENTS:
        return rows, ()
    starts = trace.steps.sort("start_ns")
    begin = starts["start_ns"].to_numpy()
    limit = int(rows["start_ns"][MOST_EVENTS])
    at = max(int(np.searchsorted(begin, limit, side="right")) - 1, 1)
    if at >= len(begin):
        return rows.head(MOST_EVENTS), ("everything after the first 20,000 collectives",)
    kept = rows.filter(pl.col("start_ns") < int(begin[at])).head(MOST_EVENTS)
    return kept, tuple(starts["name"].cast(pl.String)[at:])


def _kinds(trace: Trace, rows: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Kind of each collective and what said it: its args, the op or range around its launch, or the kernel's name."""
    around = _around(trace, rows)
    found = []
    names = rows.select(pl.col("collective", "op_collective", "name").cast(pl.String))
    for (own, op, name), call in zip(names.iter_rows(), around, strict=True):
        said = next(
            ((kind, how) for text, how in ((own, "args"), (op, "op"), (call, "annotation"), (name, "kernel"))
             if text and (kind := kind_of(text)) != EXCHANGE),
            (EXCHANGE, "kernel"),
        )  # fmt: skip
        found.append(said)
    return [kind for kind, _ in found], [how for _, how in found]


def _around(trace: Trace, rows: pl.DataFrame) -> list[str | None]:
    """The innermost range or op of a process group around each launch."""
    columns = ("name", "thread", "start_ns", "dur_ns")
    calls = [frame.filter(matching(frame["name"], _GROUP_CALL)).select(columns) for frame in (trace.ranges, trace.ops)]
    calls = [frame.with_columns(pl.col("name").cast(pl.String)).filter(~pl.col("name").str.contains("record_param"))
             for frame in calls]  # fmt: skip
    timed = Timed(pl.concat(calls))
    if not timed.rows.height or not rows.height:
        return [None] * rows.height
    names: list[str | None] = timed.names(rows["launch_thread"], rows["launch_start_ns"]).cast(pl.String).to_list()
    return names


def _grouped(rows: pl.DataFrame, known: tuple[GroupInfo, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with the number of their group, and the groups in order of their first collective."""
    text = pl.col("group", "group_description", "group_ranks").cast(pl.String)
    rows = rows.with_columns(text).with_columns(pl.when(pl.col("group").is_null()).then("stream").alias("own_stream"))
    key = ["group", "group_ranks", "group_size", "own_stream"]
    groups = rows.group_by(key, maintain_order=True).agg(pl.col("group_description").drop_nulls().first())
    by_name = {info.name: info for info in known}
    table = [
        (
            number,
            name,
            description or _description(by_name, name),
            size,
            _members(ranks, by_name.get(name or "")),
            stream,
        )
        for number, (name, ranks, size, stream, description) in enumerate(groups.iter_rows())
    ]
    frame = pl.DataFrame(table, schema=schema.dtypes(GROUPS), orient="row")
    numbered = groups.with_columns(pl.int_range(pl.len()).cast(pl.UInt32).alias("number")).drop("group_description")
    joined = rows.join(numbered, on=key, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(group=pl.col("number")), frame


def _description(by_name: dict[str, GroupInfo], name: str | None) -> str | None:
    info = by_name.get(name or "")
    return info.description or None if info else None


def _members(ranks: str | None, info: GroupInfo | None) -> list[int] | None:
    """Ranks of a group from its list, or, where the writer cut that, from the file's metadata."""
    if ranks and _CUT not in ranks:
        try:
            value = json.loads(ranks)
            value = json.loads(value) if isinstance(value, str) else value
            return sorted({int(rank) for rank in value})
        except (ValueError, TypeError):
            pass
    return sorted(info.ranks) if info else None


def stretches(trace: Trace, line: DeviceTimeline, gaps: pl.DataFrame | None) -> tuple[pl.DataFrame, int]:
    """Who owns each instant of a device's window (schema `STRETCHES`), and the time of those left out.

    An idle stretch has the part of idle time that most of it is.

    Args:
        trace: the trace.
        line: the device's timeline.
        gaps: its partitioned gaps, None where nothing is known of the host.
    """
    parts = list(_owned(line, gaps))
    base = trace.metadata.base_ns
    frame = pl.DataFrame(
        {
            "start_ns": np.concatenate([start for start, _, _ in parts]) + base,
            "end_ns": np.concatenate([end for _, end, _ in parts]) + base,
            "owner": np.concatenate([owner for _, _, owner in parts]),
        },
        schema=schema.dtypes(STRETCHES),
    )
    lost = 0
    if frame.height > MOST_STRETCHES:
        length = pl.col("end_ns") - pl.col("start_ns")
        longest = frame.sort(length, descending=True, maintain_order=True)
        lost = int(longest[MOST_STRETCHES:].select(length.sum()).item())
        frame = longest.head(MOST_STRETCHES)
    return frame.sort("start_ns"), lost


def _owned(line: DeviceTimeline, gaps: pl.DataFrame | None) -> Iterator[tuple[Int64, Int64, UInt8]]:
    computation, communication, copy = line.by_class
    busy: tuple[Intervals, ...] = (
        computation,
        subtract(communication, computation),
        subtract(copy, join(computation, communication)),
    )
    for owner, intervals in enumerate(busy):
        yield intervals.start_ns, intervals.end_ns, np.full(len(intervals), owner, np.uint8)
    if gaps is None or not gaps.height:
        owner = OWNERS.index("unlinked")
        yield line.gaps.start_ns, line.gaps.end_ns, np.full(len(line.gaps), owner, np.uint8)
        return
    most = gaps.select(IDLE_PARTS).to_numpy().argmax(axis=1)
    yield gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy(), (most + IDLE_OWNERS.start).astype(np.uint8)
