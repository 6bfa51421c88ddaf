"""The figures of memory snapshots as scripts read them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from analyze.report.plain import plain
from analyze.report.snapshot_sections import shortened
from analyze.snapshot import DeviceMemory


def plain_device(device: DeviceMemory) -> dict[str, Any]:
    """One device; compositions keep their hundred largest rows, and the rest as one."""
    row = asdict(device)
    for name in ("at_peak", "at_end"):
        row[name] = shortened(row[name])
    return {name: plain(value) for name, value in row.items()}
