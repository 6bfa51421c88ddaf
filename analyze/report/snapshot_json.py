"""Reports on memory snapshots as JSON documents, and their contract."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from analyze.notes import Notice, NotMeasured
from analyze.report.comparison import SnapshotComparison
from analyze.report.plain import contract, plain, plain_section
from analyze.report.report import SCHEMA_VERSION, TOOL
from analyze.report.snapshot import SnapshotInfo, SnapshotReport
from analyze.report.snapshot_sections import DEFINITIONS, shortened
from analyze.snapshot import DeviceMemory

_KEYS: dict[str, Any] = {
    "snapshot": SnapshotInfo,
    "devices": list[DeviceMemory],
    "definitions": dict[str, str],
    "notices": list[Notice],
    "not_measured": list[NotMeasured],
    "sections": list[dict[str, Any]],
    "tool": dict[str, str],
}


def snapshot_document(report: SnapshotReport) -> dict[str, Any]:
    """A report on one snapshot. Compositions keep their hundred largest rows and the rest as one."""
    return {
        **_frame(report.version),
        "snapshot": plain(report.snapshot),
        "devices": [_device(device) for device in report.devices],
        "definitions": DEFINITIONS,
        "notices": plain(report.page.notices),
        "not_measured": plain(report.page.not_measured),
        "sections": [plain_section(section) for section in report.page.sections],
    }


def comparison_document(comparison: SnapshotComparison) -> dict[str, Any]:
    """A comparison of two snapshots."""
    return {
        **_frame(comparison.version),
        "a": plain(comparison.a),
        "b": plain(comparison.b),
        "devices": plain(comparison.devices),
        "definitions": DEFINITIONS,
        "notices": plain(comparison.page.notices),
        "sections": [plain_section(section) for section in comparison.page.sections],
    }


def snapshot_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of `snapshot_document`."""
    return contract("memory snapshot report", _KEYS)


def _frame(version: str) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "tool": {"name": TOOL, "version": version}}


def _device(device: DeviceMemory) -> dict[str, Any]:
    row = {field.name: getattr(device, field.name) for field in fields(device)}
    for name in ("at_peak", "at_end"):
        row[name] = shortened(row[name])
    return {name: plain(value) for name, value in row.items()}
