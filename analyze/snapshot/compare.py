"""Two snapshots side by side: what each place and stack holds more or less of."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from analyze.snapshot.composition import Holding
from analyze.snapshot.device import DeviceMemory

FIGURES = (
    "before_recording_bytes",
    "requested_peak_bytes",
    "requested_end_bytes",
    "allocated_end_bytes",
    "reserved_peak_bytes",
    "reserved_end_bytes",
    "free_segments_bytes",
    "inactive_split_bytes",
    "rounding_bytes",
    "pending_free_bytes",
)


class Difference(Struct, frozen=True):
    """What two snapshots hold under one label.

    Attributes:
        label: place or stack.
        a_bytes: requested bytes in the first.
        b_bytes: requested bytes in the second.
        change_bytes: second minus first.
        a_count: allocations in the first.
        b_count: allocations in the second.
    """

    label: str
    a_bytes: int
    b_bytes: int
    change_bytes: int
    a_count: int
    b_count: int


class SnapshotFigure(Struct, frozen=True):
    """One figure of both, in bytes."""

    a: int
    b: int
    change: int


class DeviceComparison(Struct, frozen=True):
    """One device of two snapshots. Each list adds up to the change of its total, largest change first.

    Attributes:
        id: device index.
        label: as the report names it.
        figures: each figure of both.
        peak_by_site: alive at each one's peak, by place.
        peak_by_stack: the same by stack.
        end_by_stack: alive at each one's end, by stack.
    """

    id: int
    label: str
    figures: dict[str, SnapshotFigure]
    peak_by_site: tuple[Difference, ...]
    peak_by_stack: tuple[Difference, ...]
    end_by_stack: tuple[Difference, ...]


def compare_devices(a: Sequence[DeviceMemory], b: Sequence[DeviceMemory]) -> tuple[DeviceComparison, ...]:
    """Compare the devices of two snapshots by index; one that is missing on a side holds nothing there."""
    sides = [{device.id: device for device in devices} for devices in (a, b)]
    return tuple(_compare(key, sides[0].get(key), sides[1].get(key)) for key in sorted({*sides[0], *sides[1]}))


def _compare(key: int, a: DeviceMemory | None, b: DeviceMemory | None) -> DeviceComparison:
    def both(name: str) -> tuple[int, int]:
        return getattr(a, name) if a else 0, getattr(b, name) if b else 0

    def held(device: DeviceMemory | None, when: str, grouping: str) -> tuple[Holding, ...]:
        return getattr(getattr(device, when), grouping) if device else ()

    def lists(when: str, grouping: str) -> tuple[Difference, ...]:
        return differences(held(a, when, grouping), held(b, when, grouping))

    named = a or b
    return DeviceComparison(
        id=key,
        label=named.label if named else "",
        figures={name: SnapshotFigure(*both(name), both(name)[1] - both(name)[0]) for name in FIGURES},
        peak_by_site=lists("at_peak", "by_site"),
        peak_by_stack=lists("at_peak", "by_stack"),
        end_by_stack=lists("at_end", "by_stack"),
    )


def differences(a: Sequence[Holding], b: Sequence[Holding]) -> tuple[Difference, ...]:
    """Both sides by label, largest change first; equal stacks with other sizes are differences too."""
    nothing = Holding("", 0, 0)
    left, right = ({one.label: one for one in side} for side in (a, b))
    rows = []
    for label in {**left, **right}:
        mine, other = left.get(label, nothing), right.get(label, nothing)
        change = other.size_bytes - mine.size_bytes
        rows.append(Difference(label, mine.size_bytes, other.size_bytes, change, mine.count, other.count))
    return tuple(sorted(rows, key=lambda row: (-abs(row.change_bytes), row.label)))
