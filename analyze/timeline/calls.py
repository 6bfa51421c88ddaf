"""Ops, ranges, API calls and Python frames of each thread as one tree: who called what."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Bool, Int64
from analyze.trace import Trace, matching
from analyze.trace.nesting import NO_ROW

OP, RANGE, API, FRAME = range(4)
KINDS = ("op", "range", "api", "frame")
STEP = "ProfilerStep#"
_STEPS = "ProfilerStep*"
# The profiler's own table leaves these out, so that what they contain belongs to their caller.
_HIDDEN = r"^(profiler::_record_function_(enter|enter_new|exit)|aten::(is_leaf|output_nr|_version))$"


class CallTree(Struct, frozen=True, dict=True):
    """Calls in nesting order: by thread and start, callers before what they call.

    The rules are those of `torch.autograd.profiler_util`: a call is inside another one when it lies in it entirely
    (calls that only overlap are siblings), and an only child with its caller's name is the same call seen twice.

    Attributes:
        calls: `start_ns`, `end_ns`, `thread`, `name` (steps as `ProfilerStep*`), `kind` (index into `KINDS`), `row`
            (in the table of its kind).
        parent: the call around each one, `NO_ROW` at the top.
    """

    calls: pl.DataFrame
    parent: Int64

    @classmethod
    def of(cls, trace: Trace) -> CallTree:
        """The calls of a trace that have a start and a duration."""
        tables = (trace.ops, trace.ranges, trace.runtime, trace.frames)
        calls = pl.concat([_calls(table, kind) for kind, table in enumerate(tables)])
        start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
        order = np.lexsort((-end, start, calls["thread"].to_numpy()))
        calls = calls[order]
        return cls(
            calls, _parents(calls["thread"].to_numpy(), calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
        )

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def kind(self) -> Int64:
        """Index into `KINDS` per call."""
        return self.calls["kind"].to_numpy()

    @cached_property
    def dur_ns(self) -> Int64:
        """Duration per call."""
        dur: Int64 = self.calls["end_ns"].to_numpy() - self.calls["start_ns"].to_numpy()
        return dur

    @cached_property
    def survivor(self) -> Int64:
        """The call that stands for each one: itself, or the caller that it repeats."""
        names, n = self.calls["name"].to_physical().to_numpy(), len(self)
        above = np.maximum(self.parent, 0)
        children = np.bincount(self.parent[self.parent >= 0], minlength=n)
        repeats = (self.parent >= 0) & (names == names[above]) & (children[above] == 1) if n else np.empty(0, bool)
        return _settle(np.where(repeats, self.parent, np.arange(n)))

    @cached_property
    def counted(self) -> Bool:
        """Calls that stand for themselves."""
        counted: Bool = self.survivor == np.arange(len(self))
        return counted

    @cached_property
    def caller(self) -> Int64:
        """The call around each one with repeated calls merged, `NO_ROW` at the top."""
        above = self.parent[self.survivor] if len(self) else self.parent
        return np.where(above >= 0, self.survivor[np.maximum(above, 0)], NO_ROW) if len(self) else above

    @cached_property
    def owner(self) -> Int64:
        """The innermost op or range at or around each call, `NO_ROW` without one."""
        return self.nearest((self.kind == OP) | (self.kind == RANGE))

    def nearest(self, wanted: Bool, around: Int64 | None = None) -> Int64:
        """The innermost wanted call at or around each one, `NO_ROW` without one.

        Args:
            wanted: which calls to look for.
            around: what stands around each call, where that is not its caller.
        """
        n = len(self)
        if not n:
            return self.parent
        top = n  # stands for no call
        up = np.append(
            np.where(
                wanted & self.counted,
                np.arange(n),
                np.where(self.counted, self.caller if around is None else around, self.survivor),
            ),
            top,
        )
        up[up == NO_ROW] = top
        found = _settle(up)[:n]
        return np.where(found == top, NO_ROW, found)

    def children_sum(self, amount: Int64) -> Int64:
        """Per call the sum over the calls directly inside it, of those that count."""
        found = np.zeros(len(self), dtype=np.int64)
        inside = np.flatnonzero(self.counted & (self.caller >= 0))
        np.add.at(found, self.caller[inside], amount[inside])
        return found

    def subtree_sum(self, amount: Int64) -> Int64:
        """Per call the sum over itself and all calls inside it."""
        before = np.concatenate(([np.int64(0)], np.cumsum(amount)))
        return before[self.subtree_end] - before[:-1]

    @cached_property
    def subtree_end(self) -> Int64:
        """Where in nesting order the calls inside each one end."""
        end = np.arange(1, len(self) + 1)
        for level in range(int(self.depth.max(initial=0)), 0, -1):
            at = np.flatnonzero(self.depth == level)
            np.maximum.at(end, self.parent[at], end[at])
        return end

    @cached_property
    def depth(self) -> Int64:
        """How many calls are around each one."""
        n = len(self)
        up = np.append(np.where(self.parent >= 0, self.parent, n), n)
        depth = np.append((self.parent >= 0).astype(np.int64), 0)
        while (up[:n] != n).any():
            depth += depth[up]
            up = up[up]
        return depth[:n]

    def of_rows(self, kind: int, rows: int) -> Int64:
        """The call of each row of a table, `NO_ROW` for rows without times.

        Args:
            kind: index into `KINDS`.
            rows: how many rows the table has.
        """
        found = np.full(rows, NO_ROW, dtype=np.int64)
        mine = np.flatnonzero(self.kind == kind)
        found[self.calls["row"].to_numpy()[mine]] = mine
        return found


def _calls(table: pl.DataFrame, kind: int) -> pl.DataFrame:
    texts, name = table["name"].unique().cast(pl.String), pl.col("name")
    if texts.null_count() or texts.str.starts_with(STEP).any():
        text = name.cast(pl.String).fill_null("")
        name = pl.when(text.str.starts_with(STEP)).then(pl.lit(_STEPS)).otherwise(text).cast(pl.Categorical)
    hidden = matching(table["name"], _HIDDEN).fill_null(value=False)
    return (
        table.with_row_index("row")
        .filter(pl.col("start_ns").is_not_null() & pl.col("dur_ns").is_not_null() & ~hidden)
        .select(
            "start_ns",
            end_ns=pl.col("start_ns") + pl.col("dur_ns"),
            thread=pl.col("thread").cast(pl.Int64),
            name=name,
            kind=pl.lit(kind, pl.Int64),
            row=pl.col("row").cast(pl.Int64),
        )
    )


def _parents(thread: Int64, start_ns: Int64, end_ns: Int64) -> Int64:
    """The last earlier call of the thread that holds each one entirely, as a stack finds it.

    What a call skips on its way out, every later call that skips it would skip too: so it may take over its jumps.
    """
    n = len(thread)
    parent = np.arange(NO_ROW, n - 1, dtype=np.int64)
    if n == 0:
        return parent
    parent[np.flatnonzero(np.diff(thread, prepend=thread[0] - 1))] = NO_ROW

    def outside(calls: Int64) -> Int64:
        calls = calls[parent[calls] >= 0]
        ends = end_ns[parent[calls]]
        return calls[(ends <= start_ns[calls]) | (ends < end_ns[calls])]

    active = outside(np.arange(n))
    while active.size:
        parent[active] = parent[parent[active]]
        active = outside(active)
    return parent


def _settle(up: Int64) -> Int64:
    """Follow pointers to where they point at themselves."""
    while True:
        further = up[up]
        if (further == up).all():
            return up
        up = further
