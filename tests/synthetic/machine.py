"""A machine with one host thread and one device: what the program under test sees, and the truth it should find.

The truth is kept while the run is made: the host notes which state it is in as it moves on, the device notes when it
stood still and which launch ended that. No interval algebra of the program is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.synthetic.writer import STREAM, KinetoWriter

HOST_STATES = ("host_sync_ns", "host_data_loading_ns", "host_runtime_ns", "host_op_ns", "host_other_ns")


@dataclass
class Costs:
    """Fixed costs of the machine in nanoseconds."""

    launch_call: int = 4_200
    launch_latency: int = 5_600  # from the start of the launch call to the earliest start on an idle device
    device_gap: int = 1_100  # between two queued activities
    sync_return: int = 9_000
    dispatch: int = 3_500
    python: int = 2_500


@dataclass
class Truth:
    """What the run was made of.

    Attributes:
        window_ns: first activity start to last activity end.
        busy_ns: by class: computation, copy.
        idle_ns: by part of the ledger.
        gaps: (start, length) of each gap.
    """

    window_ns: int = 0
    busy_ns: Counter[str] = field(default_factory=Counter)
    idle_ns: Counter[str] = field(default_factory=Counter)
    gaps: list[tuple[int, int]] = field(default_factory=list)


class Machine:
    """Runs a program step by step and writes down rows and truth."""

    def __init__(self, writer: KinetoWriter, costs: Costs | None = None, start_ns: int = 1_000_000) -> None:
        self.writer = writer
        self.costs = costs or Costs()
        self.now = start_ns
        self.free = 0  # when the device has finished everything queued
        self.streams: dict[int, int] = {}  # the same per stream
        self.first: int | None = None
        self.log: list[tuple[int, int, str]] = []  # (start, end, state) of the host, back to back
        self.truth = Truth()
        self._state = "host_other_ns"
        self._stack: list[str] = []

    def vary(self, ns: int) -> int:
        """A cost of the machine as it is this time; the same each time here."""
        return ns

    def spend(self, ns: int) -> None:
        """Let the host work in its present state."""
        if ns > 0:
            self.log.append((self.now, self.now + ns, self._state))
            self.now += ns

    @contextmanager
    def state(self, name: str) -> Iterator[None]:
        """Host state for a while; an inner sync, loading or API call wins over an outer op, as in the definitions."""
        outer = self._state
        if HOST_STATES.index(name) < HOST_STATES.index(outer):
            self._state = name
        try:
            yield
        finally:
            self._state = outer

    @contextmanager
    def op(self, name: str, **args: object) -> Iterator[None]:
        """A framework op; dispatch cost before and after what it does."""
        start = self.now
        with self.state("host_op_ns"):
            self._stack.append(name)
            row = self.writer.reserve()
            self.spend(self.vary(self.costs.dispatch))
            yield
            self.spend(self.vary(self.costs.dispatch // 3))
            self._stack.pop()
        self.writer.op(row, name, start, self.now - start, **args)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        """A user range; one named DataLoader is a state of its own."""
        start, row = self.now, self.writer.reserve()
        if "dataloader" in name.lower():
            with self.state("host_data_loading_ns"):
                yield
        else:
            yield
        self.writer.range(row, name, start, self.now - start)

    def launch(
        self,
        name: str,
        dur_ns: int,
        *,
        api: str = "cudaLaunchKernel",
        call_ns: int | None = None,
        kind: str = "kernel",
        after: int = 0,
        **args: Any,
    ) -> int:
        """Launch an activity; its stream starts it when it is free, the launch has arrived and `after` has come.

        The truth holds for runs on one stream.

        Returns:
            End of the activity.
        """
        begin = self.now
        correlation = self.writer.next_correlation()
        with self.state("host_runtime_ns"):
            self._state = "launch"
            self.spend(self.vary(self.costs.launch_call) if call_ns is None else call_ns)
        gap, latency = self.vary(self.costs.device_gap), self.vary(self.costs.launch_latency)
        stream = args.get("stream", STREAM)
        start = max(begin + latency, after, self.streams.get(stream, -gap) + gap)
        self._account(start, begin, self.now)
        self.streams[stream] = start + dur_ns
        self.free = max(self.free, start + dur_ns)
        self.truth.busy_ns["computation" if kind == "kernel" else "copy"] += dur_ns
        self.truth.window_ns = self.free - (self.first or start)
        self.writer.api(api, begin, self.now - begin, correlation)
        self.writer.activity(kind, name, start, dur_ns, correlation, **args)
        return start + dur_ns

    def synchronize(self, api: str = "cudaStreamSynchronize") -> None:
        """Wait until the device has finished."""
        begin = self.now
        with self.state("host_sync_ns"):
            self.spend(max(self.free - self.now, 0) + self.costs.sync_return)
        self.writer.api(api, begin, self.now - begin, self.writer.next_correlation())

    def call(self, api: str, ns: int) -> None:
        """Any other API call."""
        begin = self.now
        with self.state("host_runtime_ns"):
            self.spend(ns)
        self.writer.api(api, begin, ns, self.writer.next_correlation())

    def _account(self, start: int, call_begin: int, call_end: int) -> None:
        """Give the time since the device stood still to its owners: a walk over the host's log."""
        if self.first is None:
            self.first = start
            return
        gap = start - self.free
        if gap <= 0:
            return
        self.truth.gaps.append((self.free, gap))
        if call_end <= self.free:
            self.truth.idle_ns["device_queue_ns"] += gap
            return
        self.truth.idle_ns["launch_delay_ns"] += max(start - max(call_end, self.free), 0)
        self.truth.idle_ns["launch_call_ns"] += max(min(call_end, start) - max(call_begin, self.free), 0)
        for begin, end, state in reversed(self.log):
            if end <= self.free:
                break
            covered = min(end, call_begin, start) - max(begin, self.free)
            if covered > 0:
                self.truth.idle_ns["host_runtime_ns" if state == "launch" else state] += covered
