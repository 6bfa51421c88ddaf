"""The roofline as a picture: achieved FLOP/s over FLOPs per byte, both on logarithmic axes, below the GPU's peaks."""

from __future__ import annotations

import math

from msgspec import Struct

from analyze.gpus import Gpu, all_gpus
from analyze.metrics import Measures
from analyze.metrics.roofline import Rate

WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 660, 300, 84, 36, 18
_SHOWN = 200
_TERA = 10**12


class Dot(Struct, frozen=True):
    """One op with its shapes: its place in pixels, its radius, and the rate."""

    x: float
    y: float
    radius: float
    rate: Rate


class Roof(Struct, frozen=True):
    """One precision's roof as the points of a line, with its peak."""

    precision: str
    points: str
    label_x: float
    label_y: float
    flops_per_s: int


class RooflineView(Struct, frozen=True):
    """The picture.

    Attributes:
        gpu: model whose peaks are drawn, empty where they are not known.
        dots: one per op and shapes, most device time first.
        roofs: one per precision that a dot ran in.
        x_ticks: place and label of powers of ten of FLOPs per byte.
        y_ticks: the same of FLOP/s.
    """

    gpu: str
    dots: tuple[Dot, ...]
    roofs: tuple[Roof, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]


class _Axis(Struct, frozen=True):
    """A logarithmic axis from `low` to `high`, powers of ten, over pixels."""

    low: int
    high: int
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)


def roofline_view(measures: Measures) -> RooflineView | None:
    """The picture of the rates whose FLOPs and bytes are known, None without any."""
    rates = [rate for rate in measures.roofline.rates if rate.flops_per_s and rate.flops and rate.size_bytes]
    if not rates:
        return None
    gpu = next((one for one in all_gpus() if one.name == measures.roofline.gpu), None)
    rates = rates[:_SHOWN]
    intensity = [_intensity(rate) for rate in rates]
    achieved = [rate.flops_per_s or 1.0 for rate in rates]
    peaks = _peaks(gpu, rates)
    x = _axis(intensity + [peak / gpu.bandwidth_bytes_per_s for _, peak in peaks if gpu], LEFT, WIDTH - MARGIN)
    y = _axis(achieved + [float(peak) for _, peak in peaks], HEIGHT - BOTTOM, MARGIN)
    most = max(rate.device_ns for rate in rates)
    dots = tuple(
        Dot(x.at(flops), y.at(done), 3 + 9 * math.sqrt(rate.device_ns / most), rate)
        for rate, flops, done in zip(rates, intensity, achieved, strict=True)
    )
    roofs = tuple(_roof(gpu, name, peak, x, y) for name, peak in peaks) if gpu else ()
    return RooflineView(gpu.name if gpu else "", dots, roofs, _ticks(x, ""), _ticks(y, "FLOP/s"))


def _intensity(rate: Rate) -> float:
    return (rate.flops or 1) / (rate.size_bytes or 1)


def _peaks(gpu: Gpu | None, rates: list[Rate]) -> list[tuple[str, int]]:
    """The peaks of the precisions that were seen, highest first."""
    if gpu is None or not gpu.bandwidth_bytes_per_s:
        return []
    seen = {rate.precision for rate in rates}
    found = [(precision, peak) for precision, peak in gpu.flops_per_s.items() if precision in seen]
    return sorted(found, key=lambda item: -item[1])


def _axis(values: list[float], start: float, end: float) -> _Axis:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return _Axis(low, max(high, low + 1), start, end)


def _roof(gpu: Gpu, precision: str, peak: int, x: _Axis, y: _Axis) -> Roof:
    """Up along the memory's bandwidth to the ridge, then level at the peak."""
    bandwidth = gpu.bandwidth_bytes_per_s
    left = max(10.0**x.low, 10.0**y.low / bandwidth)
    ridge = peak / bandwidth
    corners = ((left, left * bandwidth), (ridge, float(peak)), (10.0**x.high, float(peak)))
    points = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in corners)
    return Roof(precision, points, x.end, y.at(peak), peak)


_PREFIXES = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}


def _ticks(axis: _Axis, unit: str) -> tuple[tuple[float, str], ...]:
    step = max((axis.high - axis.low) // 6, 1)
    return tuple((axis.at(10.0**power), _power(power, unit)) for power in range(axis.low, axis.high + 1, step))


def _power(power: int, unit: str) -> str:
    if not unit:
        return f"{10.0**power:g}"
    thousand = min(max(power // 3 * 3, 0), 15)
    return f"{10.0 ** (power - thousand):g} {_PREFIXES[thousand]}{unit}"
