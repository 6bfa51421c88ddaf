"""What the host could spare: waits, input work, launches, allocations, first use, the profiler's own time."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec.structs import replace

from analyze.metrics.first_use import allocations as driver_allocations
from analyze.metrics.whatif.loading import measure_loading
from analyze.metrics.whatif.origins import allocation_origin, first_use_origin, in_the_loop
from analyze.metrics.whatif.scenario import Scenario, WhatIfInputs, places
from analyze.timeline import Change, Intervals, intersect, join, spans, subtract, union
from analyze.timeline.blocking import LAUNCH_CALL
from analyze.timeline.frames import own_frames
from analyze.timeline.host import ThreadStates
from analyze.timeline.intervals import NOTHING
from analyze.trace import Timed, matching, timed_rows
from analyze.trace.nesting import NO_ROW

_SYNC, _LOADING, _RUNTIME, _OP = range(4)  # positions in `ThreadStates.grown`


def waits(inputs: WhatIfInputs, kind: str) -> Scenario | None:
    """Blocking calls of one kind that return at once.

    Args:
        inputs: the run.
        kind: "copy" waits for a copy to the device, "op" stands inside an op or reads a result, "explicit" is a
            synchronisation that the program asked for outside ops, again and again.
    """
    calls = inputs.waits.filter(pl.col("waits_for") == kind)
    calls = inputs.begun_within(in_the_loop(inputs, calls) if kind == "explicit" else calls)
    if not calls.height:
        return None
    copying = calls["name"].str.contains("(?i)memcpy")
    remains = np.where(copying.to_numpy(), _usual_call_ns(inputs), 0)
    change = Change(at_once=dict(zip(calls["row"].to_list(), remains.tolist(), strict=True)))
    where = _where(inputs, calls["thread"], calls["start_ns"], calls["trigger"])
    rows = calls.with_columns(where=where, time_ns="dur_ns")
    return Scenario(change, calls.height, int(calls["dur_ns"].sum()), places(rows))


def _usual_call_ns(inputs: WhatIfInputs) -> int:
    """Median length of a launch call that does not block."""
    runtime = timed_rows(inputs.trace.runtime)
    launching = runtime.filter(matching(runtime["name"], LAUNCH_CALL))
    middle = launching["dur_ns"].median()
    return int(middle) if isinstance(middle, int | float) else 0


def input_work(inputs: WhatIfInputs) -> Scenario | None:
    """DataLoader work on launching threads, moved off them; what other threads load holds nothing up."""
    loading = {t: subtract(s.grown[_LOADING], s.grown[_SYNC]) for t, s in _states(inputs).items()}
    rows = _outermost(timed_rows(inputs.host.loading).filter(pl.col("thread").is_in(list(loading))))
    found = _of_rows(inputs, loading, rows)
    return replace(found, loading=measure_loading(inputs, rows)) if found else None


def python_work(inputs: WhatIfInputs) -> Scenario | None:
    """Long stretches of the launching threads outside ops and API calls, moved off them.

    Threads of the backward engine wait there for the next op; other threads of their process wait for them.
    """
    calls, states, engine = inputs.schedule.calls, _chain_states(inputs, _OP), inputs.delays.engine
    busy = join(spans(inputs.delays.first_use), inputs.host.profiler)
    threads = {c: t for t, c in sorted(inputs.schedule.threads.items(), reverse=True) if t not in engine.threads}
    gone: dict[int, Intervals] = {}
    for chain, thread in threads.items():
        backward = engine.work.get(engine.processes[thread], NOTHING)
        mine = (calls.chain == chain) & (calls.before != NO_ROW)
        between = union(calls.idle_from_ns[mine], calls.idle_to_ns[mine])
        free = subtract(subtract(between, join(states[chain], backward)), busy)
        long = free.end_ns - free.start_ns > inputs.definitions.long_gap_ns
        gone[chain] = _inside(inputs, Intervals(free.start_ns[long], free.end_ns[long]))
    rows = pl.concat([pl.DataFrame(schema=_STRETCHES), *(_stretches(threads[c], g) for c, g in gone.items())])
    if not rows.height:
        return None
    middle = rows["start_ns"] + rows["time_ns"] // 2
    ranges = inputs.trace.ranges.filter(~pl.col("name").cast(pl.String).str.starts_with("ProfilerStep"))
    where = _where(inputs, rows["thread"], middle, Timed(ranges).names(rows["thread"], middle))
    named = rows.with_columns(name=pl.lit("Python, or not recorded"), where=where)
    time_ns = int(rows["time_ns"].sum())
    return Scenario(Change(host=gone), rows.height, time_ns, places(named), steps=inputs.steps_of(middle))


_STRETCHES = {"start_ns": pl.Int64, "time_ns": pl.Int64, "thread": pl.Int64}


def _stretches(thread: int, gone: Intervals) -> pl.DataFrame:
    """Stretches of one thread, none perhaps: it may never pause."""
    columns = {"start_ns": gone.start_ns, "time_ns": gone.end_ns - gone.start_ns, "thread": [thread] * len(gone)}
    return pl.DataFrame(columns, schema=_STRETCHES)


def _where(inputs: WhatIfInputs, thread: pl.Series, time_ns: pl.Series, otherwise: pl.Series) -> pl.Series:
    """The program's own frame around each instant, else another name."""
    frames = own_frames(inputs.trace, thread, time_ns)
    names = otherwise.cast(pl.String)
    return pl.Series([frame or name or "" for frame, name in zip(frames, names, strict=True)], dtype=pl.String)


def launch_work(inputs: WhatIfInputs) -> Scenario | None:
    """Launch calls and the host time between them, as in a CUDA graph; stretches beyond `long_gap_ns` stay."""
    calls, limit = inputs.schedule.calls, inputs.definitions.long_gap_ns
    kept = join(spans(inputs.delays.first_use), inputs.host.profiler)
    gone: dict[int, Intervals] = {}
    for chain, loading in _chain_states(inputs, _LOADING).items():
        mine = (calls.chain == chain) & (calls.before != NO_ROW)
        mine &= calls.idle_to_ns - calls.idle_from_ns <= limit
        between = union(calls.idle_from_ns[mine], calls.idle_to_ns[mine])
        gone[chain] = _inside(inputs, subtract(between, join(loading, kept)))
    total = sum(g.total_ns for g in gone.values())
    return Scenario(Change(host=gone), int((calls.blocking == NO_ROW).sum()), total, ()) if total else None


def allocations(inputs: WhatIfInputs) -> Scenario | None:
    """Calls that get memory from the driver or give it back; start-up, and a cache that only fills, is first use."""
    calls = driver_allocations(inputs.trace)
    found = _of_calls(inputs, calls)
    return replace(found, origin=allocation_origin(inputs, calls)) if found else None


def first_use(inputs: WhatIfInputs) -> Scenario | None:
    """Long launch calls, start-up, module loading and compilation: what only the first iterations do."""
    threads = list(inputs.schedule.threads)
    rows = inputs.delays.first_use.filter(pl.col("anywhere") | pl.col("thread").is_in(threads))
    gone = {t: spans(rows.filter(pl.col("anywhere") | (pl.col("thread") == t))) for t in threads}
    gone = {t: subtract(g, inputs.host.profiler) for t, g in gone.items()}
    counted = _in_window(inputs, _once(rows))
    found = _of_rows(inputs, gone, counted)
    return replace(found, origin=first_use_origin(inputs, counted)) if found else None


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that lie in no other one: those of no thread also in none of any thread, as module loads in a launch."""
    threads = _outermost(rows.filter(~pl.col("anywhere")))
    anywhere = _outermost(rows.filter("anywhere"))
    start, dur = anywhere["start_ns"].to_numpy(), anywhere["dur_ns"].to_numpy()
    covered = pl.Series(spans(threads).covered_within(start, start + dur), dtype=pl.Int64)
    return pl.concat([threads, anywhere.filter(covered < anywhere["dur_ns"])])


def _in_window(inputs: WhatIfInputs, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without what lies before the first activity, where the window has not begun."""
    first = inputs.schedule.activities["start_ns"].min()
    start = pl.max_horizontal("start_ns", pl.lit(first, pl.Int64))
    clipped = rows.with_columns(start_ns=start, dur_ns=pl.col("start_ns") + pl.col("dur_ns") - start)
    return clipped.filter(pl.col("dur_ns") > 0)


def profiler_time(inputs: WhatIfInputs) -> Scenario | None:
    """The profiler's own overhead on the host."""
    if not len(inputs.host.profiler):
        return None
    gone = dict.fromkeys(inputs.schedule.threads, inputs.host.profiler)
    rows = inputs.trace.overhead.with_columns(thread=pl.lit(0, pl.UInt32))
    return _of_rows(inputs, gone, timed_rows(rows))


def _outermost(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that lie in no other one of them on their thread, so that their durations add up to real time."""
    rows = rows.sort("thread", "start_ns", "dur_ns", descending=[False, False, True], maintain_order=True)
    end = pl.col("start_ns") + pl.col("dur_ns")
    return rows.filter((end > end.cum_max().shift().over("thread")).fill_null(value=True))


def _of_calls(inputs: WhatIfInputs, rows: pl.DataFrame) -> Scenario | None:
    gone = {}
    for thread in rows["thread"].unique().to_list():
        gone[int(thread)] = spans(rows.filter(pl.col("thread") == thread))
    return _of_rows(inputs, gone, rows.filter(pl.col("thread").is_in(list(inputs.schedule.threads))))


def _of_rows(inputs: WhatIfInputs, gone: dict[int, Intervals], rows: pl.DataFrame) -> Scenario | None:
    """Host time that vanishes, described by the rows that it comes from."""
    rows = inputs.begun_within(rows)
    if not rows.height or not any(len(g) for g in gone.values()):
        return None
    middle = rows["start_ns"] + rows["dur_ns"] // 2
    ops = inputs.trace.timed_ops.names(rows["thread"], middle).cast(pl.String)
    ops = ops.set(ops == rows["name"].cast(pl.String), None)  # a row is not around itself
    named = rows.with_columns(where=_where(inputs, rows["thread"], middle, ops), time_ns="dur_ns")
    time_ns = int(rows["dur_ns"].sum())
    return Scenario(inputs.host_change(gone), rows.height, time_ns, places(named), steps=inputs.steps_of(middle))


def _states(inputs: WhatIfInputs) -> dict[int, ThreadStates]:
    return {thread: inputs.host.states(thread) for thread in inputs.schedule.threads}


def _chain_states(inputs: WhatIfInputs, upto: int) -> dict[int, Intervals]:
    """Per chain of threads the instants in the first states, up to one of them."""
    found: dict[int, Intervals] = {}
    for thread, chain in inputs.schedule.threads.items():
        found[chain] = join(found.get(chain, NOTHING), inputs.host.states(thread).grown[upto])
    return found


def _inside(inputs: WhatIfInputs, intervals: Intervals) -> Intervals:
    return intervals if inputs.selected is None else intersect(intervals, inputs.selected)
