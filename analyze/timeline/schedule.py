"""A recorded run as a graph of who waits for whom: host calls, activities, and the delays between them."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Bool, Int64
from analyze.timeline.autograd import engine_threads
from analyze.timeline.host import Host
from analyze.timeline.threads import group_threads
from analyze.trace import Trace
from analyze.trace.nesting import NO_ROW

_FEW = 10  # samples: below it a file does not show its own typical delays
_KERNEL_GAP_NS, _COPY_GAP_NS, _LATENCY_NS = 1_500, 3_000, 6_000  # then these, as on NVIDIA and AMD GPUs of 2017 to 2024
_TOUCH_NS = 100  # instants closer than this are one: no conclusion may rest on less
_SLOW_CALL_NS = 20_500  # on a free stream: no kernel waits so long for a launch call of the usual kind
_LONG_DELAY_NS = 1_000_000  # beyond it the device did not begin for a reason that is not launching
_BLOCK_END, _LAUNCH, _ACTIVITY = range(3)  # at one instant a wait ends, then a call begins, then the device starts


class Calls(Struct, frozen=True):
    """Host calls that matter to the device, in order of time: starts of launch calls, ends of blocking calls.

    Attributes:
        time_ns: start of a launch call, end of a blocking one.
        before: the call before it on its chain of threads, `NO_ROW` for the first.
        idle_from_ns: where the host's own time before it begins: the call before, for the first one of a chain the
            first call or activity of the file.
        idle_to_ns: where that ends: the call's start.
        rest_ns: what a blocking call lasts beyond the end of what it waited for, negative where the record of a copy
            ends after its call; 0 for launch calls.
        awaited: the activity whose end a blocking call waited for, `NO_ROW` for launch calls and where nothing ran.
        blocking: row of `Host.waits`, `NO_ROW` for launch calls.
        chain: which group of threads it is on.
    """

    time_ns: Int64
    before: Int64
    idle_from_ns: Int64
    idle_to_ns: Int64
    rest_ns: Int64
    awaited: Int64
    blocking: Int64
    chain: Int64

    def __len__(self) -> int:
        return len(self.time_ns)


class Work(Struct, frozen=True):
    """Timed activities in order of start, and what each of them waits for.

    Attributes:
        start_ns: starts.
        dur_ns: durations.
        before: the activity before it on its stream, `NO_ROW` for the first.
        gap_ns: what must lie between that one's end and its start; negative where the device overlaps them.
        launch: its launch call, `NO_ROW` where unknown, under skew, and for all but the first activity of a graph.
        latency_ns: what must lie between that call's start and its start.
        across: the activity of another stream that it waited for, `NO_ROW` without one.
        across_ns: what must lie between that one's end and its start.
        unexplained_ns: how long it stood still for a reason that the file does not hold; part of `gap_ns`.
        by_launch: its delay is part of `latency_ns` instead: the launch, not the stream, was what came last.
        call_end_ns: where the launch call's own part of `latency_ns` ends: its end, at most the start.
    """

    start_ns: Int64
    dur_ns: Int64
    before: Int64
    gap_ns: Int64
    launch: Int64
    latency_ns: Int64
    across: Int64
    across_ns: Int64
    unexplained_ns: Int64
    by_launch: Bool
    call_end_ns: Int64

    def __len__(self) -> int:
        return len(self.start_ns)


class Schedule(Struct, frozen=True):
    """The graph.

    Attributes:
        calls: the host's side.
        work: the devices' side.
        activities: the rows that `work` stands for, schema `LINKED`.
        threads: the chain of each thread that launches or blocks.
        device_gap_ns: the file's typical time between two queued kernels.
        latency_ns: the file's typical time from a launch call to its activity on an idle device.
    """

    calls: Calls
    work: Work
    activities: pl.DataFrame
    threads: dict[int, int]
    device_gap_ns: int
    latency_ns: int


def build_schedule(trace: Trace, host: Host) -> Schedule:
    """The graph of a trace, over all of its devices and threads."""
    rows = trace.activities.filter("timed")
    launching, blocking, engine = rows["launch_thread"].drop_nulls(), host.waits["thread"], engine_threads(trace)
    threads = group_threads(host, trace.threads, launching, blocking, engine=engine)
    processes = trace.threads["process"].cast(pl.String).fill_null("").gather(host.waits["thread"])
    calls, launch = _calls(rows, host.waits.with_columns(process=processes), threads)
    work, gap, latency = _work(rows, launch, calls)
    return Schedule(calls, work, rows, threads, gap, latency)


def _calls(rows: pl.DataFrame, blocking: pl.DataFrame, threads: dict[int, int]) -> tuple[Calls, Int64]:
    """The host's side, and per activity the position of its launch among the calls."""
    launches = (
        rows.with_row_index("at")
        .filter(pl.col("launch").is_not_null() & (pl.col("launch_start_ns") <= pl.col("start_ns")))
        .unique("launch", keep="first", maintain_order=True)
    )
    n, m = launches.height, blocking.height
    time = np.concatenate(
        (launches["launch_start_ns"].to_numpy(), (blocking["start_ns"] + blocking["dur_ns"]).to_numpy())
    )
    begin = np.concatenate((launches["launch_start_ns"].to_numpy(), blocking["start_ns"].to_numpy()))
    thread = np.concatenate((launches["launch_thread"].to_numpy(), blocking["thread"].to_numpy())).astype(np.int64)
    chain = np.array([threads[t] for t in thread.tolist()], dtype=np.int64)
    kind = np.repeat((_LAUNCH, _BLOCK_END), (n, m))
    order = np.lexsort((kind, time, chain))
    time, begin, chain = time[order], begin[order], chain[order]
    before = np.where(np.diff(chain, prepend=-1) == 0, np.arange(n + m) - 1, NO_ROW)
    first_ns = np.concatenate((rows["start_ns"].to_numpy(), begin)).min(initial=2**62)
    idle_from = np.where(before == NO_ROW, first_ns, time[before])
    awaited, rest = np.full(n + m, NO_ROW), np.zeros(n + m, np.int64)
    blocked = kind[order] == _BLOCK_END
    found, rests = _awaited(rows, blocking)
    row = np.where(blocked, order - n, NO_ROW)
    awaited[blocked], rest[blocked] = found[row[blocked]], rests[row[blocked]]
    begin = np.maximum(begin, idle_from)
    rest = np.minimum(rest, time - begin)
    launch = np.full(rows.height, NO_ROW)
    launch[launches["at"].to_numpy()[order[~blocked]]] = np.flatnonzero(~blocked)
    return Calls(time, before, idle_from, begin, rest, awaited, row, chain), launch


def _awaited(rows: pl.DataFrame, blocking: pl.DataFrame) -> tuple[Int64, Int64]:
    """Per blocking call what it waited for, and what it lasted beyond.

    A copy call waited for its copy, whose record may end a little after it. For other calls the file does not say: it
    is taken to be the activity that ended last inside the call, of those that its process launched before it.
    """
    process, mine = rows["process"].cast(pl.String).fill_null("").to_list(), blocking["process"].to_list()
    ends = rows["end_ns"].to_numpy()
    launched = rows["launch_start_ns"].fill_null(-(2**62)).to_numpy()
    starts = rows["start_ns"].to_numpy()
    by_end = np.argsort(ends, kind="stable")
    begin = blocking["start_ns"].to_numpy()
    end = begin + blocking["dur_ns"].to_numpy()
    at = np.searchsorted(ends[by_end], end + _TOUCH_NS, side="right") - 1
    found = np.full(len(begin), NO_ROW)
    rest = end - begin
    copies = blocking["copy"].to_list()
    for i, last in enumerate(at.tolist()):
        if copies[i] is not None and starts[copies[i]] < end[i]:
            found[i], rest[i] = copies[i], end[i] - ends[copies[i]]
            continue
        for one in by_end[last::-1] if last >= 0 else ():
            if ends[one] <= begin[i] + _TOUCH_NS:
                break
            if launched[one] <= begin[i] and starts[one] < end[i] and process[one] == mine[i]:
                found[i], rest[i] = one, end[i] - ends[one]
                break
    return found, rest


def _work(rows: pl.DataFrame, launch: Int64, calls: Calls) -> tuple[Work, int, int]:
    start, dur = rows["start_ns"].to_numpy(), rows["dur_ns"].to_numpy()
    end = start + dur
    before = _before_on_stream(rows)
    free = np.where(before == NO_ROW, start, end[before])
    called = np.where(launch == NO_ROW, start, calls.time_ns[launch] if len(calls) else start)
    returned = rows["launch_end_ns"].fill_null(2**62).to_numpy()
    queued = (before != NO_ROW) & (returned <= free + _TOUCH_NS)
    met_idle = (launch != NO_ROW) & (free <= called + _TOUCH_NS) & (before != NO_ROW)
    gap_usual, between_kernels = _usual_gaps(rows, start - free, queued, before)
    latency_typical = _typical(start - called, met_idle, _LATENCY_NS)
    gap = np.minimum(start - free, gap_usual)
    latency = np.minimum(start - called, latency_typical)
    known = (before != NO_ROW) | (launch != NO_ROW)
    expected = np.maximum(
        np.where(before == NO_ROW, -(2**62), free + gap), np.where(launch == NO_ROW, -(2**62), called + latency)
    )
    late = np.where(known, start - expected, 0)
    since = np.where(before == NO_ROW, expected, np.maximum(expected, free))
    has_returned = returned < start + _TOUCH_NS
    since = np.where(has_returned, np.maximum(since, returned), since)  # what ended earlier held nothing up
    across = _ended_meanwhile(rows, end, np.where(late > 0, since, start), start)
    across_ns = np.where(across == NO_ROW, 0, start - end[across])
    alone = (late > 0) & (across == NO_ROW)
    slow = ~_is(rows, "memcpy") & (start - free > _SLOW_CALL_NS)
    ready = _launch_ready(start, returned, called + latency_typical, slow=slow)
    by_launch = alone & (launch != NO_ROW) & ((before == NO_ROW) | (ready > free + gap + _TOUCH_NS))
    latency = np.where(by_launch, start - called, latency)
    by_stream = alone & ~by_launch
    gap = np.where(by_stream, start - free, gap)
    # How long an activity stood still after its launch had returned, on a stream that was free.
    delay = start - np.where(before == NO_ROW, returned, np.maximum(returned, free))
    unexplained = np.where(by_stream & (launch != NO_ROW) & has_returned, late, 0)
    inside = start > rows.select(pl.col("start_ns").min().over("process", "device")).to_series().to_numpy()
    unexplained = np.where(by_launch & inside & (delay > _LONG_DELAY_NS), delay, unexplained)
    call_end = np.minimum(returned, start)
    return (
        Work(start, dur, before, gap, launch, latency, across, across_ns, unexplained, by_launch, call_end),
        between_kernels,
        latency_typical,
    )


def _launch_ready(start: Int64, returned: Int64, usual: Int64, *, slow: Bool) -> Int64:
    """When the launch of each activity was ready: from then on the activity waited for something else.

    That is when its call returned. An activity that began while its call was running was ready after the usual latency:
    the call of a copy waits for the copy, and so for its stream. Where a kernel began long after its stream had become
    free and its call was still running, the call itself was slow, as in a module load: it was ready when it began.

    Args:
        start: starts of the activities, in nanoseconds as all of these.
        returned: ends of the launch calls, far in the future where none is known.
        usual: starts of the launch calls plus the usual latency.
        slow: kernels that began long after their stream had become free.
    """
    running = np.where(slow, start, np.minimum(usual, start))
    return np.where(returned < start + _TOUCH_NS, returned, running)


def _usual_gaps(rows: pl.DataFrame, gap: Int64, queued: Bool, before: Int64) -> tuple[Int64, int]:
    """Per activity the usual time behind the one before it on its stream, and that between two kernels.

    Copies and memsets take other times to begin than kernels: each pair of kinds has its own.
    """
    kernel = _is(rows, "kernel")
    pair = 2 * np.append(kernel, True)[before] + kernel
    defaults = (_COPY_GAP_NS, _KERNEL_GAP_NS, _COPY_GAP_NS, _KERNEL_GAP_NS)
    usual = np.array([_typical(gap, queued & (pair == p), default) for p, default in enumerate(defaults)])
    return usual[pair], int(usual[-1])


def _is(rows: pl.DataFrame, kind: str) -> Bool:
    """Which activities are of a kind."""
    found: Bool = (rows["kind"].cast(pl.String) == kind).to_numpy()
    return found


def _typical(delay: Int64, samples: Bool, default: int) -> int:
    """The median of the sampled delays, the default where there are few."""
    return int(np.median(delay[samples])) if samples.sum() >= _FEW else default


def _before_on_stream(rows: pl.DataFrame) -> Int64:
    """Per activity the one before it on its stream that ends last, `NO_ROW` for the first."""
    stream = rows.select("process", "device", "stream").with_row_index("at")
    before = stream.select(pl.col("at").cast(pl.Int64).shift().over("process", "device", "stream"))["at"]
    return before.fill_null(NO_ROW).to_numpy()


def _ended_meanwhile(rows: pl.DataFrame, end: Int64, after_ns: Int64, start: Int64) -> Int64:
    """Per activity the one of another stream of its device that that ended last between both, `NO_ROW` without one."""
    found = np.full(len(start), NO_ROW)
    place = rows.select(
        pl.format("{} {}", pl.col("device").fill_null(NO_ROW), pl.col("process").cast(pl.String).fill_null(""))
    )
    device = place.to_series().cast(pl.Categorical).to_physical().to_numpy()
    stream = rows["stream"].fill_null(NO_ROW).to_numpy()
    for one in np.unique(device):
        mine = np.flatnonzero(device == one)
        if len(np.unique(stream[mine])) == 1:
            continue
        by_end = mine[np.argsort(end[mine], kind="stable")]
        late = mine[after_ns[mine] < start[mine]]
        at = np.searchsorted(end[by_end], start[late] + _TOUCH_NS, side="right") - 1
        for i, last in zip(late.tolist(), at.tolist(), strict=True):
            for other in by_end[last::-1] if last >= 0 else ():
                if end[other] < after_ns[i] - _TOUCH_NS:
                    break
                if stream[other] != stream[i] and start[other] < start[i]:
                    found[i] = other
                    break
    return found
