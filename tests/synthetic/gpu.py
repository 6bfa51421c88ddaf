"""A GPU and the host threads that feed it, written from what such hardware is seen to do.

Host threads run in program order, each with a clock of its own; they hand over to each other. The device takes work
in the order in which it is launched: a stream is a queue, an event makes one stream wait for another, copies share an
engine per direction, and a queue holds 1,024 launches. Nothing launched later can move what was launched before, so
that each activity gets its time at its launch.

Every length is drawn by a key that names the place in the program, never by what was drawn before. Two runs of one
seed that differ in one cause therefore differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from math import exp
from statistics import NormalDist
from typing import Any

from tests.synthetic.gpu_rows import Rows

COMPUTE, NCCL, COPIES = 7, 20, 24  # streams as PyTorch numbers them
QUEUE = 1_024  # launches that a stream holds
MAIN, AUTOGRAD = 51_200, 51_237  # threads; the first is the process too
_NORMAL = NormalDist()
Key = tuple[object, ...]


@dataclass(frozen=True)
class Draw:
    """Random lengths in nanoseconds by key."""

    seed: int

    def unit(self, *key: object) -> float:
        """From 0 to 1, both excluded."""
        digest = blake2b(repr((self.seed, key)).encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "big") + 0.5) / 2**64

    def between(self, low: float, high: float, *key: object) -> int:
        return round(low + (high - low) * self.unit(*key))

    def near(self, median: float, spread: float, *key: object) -> int:
        """Lognormal, within three deviations of the median."""
        z = min(max(_NORMAL.inv_cdf(self.unit(*key)), -3.0), 3.0)
        return max(round(median * exp(spread * z)), 1)


@dataclass(frozen=True)
class Work:
    """A kernel, copy or memset to be launched."""

    name: str
    ns: int
    kind: str = "kernel"
    grid: tuple[int, int, int] = (864, 1, 1)
    size_bytes: int = 0


@dataclass
class Stream:
    """A queue of the device: when its last activity ends and what that is, and when each one of them began."""

    end_ns: int = 0
    last: str = ""
    starts: list[int] = field(default_factory=list)
    not_before_ns: int = 0


@dataclass(frozen=True)
class Host:
    """How fast the host of one run is: medians in nanoseconds."""

    call: int = 3_800
    before: int = 3_600  # of an op, until its launch call
    after: int = 1_300
    python: int = 4_500


class Machine:
    """The device, its streams and engines, and the rows of everything that happens."""

    def __init__(self, draw: Draw, host: Host, rows: Rows) -> None:
        self.draw, self.host, self.rows = draw, host, rows
        self.streams: dict[int, Stream] = {}
        self.engines: dict[str, list[tuple[int, int]]] = {"HtoD": [], "DtoH": []}
        self.first_ns: int | None = None
        self.last_ns = 0

    @property
    def window_ns(self) -> int:
        """From the first start of an activity to the last end."""
        return self.last_ns - (self.first_ns or 0)

    def stream(self, number: int) -> Stream:
        return self.streams.setdefault(number, Stream())

    def slot_ns(self, stream: int, now: int) -> int:
        """When the stream's queue has room for a launch."""
        starts = self.stream(stream).starts
        return max(now, starts[-QUEUE] + 300) if len(starts) >= QUEUE else now

    def gap_ns(self, before: str, work: Work, key: Key) -> int:
        """From the end of an activity to the start of the next one on its stream, which was queued meanwhile."""
        if work.kind == "memcpy":
            return self.draw.between(*((3_000, 6_000) if before == "kernel" else (1_000, 1_500)), "gap", key)
        if before == "memcpy":
            return self.draw.between(1_500, 3_000, "gap", key)
        return min(max(self.draw.near(1_150, 0.2, "gap", key), 900), 2_000)

    def begin(self, stream: int, work: Work, arrival_ns: int, gap_ns: int) -> int:
        """Put work on a stream; its start."""
        queue = self.stream(stream)
        start = max(arrival_ns, queue.not_before_ns, queue.end_ns + gap_ns if queue.last else 0)
        if work.kind == "memcpy":
            start = self._engine_ns("DtoH" if "DtoH" in work.name else "HtoD", start, work.ns)
        queue.end_ns, queue.last, queue.not_before_ns = start + work.ns, work.kind, 0
        queue.starts.append(start)
        if work.ns:
            self.first_ns = start if self.first_ns is None else min(self.first_ns, start)
            self.last_ns = max(self.last_ns, start + work.ns)
        return start

    def _engine_ns(self, engine: str, ready_ns: int, ns: int) -> int:
        """The first time at which a copy engine is free for so long."""
        taken, start = self.engines[engine], ready_ns
        for begin, end in sorted(taken):
            if start + ns > begin and start < end:
                start = end + 200
        taken.append((start, start + ns))
        return start

    def idle_from_ns(self) -> int:
        """When all that was launched is done."""
        return max((stream.end_ns for stream in self.streams.values()), default=0)


class Thread:
    """A host thread: its clock, and what it records."""

    def __init__(self, machine: Machine, tid: int, now: int) -> None:
        self.machine, self.tid, self.now = machine, tid, now
        self.draw, self.rows = machine.draw, machine.rows

    def spend(self, ns: int) -> None:
        self.now += ns

    def python(self, *key: object, times: float = 1.0) -> None:
        """Python between two ops."""
        self.now += self.draw.near(times * self.machine.host.python, 0.35, "python", key)

    def take_over(self, other: Thread, *key: object) -> None:
        """Go on when another thread has woken this one."""
        self.now = max(self.now, other.now + self.draw.between(15_000, 60_000, "wake", key))

    @contextmanager
    def op(self, name: str, *key: object, **args: Any) -> Iterator[None]:
        """An op, with its dispatch before and after what it calls."""
        start, row = self.now, self.rows.open_op()
        self.now += self.draw.near(self.machine.host.before, 0.3, "before", name, key)
        yield
        self.now += self.draw.near(self.machine.host.after, 0.3, "after", name, key)
        self.rows.close_op(row, name, self.tid, start, self.now - start, args)

    @contextmanager
    def inner(self, name: str, *key: object, **args: Any) -> Iterator[None]:
        """An op that another one calls: it takes little time of its own."""
        start, row = self.now, self.rows.open_op()
        self.now += self.draw.near(700, 0.3, "before", name, key)
        yield
        self.now += self.draw.near(300, 0.3, "after", name, key)
        self.rows.close_op(row, name, self.tid, start, self.now - start, args)

    @contextmanager
    def range(self, name: str, category: str = "user_annotation") -> Iterator[None]:
        start = self.now
        yield
        self.rows.add(category, name, MAIN, self.tid, start, self.now - start)

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A Python frame, where the run records them."""
        start = self.now
        yield
        if self.rows.stacks:
            self.rows.add("python_function", name, MAIN, self.tid, start, self.now - start)

    def call(self, name: str, ns: int) -> int:
        """An API call that launches nothing; its correlation id."""
        correlation = self.rows.call(name, self.tid, self.now, ns)
        self.now += ns
        return correlation

    def launch(self, work: Work, *key: object, stream: int = COMPUTE, loads_ns: int = 0) -> None:
        """A launch call, which stalls while the queue is full.

        Args:
            work: what is launched.
            key: where in the program.
            stream: the stream.
            loads_ns: what loading a module adds to the call, before the kernel is queued.
        """
        api = {"kernel": "cudaLaunchKernel", "memset": "cudaMemsetAsync", "memcpy": "cudaMemcpyAsync"}[work.kind]
        start = self.now
        slot = self.machine.slot_ns(stream, start)
        usual = self.draw.near(self.machine.host.call, 0.2, "call", key)
        arrival = slot + loads_ns + self._latency(work, key)
        begins = self.machine.begin(stream, work, arrival, self._gap(stream, work, key))
        self.now = max(start + usual, slot + usual // 2) + loads_ns
        self._record(api, start, work, begins, stream)

    def _latency(self, work: Work, key: Key) -> int:
        """From the start of a launch call to the start of its activity on an idle stream."""
        low, high = (4_000, 9_000) if work.kind == "memcpy" else (3_000, 8_000)
        return self.draw.between(low, high, "latency", key)

    def _gap(self, stream: int, work: Work, key: Key) -> int:
        return self.machine.gap_ns(self.machine.stream(stream).last, work, key)

    def _record(self, api: str, start: int, work: Work, begins: int, stream: int) -> None:
        correlation = self.rows.call(api, self.tid, start, self.now - start)
        self.rows.activity(work.kind, work.name, begins, work.ns, stream, correlation, work.grid, work.size_bytes)

    def graph(self, works: Sequence[Work], *key: object, gaps: Sequence[int] = ()) -> None:
        """One launch of a CUDA graph whose kernels follow each other by about a microsecond."""
        start = self.now
        slot = self.machine.slot_ns(COMPUTE, start)
        self.now = slot + self.draw.near(9_000 + 60 * len(works), 0.1, "graph", key)
        correlation = self.rows.call("cudaGraphLaunch", self.tid, start, self.now - start)
        arrival = slot + self.draw.between(7_000, 12_000, "graph latency", key)
        for number, work in enumerate(works):
            gap = gaps[number] if gaps else self.draw.between(900, 1_200, "node gap", key, number)
            begins = self.machine.begin(COMPUTE, work, arrival, gap)
            self.rows.activity(
                work.kind, work.name, begins, work.ns, COMPUTE, correlation, work.grid, work.size_bytes, node=number
            )

    def copy_in(self, work: Work, *key: object, waits: bool) -> None:
        """A copy from pageable memory: the call returns when the last piece is on its way, before the record ends.

        Args:
            work: the copy.
            key: where in the program.
            waits: whether a synchronisation follows, as without `non_blocking=True`.
        """
        start = self.now
        begins = self.machine.begin(COMPUTE, work, start + self._latency(work, key), self._gap(COMPUTE, work, key))
        early = self.draw.between(2_000, 4_000, "early", key)
        self.now = max(start + 2_000, begins + work.ns - early)
        self._record("cudaMemcpyAsync", start, work, begins, COMPUTE)
        if waits:
            self.synchronize(*key)

    def copy_out(self, work: Work, *key: object, pinned: bool) -> None:
        """A copy to the host that is waited for: inside its own call, or from pinned memory in the one after it."""
        start = self.now
        begins = self.machine.begin(COMPUTE, work, start + self._latency(work, key), self._gap(COMPUTE, work, key))
        usual = self.draw.near(self.machine.host.call, 0.2, "call", key)
        back = begins + work.ns + self.draw.between(3_000, 10_000, "back", key)
        self.now = start + usual if pinned else max(start + usual, back)
        self._record("cudaMemcpyAsync", start, work, begins, COMPUTE)
        self.spend(self.draw.near(600, 0.3, "between", key))
        self.synchronize(*key)

    def synchronize(self, *key: object, name: str = "cudaStreamSynchronize") -> None:
        """Wait for the kernels' stream, or for the device."""
        own = name == "cudaStreamSynchronize"
        done = self.machine.stream(COMPUTE).end_ns if own else self.machine.idle_from_ns()
        usual = self.draw.between(1_200, 3_000, "nothing to wait for", key)
        back = done + self.draw.between(3_000, 10_000, "returns", key)
        self.call(name, max(usual, back - self.now if done > self.now else 0))

    def free(self, *key: object, ns: int) -> None:
        """`cudaFree`, which waits for the device first."""
        self.call("cudaFree", max(self.machine.idle_from_ns() - self.now, 0) + ns)

    def order(self, before: int, after: int, *key: object) -> None:
        """Make a stream wait for what another one has to do by now."""
        self.call("cudaEventRecord", self.draw.near(900, 0.2, "record", key))
        ready = self.machine.stream(before).end_ns
        if ready:
            ready += self.draw.between(1_500, 3_500, "event", key)
        queue = self.machine.stream(after)
        queue.not_before_ns = max(queue.not_before_ns, ready)
        self.call("cudaStreamWaitEvent", self.draw.near(800, 0.2, "wait", key))
