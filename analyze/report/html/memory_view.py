"""A memory snapshot as pictures: who held how much over the events, the stacks at the peak, the map of segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from analyze import palette
from analyze.arrays import Int64
from analyze.inert import printable
from analyze.report.html.columns import Names, deltas
from analyze.snapshot import BEFORE_RECORDING, DeviceMemory, Snapshot
from analyze.snapshot.device import NO_EVENTS, PINNED
from analyze.snapshot.replay import AllocatorReplay, replay
from analyze.snapshot.stacks import Frame
from analyze.snapshot.tables import Events, Segment
from analyze.units import memory

WIDTH, HEIGHT = 1000, 240
_SAMPLES, _BANDS, _SEGMENTS = 240, 7, 60
_NODES = 20_000
_OWN, _LIBRARY, _NATIVE = 3, 5, 6  # kinds of nodes, as static/data.js names them
_COLOURS = (palette.SKY, palette.ORANGE, palette.GREEN, palette.PURPLE, palette.BLUE, palette.VERMILION, palette.YELLOW)
_STATES = {"active": palette.BLUE, "pending": palette.ORANGE}
_REST = "all others"


class Band(Struct, frozen=True):
    """One place that allocates: its label, its colour, and its area in the picture."""

    label: str
    colour: str
    points: str


class BlockView(Struct, frozen=True):
    """A piece of a segment in permille of the largest segment's width."""

    x: float
    width: float
    fill: str


class SegmentView(Struct, frozen=True):
    """One segment: what its title says, its width in permille of the largest, and its pieces that are in use."""

    title: str
    width: float
    blocks: tuple[BlockView, ...]


class MemoryView(Struct, frozen=True):
    """The pictures of one device.

    Attributes:
        label: of the device.
        bands: requested memory by who allocated it, stacked, the largest at the peak first.
        reserved: points of the line of reserved memory.
        top: what the full height stands for.
        peak_x: where the peak is, in permille of the events.
        ooms: where allocations failed, likewise.
        segments: the largest ones.
        left_out: segments that are not drawn.
    """

    label: str
    bands: tuple[Band, ...]
    reserved: str
    top: str
    peak_x: float
    ooms: tuple[float, ...]
    segments: tuple[SegmentView, ...]
    left_out: int


class _Device(Struct, frozen=True):
    """One device with its events replayed."""

    measured: DeviceMemory
    events: Events
    segments: Sequence[Segment]
    played: AllocatorReplay


def memory_views(snapshot: Snapshot, devices: Sequence[DeviceMemory]) -> tuple[MemoryView, ...]:
    """The pictures of every device."""
    return tuple(_view(snapshot, one) for one in _played(snapshot, devices))


def _played(snapshot: Snapshot, devices: Sequence[DeviceMemory]) -> Iterator[_Device]:
    for measured in devices:
        if measured.id == PINNED:
            events, segments = snapshot.pinned_trace or NO_EVENTS, snapshot.pinned_segments
        else:
            events = snapshot.traces[measured.id] if measured.id < len(snapshot.traces) else NO_EVENTS
            segments = tuple(one for one in snapshot.segments if one.device == measured.id)
        known = snapshot.has_segments or measured.id == PINNED
        yield _Device(measured, events, segments, replay(events, segments, end_known=known))


def _view(snapshot: Snapshot, one: _Device) -> MemoryView:
    count, played = len(one.events), one.played
    at = _instants(played)
    top = max(played.reserved.peak_bytes, played.requested.peak_bytes, 1)
    bands = tuple(_bands(snapshot, one, at, top)) if count else ()
    reserved = played.reserved.values[at] if count else np.empty(0, np.int64)
    shown = sorted(one.segments, key=lambda segment: -segment.total_bytes)[:_SEGMENTS]
    largest = max((segment.total_bytes for segment in shown), default=1) or 1
    return MemoryView(
        label=one.measured.label,
        bands=bands,
        reserved=" ".join(f"{x:.1f},{HEIGHT * (1 - value / top):.1f}" for x, value in _places(reserved)),
        top=memory(top),
        peak_x=WIDTH * max(one.measured.peak_event, 0) / max(count, 1),
        ooms=tuple(WIDTH * i / max(count, 1) for i, action in enumerate(one.events.action) if action == "oom"),
        segments=tuple(_segment(segment, largest) for segment in shown),
        left_out=len(one.segments) - len(shown),
    )


def _instants(played: AllocatorReplay) -> Int64:
    """Of many equal parts of the events the one with most requested memory: no peak is lost."""
    values = played.requested.values
    if not len(values):
        return np.empty(0, np.int64)
    edges = np.unique(np.linspace(0, len(values), min(_SAMPLES, len(values)) + 1).astype(np.int64))
    return np.array([low + int(values[low:high].argmax()) for low, high in pairwise(edges)])


def _places(values: Int64) -> Iterator[tuple[float, int]]:
    last = max(len(values) - 1, 1)
    yield from ((WIDTH * i / last, int(value)) for i, value in enumerate(values))


def _bands(snapshot: Snapshot, one: _Device, at: Int64, top: int) -> Iterator[Band]:
    """Stacked areas, from the bottom; what is neither named nor from before is one band."""
    labels = [held.label for held in one.measured.at_peak.by_site[:_BANDS]]
    number = {label: i for i, label in enumerate([*labels, _REST])}
    early = next((label for label in labels if label.startswith(BEFORE_RECORDING.split()[0])), _REST)
    amounts = np.zeros((len(number), len(at) + 1), np.int64)
    made = np.flatnonzero(one.played.is_alloc)
    stack = np.array(one.events.stack, np.int64)[made]
    site = {int(s): number.get(snapshot.stacks.site(int(s)), number[_REST]) for s in np.unique(stack)}
    band = np.array([site[int(s)] for s in stack], np.int64)
    size = np.array(one.events.size_bytes, np.int64)[made]
    begin, end = np.searchsorted(at, made, "left"), np.searchsorted(at, one.played.freed_at[made], "left")
    np.add.at(amounts, (band, begin), size)
    np.add.at(amounts, (band, end), -size)
    for old in one.played.early:
        amounts[number[early], 0] += old.size_bytes
        amounts[number[early], int(np.searchsorted(at, old.freed_at, "left"))] -= old.size_bytes
    levels = np.cumsum(np.cumsum(amounts, axis=1)[:, :-1], axis=0)
    below = np.zeros(len(at), np.int64)
    for label, i in number.items():
        if (levels[i] > below).any():
            upper = [f"{x:.1f},{HEIGHT * (1 - value / top):.1f}" for x, value in _places(levels[i])]
            lower = [f"{x:.1f},{HEIGHT * (1 - value / top):.1f}" for x, value in _places(below)]
            colour = palette.GREY if label == _REST else _COLOURS[i % len(_COLOURS)]
            yield Band(printable(label), colour, " ".join((*upper, *reversed(lower))))
        below = levels[i]


def _segment(segment: Segment, largest: int) -> SegmentView:
    def width(size: int) -> float:
        return 1000 * size / largest

    blocks: list[BlockView] = []
    for block in segment.blocks:
        if not block.active:
            continue
        fill = _STATES["pending" if block.pending else "active"]
        x, wide = width(block.address - segment.address), width(block.size_bytes)
        last = blocks[-1] if blocks else None
        if last and last.fill == fill and x - last.x - last.width < 0.2:  # neighbours that no eye tells apart
            blocks[-1] = BlockView(last.x, x + wide - last.x, fill)
        else:
            blocks.append(BlockView(x, wide, fill))
    kind = " ".join(word for word in (segment.kind, "expandable" if segment.expandable else "") if word)
    return SegmentView(f"{memory(segment.total_bytes)}, {printable(kind)}", width(segment.total_bytes), tuple(blocks))


def memory_scene(snapshot: Snapshot, devices: Sequence[DeviceMemory]) -> dict[str, Any]:
    """The stacks of what was alive at the peaks, by device, for the icicle."""
    names, tree = Names(), _Tree()
    for one in _played(snapshot, devices):
        top = tree.node(-1, names.number(one.measured.label), 1)
        peak = one.measured.peak_event
        early = sum(old.size_bytes for old in one.played.early if old.freed_at > peak)
        if early:
            tree.add(tree.node(top, names.number(BEFORE_RECORDING), 1), early, 1)
        now = slice(max(peak, -1) + 1)
        alive = np.flatnonzero(one.played.is_alloc[now] & (one.played.freed_at[now] > peak))
        for number in np.unique(np.array(one.events.stack, np.int64)[alive]).tolist():
            mine = [i for i in alive.tolist() if one.events.stack[i] == number]
            at = top
            for frame in reversed(snapshot.stacks.of(number)):
                at = tree.node(at, names.number(frame.text), _kind(frame))
            if at == top:
                at = tree.node(top, names.number("no stack recorded"), 1)
            tree.add(at, sum(one.events.size_bytes[i] for i in mine), len(mine))
    return {"names": names.texts, "stacks": tree.columns()}


def _kind(frame: Frame) -> int:
    if not frame.python:
        return _NATIVE
    return _LIBRARY if frame.plumbing else _OWN


class _Tree:
    """Nodes with callers first; beyond `_NODES` what is new counts for its caller."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], int] = {}
        self._bytes: list[int] = []
        self._calls: list[int] = []

    def node(self, parent: int, name: int, kind: int) -> int:
        """The node of a frame below a caller, -1 at the top."""
        key = (parent, name, kind)
        if key not in self._known:
            if len(self._known) >= _NODES:
                return parent
            self._known[key] = len(self._known)
            self._bytes.append(0)
            self._calls.append(0)
        return self._known[key]

    def add(self, node: int, size_bytes: int, count: int) -> None:
        """Allocations of a node."""
        self._bytes[node] += size_bytes
        self._calls[node] += count

    def columns(self) -> dict[str, Any]:
        """The nodes as the browser reads them."""
        return {
            "parent": deltas(np.array([parent for parent, _, _ in self._known], np.int64)),
            "name": [name for _, name, _ in self._known],
            "kind": [kind for _, _, kind in self._known],
            "calls": self._calls,
            "bytes": self._bytes,
        }
