"""The declared columns of what one file comes down to (docs/ranks.md), and of the frames of a job."""

from __future__ import annotations

import polars as pl

from analyze.schema import Field, Schema
from analyze.timeline import IDLE_PARTS

OWNERS = ("computation", "communication", "copy", *(part.removesuffix("_ns") for part in IDLE_PARTS))
IDLE_OWNERS = range(3, len(OWNERS))
_INT, _TEXT = pl.Int64, pl.String
PASSED, UNMEASURED = NO_FINDING = ("passed", "unmeasured")

EVENTS: Schema = (
    Field("event", pl.UInt32, "number of the collective in its file, in order of start, end and row"),
    Field("group", pl.UInt32, "row of the file's groups"),
    Field("seq", _INT, "number of the collective in its group, null where not recorded"),
    Field("kind", _TEXT, "all_reduce, all_gather ...; sendrecv where nothing says what it is"),
    Field("kind_from", _TEXT, "args, op, annotation or kernel: what said the kind"),
    Field("source", _INT, "sending rank of send and recv"),
    Field("target", _INT, "receiving rank of send and recv"),
    Field("in_elements", _INT, "elements that this rank gives"),
    Field("out_elements", _INT, "elements that this rank gets"),
    Field("element_type", _TEXT, "type of the elements"),
    Field("stream", _INT, "stream of the device"),
    Field("start_ns", _INT, "start on the file's clock, the base time added"),
    Field("end_ns", _INT, "end on the same clock"),
    Field("computes_at_end", pl.Boolean, "computation owns the instant before its end"),
)
GROUPS: Schema = (
    Field("group", pl.UInt32, "row number"),
    Field("name", _TEXT, "process group name, null where not recorded"),
    Field("description", _TEXT, "what the program calls it"),
    Field("size", _INT, "ranks in it, null where not recorded"),
    Field("members", pl.List(pl.Int64), "its ranks in order, null where not known"),
    Field("stream", _INT, "stream of its collectives where it has no name"),
)
STRETCHES: Schema = (
    Field("start_ns", _INT, "start on the file's clock, the base time added"),
    Field("end_ns", _INT, "end on the same clock"),
    Field("owner", pl.UInt8, "position in OWNERS: computation, communication, copy, then parts of idle time"),
)
LEDGERS: Schema = (
    Field("step", _TEXT, "profiler step, null for the whole window"),
    Field("part", _TEXT, "part of the ledger of docs/definitions.md"),
    Field("ns", _INT, "nanoseconds"),
)
CATEGORIES: Schema = (
    Field("step", _TEXT, "profiler step, null for the whole window"),
    Field("category", _TEXT, "what kernels compute"),
    Field("count", _INT, "activities"),
    Field("sum_ns", _INT, "durations added up"),
    Field("exclusive_ns", _INT, "instants at which only this category runs"),
)
PAUSES: Schema = (
    Field("start_ns", _INT, "start of a gap on the file's clock, the base time added"),
    Field("end_ns", _INT, "end on the same clock"),
    Field("owner", pl.UInt8, "position in OWNERS of what most of the gap is"),
    Field("op", _TEXT, "innermost op of the launching thread in the middle of it, null outside ops"),
    Field("frame", _TEXT, "innermost Python frame there that is no library's, null where not recorded"),
)
WORK: Schema = (
    Field("category", _TEXT, "what kernels compute"),
    Field("op", _TEXT, "op that launched them, null outside ops and for all but the largest"),
    Field("ns", _INT, "durations added up"),
)
FINDINGS: Schema = (
    Field("id", _TEXT, "the rule"),
    Field("title", _TEXT, "the problem with its culprit, or why there is none"),
    Field("severity", _TEXT, "high, medium or low; passed or unmeasured where the rule found nothing"),
    Field("saved_ns", _INT, "what the change would save of this rank's window, null where not known"),
    Field("saved_share", pl.Float64, "the same as a share of the window"),
    Field("change", _TEXT, "what to change"),
)
STEPS: Schema = (
    Field("name", _TEXT, "profiler step"),
    Field("start_ns", _INT, "start of the host's range, the base time added"),
    Field("dur_ns", _INT, "its duration"),
)
PARTS: dict[str, Schema] = {
    "event": EVENTS,
    "group": GROUPS,
    "stretch": STRETCHES,
    "ledger": LEDGERS,
    "category": CATEGORIES,
    "pause": PAUSES,
    "work": WORK,
    "finding": FINDINGS,
    "step": STEPS,
}

_LATE_PARTS = ("computation", "transfer", "unsplit", "wait", "copy", "idle")
ROWS: Schema = (
    Field("entry", _INT, "row of `collectives`: the collective that this is one rank's kernel of"),
    Field("rank", _INT, "the rank"),
    Field("event", pl.UInt32, "number of the collective in the rank's file"),
    Field("start_ns", _INT, "start in common time"),
    Field("end_ns", _INT, "end in common time"),
    Field("wait_ns", _INT, "waiting for the last rank; null where the collective is not split"),
    Field("transfer_ns", _INT, "the rest of the kernel; null likewise"),
    Field("exposed_wait_ns", _INT, "waiting that no computation covers; null likewise"),
    *(
        Field(f"before_{part}_ns", _INT, f"{part} since the last collective that held all ranks")
        for part in _LATE_PARTS
    ),
)
COLLECTIVES: Schema = (
    Field("entry", _INT, "row number, in order of group and index"),
    Field("group", _TEXT, "the group: its name and its ranks"),
    Field("index", _INT, "number in the group: Seq where recorded, else the order"),
    Field("kind", _TEXT, "all_reduce, all_gather ..."),
    Field("dimension", _TEXT, "parallel dimension of the group"),
    Field("matched_by", _TEXT, "seq, order or ends"),
    Field("ranks", _INT, "how many ranks' kernels were found"),
    Field("missing", _INT, "members that were not recorded, null where the members are unknown"),
    Field("split", pl.Boolean, "it can be split into waiting and data"),
    Field("last", _INT, "the rank that arrived last, null where not split"),
    Field("last_arrival_ns", _INT, "when it arrived, in common time"),
    Field("lead_ns", _INT, "how long after the second-last"),
    Field("decided", pl.Boolean, "the lead is above the clocks' uncertainty"),
    Field("data_ns", _INT, "from the last arrival to the last end"),
    Field("inherited_ns", _INT, "part of the lead that the last rank had itself waited for others"),
    Field("own_ns", _INT, "the rest of the lead"),
    Field("size_bytes", _INT, "message size as bandwidth is computed from, null where not recorded"),
    Field("busbw_bytes_per_s", _INT, "bus bandwidth, null where it cannot be known"),
)
_RANK_TIMES = (
    ("window_start_ns", "first activity, in common time"),
    ("window_ns", "first activity to last end"),
    ("computation_ns", "of the window: kernels that are no collectives"),
    ("exposed_communication_ns", "of the window: collectives without computation"),
    ("exposed_copy_ns", "of the window: copies without either"),
    ("idle_ns", "of the window: nothing runs"),
    ("communication_ns", "some collective runs"),
    ("exposed_wait_ns", "of the exposed communication: waiting for the last rank"),
    ("exposed_transfer_ns", "of the exposed communication: moving data"),
    ("exposed_unsplit_ns", "of the exposed communication: collectives that cannot be split"),
    ("communication_sum_ns", "durations of collectives added up"),
    ("wait_ns", "waiting added up"),
    ("transfer_ns", "transfer added up"),
    ("unsplit_ns", "collectives that cannot be split, added up"),
    ("caused_wait_ns", "waiting of other ranks where this one came last"),
    ("caused_exposed_wait_ns", "of that, what no computation covers"),
    ("alone_ns", "how long it came after the second-last rank, added up over decided collectives"),
    ("own_ns", "of that, what it did not inherit; null with ranks missing"),
)
RANKS: Schema = (
    Field("rank", _INT, "the rank"),
    Field("path", _TEXT, "its file, below the folder"),
    Field("rank_from", _TEXT, "what says the rank: distributedInfo or file name"),
    Field("clock_offset_ns", _INT, "how far its clock is ahead of common time"),
    Field("clock_component", _INT, "set of ranks that matched collectives connect"),
    Field("collectives", _INT, "its kernels"),
    Field("times_last", _INT, "collectives in which it came last"),
    Field("times_last_decided", _INT, "of those by more than the clocks' uncertainty"),
    *(Field(name, _INT, meaning) for name, meaning in _RANK_TIMES),
)
WAITS: Schema = (
    Field("rank", _INT, "who waits"),
    Field("last", _INT, "for whom"),
    Field("count", _INT, "in how many collectives"),
    Field("wait_ns", _INT, "how long"),
    Field("exposed_wait_ns", _INT, "how much of it no computation covers"),
)
