"""A CUDA memory snapshot becomes numbers: read without executing it, replayed, grouped by who allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.snapshot.compare import DeviceComparison, Difference, compare_devices
    from analyze.snapshot.composition import BEFORE_OLDEST, BEFORE_RECORDING, Composition, Holding
    from analyze.snapshot.device import DeviceMemory, measure_snapshot
    from analyze.snapshot.history import OVERFLOWED
    from analyze.snapshot.oom import OutOfMemory
    from analyze.snapshot.outside import recorded_beside
    from analyze.snapshot.sniff import is_snapshot
    from analyze.snapshot.tables import Snapshot

__all__ = [
    "BEFORE_OLDEST",
    "BEFORE_RECORDING",
    "OVERFLOWED",
    "Composition",
    "DeviceComparison",
    "DeviceMemory",
    "Difference",
    "Holding",
    "OutOfMemory",
    "Snapshot",
    "compare_devices",
    "is_snapshot",
    "measure_snapshot",
    "recorded_beside",
]

_LATE = {  # whether a file is a snapshot is known without the rest
    "BEFORE_OLDEST": "analyze.snapshot.composition",
    "OVERFLOWED": "analyze.snapshot.history",
    "OutOfMemory": "analyze.snapshot.oom",
    "BEFORE_RECORDING": "analyze.snapshot.composition",
    "Composition": "analyze.snapshot.composition",
    "DeviceComparison": "analyze.snapshot.compare",
    "DeviceMemory": "analyze.snapshot.device",
    "Difference": "analyze.snapshot.compare",
    "Holding": "analyze.snapshot.composition",
    "Snapshot": "analyze.snapshot.tables",
    "compare_devices": "analyze.snapshot.compare",
    "is_snapshot": "analyze.snapshot.sniff",
    "measure_snapshot": "analyze.snapshot.device",
    "recorded_beside": "analyze.snapshot.outside",
}
__getattr__ = lazy_names(__name__, _LATE)
