"""Two memory snapshots in, one comparison out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from analyze.blocks import Block, Column, Kind, Page, Section, Table
from analyze.notices import Notice
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.notebook import Shown
from analyze.report.plain import frame, plain
from analyze.report.snapshot import SnapshotInfo, exact, snapshot_info
from analyze.report.snapshot_sections import DEFINITIONS
from analyze.settings import Definitions
from analyze.snapshot import DeviceComparison, Difference, Snapshot, compare_devices, measure_snapshot
from analyze.units import memory

_LISTED = 50
_NAMED = 3


class SnapshotComparison(Shown, Struct, frozen=True):
    """Two memory snapshots compared, independent of any format.

    Attributes:
        version: version of the program.
        a: the first file.
        b: the second file.
        devices: the differences, one entry per device of either.
        page: what text formats draw.
    """

    version: str
    a: SnapshotInfo
    b: SnapshotInfo
    devices: tuple[DeviceComparison, ...]
    page: Page

    def as_json(self) -> dict[str, Any]:
        """The comparison by key."""
        return {
            **frame(self.version, self.page),
            "a": plain(self.a),
            "b": plain(self.b),
            "devices": plain(self.devices),
            "definitions": DEFINITIONS,
            "notices": plain(self.page.notices),
        }


def compare_snapshots(a: Snapshot, b: Snapshot, *, definitions: Definitions | None = None) -> SnapshotComparison:
    """Compare two memory snapshots: every change is the second minus the first.

    Args:
        a: the first.
        b: the second.
        definitions: list lengths; the defaults where None.
    """
    top = (definitions or Definitions()).top
    (left, left_odd), (right, right_odd) = measure_snapshot(a), measure_snapshot(b)
    devices = compare_devices(left, right)
    info = (snapshot_info(a), snapshot_info(b))
    program = program_version()
    main = max(devices, key=lambda device: abs(device.figures["requested_peak_bytes"].change), default=None)
    page = Page(
        subject="Memory comparison",
        name=f"{info[0].name} and {info[1].name}",
        about="memory at the peak and at the end; every change is the second minus the first",
        verdict="memory",
        headline=_headline(main),
        sentences=tuple(_sentences(main)),
        whole=None,
        sections=tuple(_section(device, top, brief=device is main) for device in devices),
        notices=(*_of("first", left_odd), *_of("second", right_odd)),
        not_measured=(),
        next_steps=(),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}; sha256 {info[0].sha256[:12]}, {info[1].sha256[:12]}",
    )
    return SnapshotComparison(program, *info, devices, page)


def _of(which: str, notices: Sequence[Notice]) -> Iterator[Notice]:
    for notice in notices:
        yield replace(notice, text=f"In the {which} file, {notice.text}")


def _headline(device: DeviceComparison | None) -> str:
    if device is None:
        return "Both empty"
    change = device.figures["requested_peak_bytes"].change
    return f"Peak {signed(change)}" if change else "Same peak"


def signed(size_bytes: int) -> str:
    """A change in memory with its sign: +1.50 GiB."""
    return f"{'+' if size_bytes > 0 else ''}{memory(size_bytes)}"


def _sentences(device: DeviceComparison | None) -> Iterator[str]:
    if device is None:
        yield "Neither snapshot holds a segment or an event."
        return
    peak, end = device.figures["requested_peak_bytes"], device.figures["requested_end_bytes"]
    yield (
        f"{device.label}: the peak goes from {exact(peak.a)} to {exact(peak.b)}, the end from {memory(end.a)} to "
        f"{memory(end.b)}."
    )
    changed = [row for row in device.peak_by_site if row.change_bytes]
    if changed:
        named = ", ".join(f"{signed(row.change_bytes)} {row.label}" for row in changed[:_NAMED])
        yield f"At the peak: {named}{f', and {len(changed) - _NAMED:,} more' if len(changed) > _NAMED else ''}."
    else:
        yield "What is alive at the peak is the same at every place."


def _section(device: DeviceComparison, top: int, *, brief: bool) -> Section:
    blocks: tuple[Block, ...] = (
        _table("Change at the peak, by place", "place", device.peak_by_site, top if brief else 0, counts=False),
        _table("Change at the peak, by stack", "place < its callers", device.peak_by_stack, 0),
        _table("Change at the end, by stack", "place < its callers", device.end_by_stack, 0),
        _figures(device, brief=brief),
    )
    return Section(f"device-{device.id}", f"Changes on {device.label}", blocks)


def _table(title: str, head: str, rows: Sequence[Difference], brief: int, *, counts: bool = True) -> Table:
    """The labels whose sizes or counts changed; on one screen the counts would take the room of the names."""
    changed = [row for row in rows if row.change_bytes or row.a_count != row.b_count]
    return Table(
        title=title,
        columns=(
            Column(head, Kind.CODE),
            Column("first", Kind.MEMORY),
            Column("second", Kind.MEMORY),
            Column("change", Kind.MEMORY),
            *((Column("count, first", Kind.COUNT), Column("second", Kind.COUNT)) if counts else ()),
        ),
        rows=tuple(
            (row.label, row.a_bytes, row.b_bytes, row.change_bytes, *((row.a_count, row.b_count) if counts else ()))
            for row in changed[:_LISTED]
        ),
        brief=brief,
        total=len(changed),
    )


def _figures(device: DeviceComparison, *, brief: bool) -> Table:
    return Table(
        title="Figures",
        columns=(
            Column("figure", Kind.TEXT),
            Column("first", Kind.MEMORY),
            Column("second", Kind.MEMORY),
            Column("change", Kind.MEMORY),
        ),
        rows=tuple(
            (name.removesuffix("_bytes").replace("_", " "), figure.a, figure.b, figure.change)
            for name, figure in device.figures.items()
        ),
        brief=len(device.figures) if brief else 0,
    )
