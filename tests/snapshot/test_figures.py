"""Real snapshots against their reference figures, equal to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyze.snapshot import Snapshot, measure_snapshot

NAMES = ("medium_1024_inference", "medium_1024_training", "medium_128_training")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_equal_to_the_byte(shared: Path, name: str) -> None:
    folder = shared / "snapshots"
    file = f"{name}_snapshot.pickle"
    expected = json.loads((folder / "figures.json").read_text())[file]
    devices, _ = measure_snapshot(Snapshot.load(folder / file))
    found = {
        str(device.id): {key: getattr(device, key) for key in expected.get(str(device.id), {})} for device in devices
    }
    assert found == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_end_is_what_the_segments_say(shared: Path, name: str) -> None:
    """Invariants of the allocator: its own sums per segment, and where the reserved bytes are."""
    import pickle

    path = shared / "snapshots" / f"{name}_snapshot.pickle"
    with path.open("rb") as file:
        segments = pickle.load(file)["segments"]
    device = measure_snapshot(Snapshot.load(path))[0][0]
    assert device.reserved_end_bytes == sum(s["total_size"] for s in segments)
    assert device.allocated_end_bytes == sum(s["allocated_size"] for s in segments)
    assert device.active_end_bytes == sum(s["active_size"] for s in segments)
    assert device.requested_end_bytes == sum(s["requested_size"] for s in segments)
    unused = device.free_segments_bytes + device.inactive_split_bytes + device.pending_free_bytes
    assert device.reserved_end_bytes - device.allocated_end_bytes == unused


@pytest.mark.parametrize("name", NAMES)
def test_every_grouping_adds_up_to_the_peak(shared: Path, name: str) -> None:
    device = measure_snapshot(Snapshot.load(shared / "snapshots" / f"{name}_snapshot.pickle"))[0][0]
    for held in (device.at_peak, device.at_end):
        for grouping in (held.by_site, held.by_stack, held.by_module, held.by_annotation, held.by_pool):
            assert sum(one.size_bytes for one in grouping) == held.size_bytes
        before = next(one for one in held.by_site if one.label == "allocated before recording")
        assert sum(one.size_bytes for one in held.before_recording) == before.size_bytes
    assert device.at_peak.size_bytes == device.requested_peak_bytes
    assert device.at_end.size_bytes == device.requested_end_bytes
