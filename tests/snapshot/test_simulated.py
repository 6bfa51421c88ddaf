"""Snapshots of a simulated allocator: every figure equals what the simulator itself counted."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyze.snapshot import BEFORE_RECORDING, DeviceMemory, Snapshot, measure_snapshot
from analyze.snapshot.replay import replay
from tests.synthetic.allocator import KIB, MIB, Allocator, Piece, snapshot, stack

SIZES = st.one_of(
    st.integers(1, 2 * KIB),
    st.sampled_from([512, MIB - 1, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB - 1, 10 * MIB, 33 * MIB]),
    st.integers(1, 40 * MIB),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["alloc"] * 5 + ["free"] * 3 + ["pending", "complete", "empty", "record", "mark"]),
        SIZES,
        st.integers(0, 1),
        st.integers(1, 6),
    ),
    max_size=60,
)


def drive(steps: list[tuple[str, int, int, int]], **how: Any) -> Allocator:
    """Play a program on a simulated device."""
    allocator = Allocator(**how)
    live: list[Piece] = []
    pending: list[Piece] = []
    marks = 0
    for what, size, stream, line in steps:
        if what == "alloc":
            pool = (0, 1) if line == 6 else (0, 0)
            piece = allocator.allocate(size, stack(line, 100), stream=stream, pool=pool)
            live += [piece] if piece else []
        elif what in ("free", "pending") and live:
            piece = live.pop(size % len(live))
            allocator.free(piece, in_use=what == "pending")
            pending += [piece] if what == "pending" else []
        elif what == "complete" and pending:
            allocator.complete(pending.pop(size % len(pending)))
        elif what == "empty":
            allocator.empty_cache()
        elif what == "record":
            allocator.start_recording()
        elif what == "mark":
            allocator.annotate("step", start=marks % 2 == 0)
            marks += 1
    return allocator


def measure(*allocators: Allocator) -> tuple[Snapshot, dict[int, DeviceMemory]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.pickle"
        path.write_bytes(pickle.dumps(snapshot(*allocators), protocol=4))
        loaded = Snapshot.load(path)
    devices, _ = measure_snapshot(loaded)
    return loaded, {device.id: device for device in devices}


def check(allocator: Allocator, loaded: Snapshot, device: DeviceMemory) -> None:
    start = allocator.before[0] if allocator.events else allocator.level
    after = list(allocator.after)
    requested = [level.requested for level in after]
    peak = max([start.requested, *requested])
    assert device.before_recording_bytes == start.requested
    assert device.requested_peak_bytes == peak
    assert device.peak_event == (-1 if start.requested == peak else requested.index(peak))
    assert device.requested_end_bytes == allocator.level.requested
    assert device.allocated_end_bytes == allocator.level.allocated
    assert device.active_end_bytes == allocator.level.active
    assert device.reserved_end_bytes == allocator.level.reserved
    assert device.reserved_peak_bytes == max([start.reserved, *(level.reserved for level in after)])
    if allocator.exact:
        assert device.allocated_peak_bytes == max([start.allocated, *(level.allocated for level in after)])
        assert device.active_peak_bytes == max([start.active, *(level.active for level in after)])
    segments = [s for s in loaded.segments if s.device == allocator.device]
    played = replay(loaded.traces[allocator.device], segments)
    assert played.requested.values.tolist() == requested
    assert played.reserved.values.tolist() == [level.reserved for level in after]
    assert played.explained_start_bytes == start.requested
    alive = allocator.alive_at(device.peak_event)
    found = {h.label: h.size_bytes for h in device.at_peak.by_site if h.label != BEFORE_RECORDING}
    assert found == {f"model.py:{line} forward": size for line, size in alive.items()}
    for grouping in ("by_site", "by_stack", "by_module", "by_annotation", "by_pool"):
        assert sum(h.size_bytes for h in getattr(device.at_peak, grouping)) == peak
    free = device.free_segments_bytes + device.inactive_split_bytes + device.pending_free_bytes
    assert device.reserved_end_bytes - device.allocated_end_bytes == free
    assert device.pending_free_bytes == allocator.level.active - allocator.level.allocated


COMMON = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@COMMON
@given(STEPS, st.booleans(), st.booleans())
def test_figures_equal_the_truth(steps: list[tuple[str, int, int, int]], expandable: bool, pool_ids: bool) -> None:
    allocator = drive(steps, expandable=expandable, pool_ids=pool_ids)
    loaded, devices = measure(allocator)
    if 0 in devices:
        check(allocator, loaded, devices[0])


@COMMON
@given(STEPS, st.integers(1, 20), st.booleans())
def test_a_ring_that_overflows(steps: list[tuple[str, int, int, int]], most: int, expandable: bool) -> None:
    """What the ring lost counts as allocated before; the level stays exact."""
    allocator = drive(steps, max_entries=most, expandable=expandable)
    loaded, devices = measure(allocator)
    if 0 in devices:
        check(allocator, loaded, devices[0])


@COMMON
@given(STEPS, st.sampled_from([24, 40, 64, 90]), st.booleans())
def test_out_of_memory(steps: list[tuple[str, int, int, int]], capacity_mib: int, expandable: bool) -> None:
    """The state at each failure is rebuilt from the state at the end, walked backwards."""
    allocator = drive(steps, capacity=capacity_mib * MIB, expandable=expandable)
    loaded, devices = measure(allocator)
    if 0 not in devices:
        return
    device = devices[0]
    check(allocator, loaded, device)
    assert len(device.ooms) == len(allocator.failures)
    for found, truth in zip(device.ooms, allocator.failures, strict=True):
        assert (found.asked_bytes, found.device_free_bytes) == (truth.asked, truth.device_free)
        if allocator.exact:
            assert (found.unused_bytes, found.largest_free_block_bytes) == (truth.unused, truth.largest)


@COMMON
@given(STEPS, STEPS)
def test_two_devices(first: list[tuple[str, int, int, int]], second: list[tuple[str, int, int, int]]) -> None:
    """The same addresses on both."""
    allocators = (drive(first, device=0), drive(second, device=2))
    loaded, devices = measure(*allocators)
    for allocator in allocators:
        if allocator.device in devices:
            check(allocator, loaded, devices[allocator.device])
