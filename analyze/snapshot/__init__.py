"""A CUDA memory snapshot becomes numbers: read without executing it, replayed, grouped by who allocated."""

from analyze.snapshot.compare import DeviceComparison, Difference, compare_devices
from analyze.snapshot.composition import BEFORE_RECORDING, Composition, Holding
from analyze.snapshot.device import DeviceMemory, measure_snapshot
from analyze.snapshot.outside import recorded_beside
from analyze.snapshot.sniff import is_snapshot
from analyze.snapshot.tables import Snapshot

__all__ = [
    "BEFORE_RECORDING",
    "Composition",
    "DeviceComparison",
    "DeviceMemory",
    "Difference",
    "Holding",
    "Snapshot",
    "compare_devices",
    "is_snapshot",
    "measure_snapshot",
    "recorded_beside",
]
