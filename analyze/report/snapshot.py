"""Memory snapshot in, report out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from analyze.blocks import Page, Section
from analyze.notices import Notice, NotMeasured
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.commands import quoted_path
from analyze.report.notebook import Shown
from analyze.report.plain import contract, frame, plain
from analyze.report.snapshot_json import plain_device
from analyze.report.snapshot_sections import DEFINITIONS, device_sections, listed
from analyze.settings import Definitions
from analyze.snapshot import (
    BEFORE_OLDEST,
    BEFORE_RECORDING,
    OVERFLOWED,
    DeviceMemory,
    OutOfMemory,
    Snapshot,
    measure_snapshot,
)
from analyze.snapshot.outside import RecordedBeside
from analyze.units import duration, memory, percent, plural

_PARTS_NAMED = 4
_KEPT_SHARE = 0.1  # of the reserved memory: below it the free memory of private pools is no news
_RECORD = "record with torch.cuda.memory._record_memory_history(), or capture --snapshot-steps 1"


class SnapshotInfo(Struct, frozen=True):
    """What was measured.

    Attributes:
        name: base name of the file.
        sha256: hash of its bytes.
        size_bytes: size on disk.
        form: "pickle" or "JSON".
        settings: the allocator's settings.
    """

    name: str
    sha256: str
    size_bytes: int
    form: str
    settings: dict[str, float | int | str | bool]


class SnapshotReport(Shown, Struct, frozen=True):
    """One report on a memory snapshot, independent of any format.

    Attributes:
        version: version of the program.
        snapshot: what was measured.
        devices: every figure, one entry per device.
        page: what text formats draw.
        definitions: limits and list lengths.
        source: what it was made from, None where only the figures are known.
    """

    version: str
    snapshot: SnapshotInfo
    devices: tuple[DeviceMemory, ...]
    page: Page
    definitions: Definitions
    source: Snapshot | None = None

    def as_json(self) -> dict[str, Any]:
        """The report by the keys of its contract, `snapshot_schema`."""
        return {
            **frame(self.version, self.page),
            "snapshot": plain(self.snapshot),
            "devices": [plain_device(device) for device in self.devices],
            "definitions": DEFINITIONS,
            "notices": plain(self.page.notices),
            "not_measured": plain(self.page.not_measured),
        }


_KEYS: dict[str, Any] = {
    "snapshot": SnapshotInfo,
    "devices": list[DeviceMemory],
    "definitions": dict[str, str],
    "notices": list[Notice],
    "not_measured": list[NotMeasured],
    "sections": list[dict[str, Any]],
    "tool": dict[str, str],
}


def snapshot_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a report on a snapshot."""
    return contract("memory snapshot report", _KEYS)


def build_snapshot_report(
    snapshot: Snapshot, *, noted: RecordedBeside | None = None, definitions: Definitions | None = None
) -> SnapshotReport:
    """Measure a memory snapshot.

    Args:
        snapshot: the snapshot.
        noted: what was noted beside it, see `recorded_beside`.
        definitions: list lengths; the defaults where None.
    """
    definitions = definitions or Definitions()
    devices, odd = measure_snapshot(snapshot, noted)
    info = snapshot_info(snapshot)
    program = program_version()
    main = headline_device(devices)
    page = Page(
        subject="Memory snapshot",
        name=info.name,
        about=_about(devices),
        verdict="memory",
        headline=_headline(main),
        sentences=tuple(_sentences(devices, main, snapshot.settings)),
        whole=None,
        sections=tuple(_sections(devices, main, definitions.top)),
        notices=(*odd, *_notices(snapshot)),
        not_measured=tuple(_not_measured(devices)),
        next_steps=_next_steps(snapshot.loaded.path or info.name),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}; snapshot sha256 {info.sha256[:12]}",
    )
    return SnapshotReport(program, info, devices, page, definitions, snapshot)


def snapshot_info(snapshot: Snapshot) -> SnapshotInfo:
    """What a report says about its file."""
    file = snapshot.loaded
    return SnapshotInfo(file.name, file.sha256, file.size_bytes, file.form, snapshot.settings)


def headline_device(devices: tuple[DeviceMemory, ...]) -> DeviceMemory | None:
    """The device with the highest peak."""
    return max(devices, key=lambda device: device.requested_peak_bytes, default=None)


def _about(devices: tuple[DeviceMemory, ...]) -> str:
    events = sum(device.events for device in devices)
    named = ", ".join(device.label for device in devices) or "no device"
    spans = [device.recorded_us for device in devices if device.recorded_us]
    lasting = f" in {duration(max(spans) * 1000)}" if spans else ""
    return f"memory snapshot, {named}, {plural(events, 'event')}{lasting}"


def _headline(main: DeviceMemory | None) -> str:
    if main is None:
        return "Empty snapshot"
    if main.ooms:
        return "Out of memory"
    least = "at least " if main.overflow == OVERFLOWED else ""
    return (
        f"Peak {least}{memory(main.requested_peak_bytes)}"
        if main.events
        else f"{memory(main.requested_end_bytes)} in use"
    )


def _sentences(
    devices: tuple[DeviceMemory, ...], main: DeviceMemory | None, settings: Mapping[str, object]
) -> Iterator[str]:
    if main is None:
        yield f"It holds no segment and no event: recording was off, or there was no GPU. To get one, {_RECORD}."
        return
    for device in devices:
        for failed in device.ooms[:1]:
            more = f" ({len(device.ooms):,} such events.)" if len(device.ooms) > 1 else ""
            yield f"{device.label}: {failed.text} Asked by {failed.site}.{more}"
            yield from _advice(failed, settings)
    if main.events:
        yield _peak_sentence(main)
        yield from _made_of(main)
    else:
        yield (
            f"{main.label}: {exact(main.requested_end_bytes)} are in use and {memory(main.reserved_end_bytes)} are "
            "reserved; the file has the state at the end and no events."
        )
    for device in devices:
        yield from _private_pools(device)


def _advice(failed: OutOfMemory, settings: Mapping[str, object]) -> Iterator[str]:
    """What ends a fragmentation, where the settings say that it was not tried."""
    if failed.cause == "fragmentation" and settings.get("expandable_segments") is False:
        yield (
            "expandable_segments is off: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that free memory can "
            "serve larger allocations."
        )


def _private_pools(device: DeviceMemory) -> Iterator[str]:
    """Free memory that private pools keep, where it is a good part of what is reserved."""
    pools = [pool for pool in device.pools if pool.private and pool.unused_bytes]
    kept = sum(pool.unused_bytes for pool in pools)
    if not device.reserved_end_bytes or kept < _KEPT_SHARE * device.reserved_end_bytes:
        return
    most = max(pools, key=lambda pool: pool.unused_bytes)
    others = f", most in {most.pool}" if len(pools) > 1 else ""
    where = plural(len(pools), "private pool") if len(pools) > 1 else most.pool
    alive = (
        "" if any(pool.state.allocated_bytes or pool.state.pending_free_bytes for pool in pools) else ", nothing alive"
    )
    segments = plural(sum(pool.segments for pool in pools), "segment")
    share = percent(kept / device.reserved_end_bytes)
    yield (
        f"{device.label}: {memory(kept)} ({share} of the reserved memory) is free in {where} ({segments}{alive}"
        f"{others}); empty_cache() does not give it back while a CUDA graph or a MemPool holds the pool."
    )


def exact(size_bytes: int) -> str:
    """A size with its exact bytes behind it: 22.5 GiB (24,207,167,496 bytes)."""
    return f"{memory(size_bytes)} ({size_bytes:,} bytes)"


def _peak_sentence(device: DeviceMemory) -> str:
    cut = device.overflow == OVERFLOWED
    start = "at the oldest event that is left" if cut else "at the start"
    when = f"at event {device.peak_event:,} of {device.events:,}" if device.peak_event >= 0 else start
    by = f", {device.peak_site}" if device.peak_site else ""
    least = "at least " if cut else ""
    alone = " by the events alone" if device.mismatch_bytes < 0 else ""
    before = ""
    if device.before_recording_bytes:
        since = "from before the oldest event that is left" if cut else "from before the recording"
        before = f"; start {exact(device.before_recording_bytes)} {since}"
    return f"{device.label}: peak {least}{exact(device.requested_peak_bytes)} requested{alone}, {when}{by}{before}."


def _made_of(device: DeviceMemory) -> Iterator[str]:
    held = device.at_peak
    parts = [one for one in held.by_site[:_PARTS_NAMED] if one.size_bytes]
    early = next((one for one in held.by_site if one.label in (BEFORE_RECORDING, BEFORE_OLDEST)), None)
    if early is not None and early.size_bytes and early not in parts:
        parts.append(early)
    named = ", ".join(f"{memory(one.size_bytes)} {one.label}" for one in parts)
    rest = held.size_bytes - sum(one.size_bytes for one in parts)
    others = sum(one.size_bytes > 0 for one in held.by_site) - len(parts)
    more = f", {memory(rest)} of {plural(others, 'other')}" if rest else ""
    if named:
        yield f"The peak was made of {named}{more}."


def _sections(devices: tuple[DeviceMemory, ...], main: DeviceMemory | None, top: int) -> Iterator[Section]:
    if len(devices) > 1:
        yield listed(devices)
    for device in devices:
        yield from device_sections(device, top, alone=len(devices) == 1, brief=device is main)


def _notices(snapshot: Snapshot) -> Iterator[Notice]:
    if snapshot.sizes_rounded:
        text = "The file has no requested sizes: rounded ones stand in for them."
        yield Notice("rounded-sizes", text, 1)
    if not snapshot.has_segments and not any(len(events) for events in snapshot.traces):
        yield Notice("no-segments", "The file has no segments: the state at the end is unknown.", 1)


def _not_measured(devices: tuple[DeviceMemory, ...]) -> Iterator[NotMeasured]:
    if any(not device.events for device in devices) or not devices:
        yield NotMeasured("history", "no recorded events on some device", _RECORD)
    missing = next((d.growth.missing for d in devices if d.growth.missing is not None and d.events), None)
    if missing is not None:
        yield missing
    if devices and all(device.outside_bytes is None for device in devices):
        yield NotMeasured(
            "outside", "what the allocator does not see was not noted", "record with capture, which stores mem_get_info"
        )
    if any(device.events and not device.stacks_known for device in devices):
        yield NotMeasured("stacks", "no stacks in the recording", "record with context='all', stacks='python'")


def _next_steps(path: str) -> tuple[str, ...]:
    file = quoted_path(path)
    return (f"analyze {file} -o report.md", f"analyze compare {file} OTHER.pickle") if file else ()


__all__ = ["DEFINITIONS", "SnapshotInfo", "SnapshotReport", "build_snapshot_report"]
