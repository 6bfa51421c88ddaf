"""The timeline as a small picture: what each stream ran, and why the device was idle, column by column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Float64, Int64
from analyze.inert import printable
from analyze.kernels.categories import CATEGORIES, REST
from analyze.metrics import Measures
from analyze.metrics.foundations import GAP_PARTS, TIMELINES
from analyze.report.axis.gaps import IDLE_STATES, main_states, states_of_gaps
from analyze.report.html.looks import GROUP_COLOURS, look_of
from analyze.settings import Definitions
from analyze.timeline import DeviceTimeline
from analyze.timeline.intervals import union
from analyze.units import duration, plural

COLUMNS, LANE = 600, 24
_STREAMS = 8
_GROUPS = {category.name: category.group for category in CATEGORIES}


class Layer(Struct, frozen=True):
    """What one group of activities, or one cause of idle time, covers of a lane.

    Attributes:
        label: name of the group or the state.
        fill: value of an SVG fill.
        path: columns as an SVG path; a column is as high as its covered share.
    """

    label: str
    fill: str
    path: str


class LanePicture(Struct, frozen=True):
    """One row of the picture: a stream, or the idle time of the device."""

    label: str
    layers: tuple[Layer, ...]


class Thumbnail(Struct, frozen=True):
    """The headline window of the headline device.

    Attributes:
        title: device and length of the window.
        lanes: streams with most device time first, then idle time.
        legend: each layer once, label and fill.
        note: what is not drawn, empty for nothing.
    """

    title: str
    lanes: tuple[LanePicture, ...]
    legend: tuple[tuple[str, str], ...]
    note: str


def thumbnail(measures: Measures) -> Thumbnail | None:
    """The picture, None without device activity."""
    headline, lines = measures.headline, measures.ask(TIMELINES)
    if headline is None:
        return None
    at = next(i for i, one in enumerate(lines) if (one.process, one.device) == (headline.process, headline.id))
    line, gaps = lines[at], measures.ask(GAP_PARTS)[at]
    low, high = line.window
    if high <= low:
        return None
    edges = np.linspace(low, high, COLUMNS + 1)
    streams, left_out = _streams(line)
    lanes = (
        *(_stream_lane(line.owning, stream, edges) for stream in streams),
        LanePicture("idle", tuple(_idle_layers(gaps, edges, measures.definitions))),
    )
    legend = {layer.label: layer.fill for lane in lanes for layer in lane.layers}
    note = f"{plural(left_out, 'stream')} with least time not drawn" if left_out else ""
    name = printable(headline.name)
    title = f"Device {headline.id}{f', {name}' if name else ''}: window of {duration(high - low)}"
    return Thumbnail(title, lanes, tuple(legend.items()), note)


def _streams(line: DeviceTimeline) -> tuple[list[int | None], int]:
    """The streams with most device time, and how many others there are."""
    most = line.owning.group_by("stream").agg(pl.col("dur_ns").sum()).sort("dur_ns", "stream", descending=[True, False])
    streams = most["stream"].to_list()
    return streams[:_STREAMS], len(streams[_STREAMS:])


def _stream_lane(owning: pl.DataFrame, stream: int | None, edges: Float64) -> LanePicture:
    rows = owning.filter(pl.col("stream").eq_missing(stream))
    group = rows["category"].cast(pl.String).fill_null("other").replace_strict(_GROUPS, default=REST)
    layers, floor = [], np.zeros(COLUMNS)
    for name, colour in GROUP_COLOURS.items():
        chosen = rows.filter(group == name)
        if chosen.height:
            height = _covered(chosen["start_ns"].to_numpy(), chosen["end_ns"].to_numpy(), edges)
            layers.append(Layer(name, colour, _path(floor, height)))
            floor = floor + height
    return LanePicture(f"stream {printable(str(stream))}" if stream is not None else "no stream", tuple(layers))


def _idle_layers(gaps: pl.DataFrame, edges: Float64, definitions: Definitions) -> Iterator[Layer]:
    """The idle states: a gap is drawn as the state that owns most of it."""
    if not gaps.height:
        return
    owner = main_states(states_of_gaps(gaps, definitions))
    floor = np.zeros(COLUMNS)
    for turn, state in enumerate(IDLE_STATES):
        mine = gaps.filter(pl.Series(owner == turn))
        if mine.height:
            height = _covered(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy(), edges)
            yield Layer(state.label, look_of(state.label, 0).fill, _path(floor, height))
            floor = floor + height


def _covered(start_ns: Int64, end_ns: Int64, edges: Float64) -> Float64:
    """Share of each column that any of the intervals covers."""
    at = edges.round().astype(np.int64)
    covered: Float64 = union(start_ns, end_ns).covered_within(at[:-1], at[1:]) / np.maximum(np.diff(at), 1)
    return covered


def _path(floor: Float64, height: Float64) -> str:
    """Columns from the bottom of a lane up, above what is there already; equal neighbours are one rectangle."""
    bottom, top = LANE * (1 - floor), np.maximum(LANE * (1 - floor - height), 0)
    same = np.flatnonzero((np.diff(bottom, prepend=np.nan) != 0) | (np.diff(top, prepend=np.nan) != 0))
    ends = np.append(same[1:], len(floor))
    return "".join(
        f"M{x} {bottom[x]:.2f}V{top[x]:.2f}H{end}V{bottom[x]:.2f}z"
        for x, end in zip(same.tolist(), ends.tolist(), strict=True)
        if bottom[x] - top[x] > _LEAST
    )


_LEAST = 0.005  # of a pixel
