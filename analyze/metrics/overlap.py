"""What ran at the same time (docs/definitions.md)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import polars as pl
from msgspec import Struct

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.metrics.device_time import DEVICES, HEADLINE, DeviceTime
from analyze.metrics.foundations import TIMELINES
from analyze.metrics.question import Answers, Question
from analyze.timeline import CLASSES, DeviceTimeline, intersect, union
from analyze.units import duration, percent

_PLURALS = {"copy": "copies"}


class StreamTime(Struct, frozen=True):
    """One stream.

    Attributes:
        stream: stream number, None where the file has none.
        activities: how many.
        busy_ns: time during which it runs something.
    """

    stream: int | None
    activities: int
    busy_ns: int


class PairOverlap(Struct, frozen=True):
    """Two classes of work.

    Attributes:
        first: one of computation, communication, copy.
        second: another.
        overlapped_ns: both run.
        share_of_first: of the first one's time, 0..1.
        share_of_second: of the second one's time, 0..1: what the first hides of it.
    """

    first: str
    second: str
    overlapped_ns: int
    share_of_first: float
    share_of_second: float


class Overlap(Struct, frozen=True):
    """Concurrency on one device.

    Attributes:
        concurrent_ns: two or more activities run.
        parallelism: added-up durations over busy time, None without busy time.
        streams: per stream, most busy first.
        pairs: per pair of classes that both occur.
    """

    concurrent_ns: int
    parallelism: float | None
    streams: tuple[StreamTime, ...]
    pairs: tuple[PairOverlap, ...]


def measure_overlap(line: DeviceTimeline, concurrent_ns: int) -> Overlap:
    """Overlap on one device inside its window."""
    owning = line.owning
    busy = line.busy.total_ns
    total = int((owning["end_ns"] - owning["start_ns"]).sum())
    return Overlap(concurrent_ns, total / busy if busy else None, _streams(owning), tuple(_pairs(line)))


def _streams(owning: pl.DataFrame) -> tuple[StreamTime, ...]:
    found = [
        StreamTime(stream, rows.height, union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()).total_ns)
        for (stream,), rows in owning.group_by("stream", maintain_order=True)
    ]
    return tuple(sorted(found, key=lambda s: (-s.busy_ns, s.stream is None, s.stream or 0)))


def _pairs(line: DeviceTimeline) -> list[PairOverlap]:
    pairs = []
    for (i, first), (j, second) in combinations(enumerate(CLASSES), 2):
        a, b = line.by_class[i], line.by_class[j]
        if a.total_ns and b.total_ns:
            both = intersect(a, b).total_ns
            pairs.append(PairOverlap(first, second, both, both / a.total_ns, both / b.total_ns))
    return pairs


def section(overlap: Overlap, device: DeviceTime) -> Section:
    """How much ran at the same time on a device, and where."""
    window_ns = device.window_ns
    text = "no two activities ran at once"
    if overlap.concurrent_ns:
        share = percent(overlap.concurrent_ns / window_ns)
        text = (
            f"two or more activities ran at once for {duration(overlap.concurrent_ns)}, {share} of the window; while "
            f"the GPU was busy, {overlap.parallelism or 1:.2f} ran on average"
        )
    hidden = [
        f"{pair.first} hides {percent(pair.share_of_second)} of {_PLURALS.get(pair.second, pair.second)}"
        for pair in overlap.pairs
        if pair.overlapped_ns
    ]
    streams = Table(
        title="Streams",
        columns=(
            Column("stream", Kind.TEXT),
            Column("activities", Kind.COUNT),
            Column("busy", Kind.TIME),
            Column("of window", Kind.SHARE),
        ),
        rows=tuple(
            (_stream(s.stream), s.activities, s.busy_ns, s.busy_ns / window_ns if window_ns else None)
            for s in overlap.streams
        ),
    )
    first = Stat("Overlap", "; ".join((text, *hidden)), brief=overlap.concurrent_ns > 0)
    return Section("overlap", "Overlap", (first, *_communication(overlap, device), streams))


def _communication(overlap: Overlap, device: DeviceTime) -> Iterator[Stat]:
    """Collectives: how long they run alone, and how long computation hides them."""
    hidden = next((p.overlapped_ns for p in overlap.pairs if p.second == "communication"), 0)
    exposed = device.exposed_communication_ns
    whole = exposed + hidden
    if whole:
        share = percent(exposed / device.window_ns)
        text = (
            f"collectives ran for {duration(whole)}: {duration(exposed)} exposed, {share} of the window; "
            f"{duration(hidden)} hidden by computation, {percent(hidden / whole)} of their time"
        )
        yield Stat("Communication", text, brief=False)


def _stream(stream: int | None) -> str:
    return "not recorded" if stream is None else str(stream)


def _measure(answers: Answers) -> tuple[Overlap, ...]:
    lines, devices = answers.ask(TIMELINES), answers.ask(DEVICES)
    return tuple(measure_overlap(line, device.concurrent_ns) for line, device in zip(lines, devices, strict=True))


def _section(answers: Answers) -> Section | None:
    main = answers.ask(HEADLINE)
    return section(answers.ask(QUESTION)[answers.ask(DEVICES).index(main)], main) if main else None


QUESTION = Question("overlap", _measure, answer=list[Overlap], section=_section)
