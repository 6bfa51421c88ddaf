"""What the first lines of a memory report say, against values worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from analyze.report import render
from analyze.report.snapshot import SnapshotReport, build_snapshot_report
from analyze.snapshot import Snapshot
from tests.snapshot.conftest import write_pickle
from tests.synthetic.allocator import MIB, Allocator, snapshot, stack

EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
NOT_BACK = "empty_cache() does not give it back while a CUDA graph or a MemPool holds the pool"


def report_on(path: Path) -> SnapshotReport:
    return build_snapshot_report(Snapshot.load(path))


def of(document: Any, folder: Path) -> SnapshotReport:
    return report_on(write_pickle(document, folder / "s.pickle"))


def said(report: SnapshotReport) -> str:
    return " ".join(report.page.sentences)


def notices(report: SnapshotReport) -> dict[str, str]:
    return {notice.id: notice.text for notice in report.page.notices}


@pytest.mark.parametrize("name", ["snapshot.pickle", "memory_snapshot_list.pickle"])
def test_a_failed_capture_keeps_its_private_pool(name: str, shared: Path) -> None:
    """868 MiB reserved, 100 alive in the full default pool; 768 of 868 are 88.5 %, in two segments of pool 0,3."""
    (path,) = shared.glob(f"cases/21-*/{name}")
    report = report_on(path)
    (device,) = report.devices
    assert (device.reserved_end_bytes, device.allocated_end_bytes) == (868 * MIB, 100 * MIB)
    assert "768 MiB (88.5% of the reserved memory) is free in private pool 0,3 (2 segments, nothing alive)" in said(
        report
    )
    assert NOT_BACK in said(report)
    if name == "snapshot.pickle":
        assert report.page.headline == "Peak 868 MiB"


def test_two_private_pools_and_one_that_is_in_use(tmp_path: Path) -> None:
    """Segments of 40, 20 and 30 MiB; the second one has a block of 8 alive. 40 + 30 + 12 of 90 MiB are free: 91.1 %."""
    allocator = Allocator()
    for size, pool in ((40, (0, 3)), (8, (7, 0)), (30, (7, 0))):
        piece = allocator.allocate(size * MIB, stack(4), pool=pool)
        assert piece is not None
        if size > 8:
            allocator.free(piece)
    text = said(of(snapshot(allocator), tmp_path))
    assert (
        "82.0 MiB (91.1% of the reserved memory) is free in 2 private pools (3 segments, most in private pool 7,0)"
        in text
    )
    assert "nothing alive" not in text


def test_free_memory_of_the_default_pool_names_no_pool(tmp_path: Path) -> None:
    allocator = Allocator()
    piece = allocator.allocate(40 * MIB, stack(4))
    assert piece is not None
    allocator.free(piece)
    assert "pool" not in said(of(snapshot(allocator), tmp_path))


def test_a_ring_that_overflowed_gives_a_lower_bound(shared: Path) -> None:
    (path,) = shared.glob("cases/22-*/snapshot.pickle")
    report = report_on(path)
    (device,) = report.devices
    assert (device.requested_peak_bytes, device.reserved_peak_bytes, device.events) == (220 * MIB, 240 * MIB, 1000)
    assert report.page.headline == "Peak at least 220 MiB"
    assert "peak at least 220 MiB (230,686,720 bytes)" in said(report)
    assert "before the recording" not in said(report), "it was recorded, and lost"
    text = notices(report)["history-overflow"]
    assert "200 MiB of what is alive at the end" in text
    assert "Raise max_entries" in text


def test_a_whole_history_gives_the_peak_itself(tmp_path: Path) -> None:
    allocator = Allocator(max_entries=100)
    allocator.allocate(40 * MIB, stack(4))
    report = of(snapshot(allocator, settings={"trace_alloc_max_entries": 100}), tmp_path)
    assert report.page.headline == "Peak 40.0 MiB"
    assert "at least" not in said(report)


def fragmented(*, expandable: bool) -> Allocator:
    """Eighteen blocks of 2 MiB, every other one freed: 12 MiB do not fit between them."""
    allocator = Allocator(capacity=40 * MIB, expandable=expandable)
    pieces = [allocator.allocate(2 * MIB, stack(i + 1)) for i in range(18)]
    for piece in pieces[::2]:
        assert piece is not None
        allocator.free(piece)
    assert allocator.allocate(12 * MIB, stack(99)) is None
    return allocator


def test_a_late_failure_advises_expandable_segments(shared: Path) -> None:
    """2 GiB asked, 600 MiB free on the device, 6 GiB inside in pieces of 1; peak 10 + 0.5 x 5 + 1.5 = 14 GiB."""
    (path,) = shared.glob("cases/28-*/snapshot.pickle")
    report = report_on(path)
    (device,) = report.devices
    (failed,) = device.ooms
    gib = 1 << 30
    assert (failed.asked_bytes, failed.device_free_bytes, failed.reserved_bytes) == (2 * gib, 600 * MIB, 19 * gib)
    assert (failed.unused_bytes, failed.largest_free_block_bytes, failed.cause) == (6 * gib, gib, "fragmentation")
    assert device.requested_peak_bytes == 14 * gib
    assert EXPANDABLE in report.page.sentences[1], "right behind the failure"


@pytest.mark.parametrize(("setting", "advised"), [(False, True), (True, False), (None, False)])
def test_the_advice_follows_the_settings(setting: bool | None, advised: bool, tmp_path: Path) -> None:
    document = snapshot(fragmented(expandable=False), settings={"expandable_segments": setting})
    assert (EXPANDABLE in said(of(document, tmp_path))) is advised


def test_a_full_device_gets_no_such_advice(tmp_path: Path) -> None:
    allocator = Allocator(capacity=40 * MIB)
    allocator.allocate(30 * MIB, stack(1))
    assert allocator.allocate(30 * MIB, stack(2)) is None
    text = said(of(snapshot(allocator), tmp_path))
    assert "the memory was full" in text
    assert EXPANDABLE not in text


@pytest.mark.parametrize("pool_ids", [False, True])
def test_memory_that_private_pools_keep_is_no_fragmentation(pool_ids: bool, tmp_path: Path) -> None:
    """Three graphs hold 8 of 20 MiB each, the default pool is full: 36 MiB are free, and none of it for 15 MiB."""
    allocator = Allocator(capacity=100 * MIB, pool_ids=pool_ids)
    for graph in (1, 2, 3):
        allocator.allocate(8 * MIB, stack(graph), pool=(0, graph))
    allocator.allocate(30 * MIB, stack(9))
    assert allocator.allocate(15 * MIB, stack(10)) is None
    report = of(snapshot(allocator), tmp_path)
    (failed,) = report.devices[0].ooms
    assert (failed.cause, failed.unused_bytes, failed.largest_free_block_bytes) == ("other-pool", 36 * MIB, 12 * MIB)
    assert "36.0 MiB of it in private pools" in failed.text
    assert EXPANDABLE not in said(report)


def test_a_history_whose_frees_were_not_recorded(shared: Path) -> None:
    """The events leave 384 MiB that the state at the end does not hold. Peak of the events alone: 402,752,512 bytes."""
    report = report_on(shared / "more" / "snap_late_history.pickle")
    (device,) = report.devices
    assert (device.before_recording_bytes, device.requested_peak_bytes) == (0, 402_752_512)
    assert (device.requested_end_bytes, device.at_end.size_bytes) == (0, 0)
    assert "peak 384 MiB (402,752,512 bytes) requested by the events alone" in said(report)
    assert "384 MiB more than the state at the end holds" in notices(report)["history-mismatch"]


def test_a_recording_that_ended_before_a_free(tmp_path: Path) -> None:
    """40 MiB before, 10 + 20 on record, 20 freed unrecorded: peak 70, 50 at the end, nothing negative anywhere."""
    allocator = Allocator()
    allocator.recording = False
    allocator.allocate(40 * MIB)
    allocator.start_recording()
    allocator.allocate(10 * MIB, stack(5))
    piece = allocator.allocate(20 * MIB, stack(6))
    assert piece is not None
    allocator.recording = False
    allocator.free(piece)
    report = of(snapshot(allocator), tmp_path)
    (device,) = report.devices
    assert (device.before_recording_bytes, device.requested_peak_bytes) == (40 * MIB, 70 * MIB)
    assert (device.requested_end_bytes, device.mismatch_bytes) == (50 * MIB, -20 * MIB)
    ends = {one.label: one.size_bytes for one in device.at_end.by_site}
    assert ends == {"allocated before recording": 40 * MIB, "model.py:5 forward": 10 * MIB}
    assert "1 recorded allocation is not there any more" in notices(report)["history-mismatch"]


def test_more_requested_than_reserved_is_called_a_contradiction(shared: Path) -> None:
    """A synthetic file: 2.10 GiB requested at the peak, 250 MiB reserved; its frees are never asked for."""
    report = report_on(shared / "more" / "snap_mosaic.pickle")
    (device,) = report.devices
    assert (device.requested_peak_bytes, device.reserved_peak_bytes) == (2_255_398_598, 250 * MIB)
    text = notices(report)["requested-above-reserved"]
    assert "2.10 GiB" in text
    assert "250 MiB" in text
    assert min(device.timeline.allocated_bytes) >= 0


def test_a_training_course(shared: Path) -> None:
    report = report_on(shared / "more" / "snap_training_course.pickle")
    assert report.page.headline == "Peak 3.03 GiB"
    assert not report.page.notices


@pytest.mark.parametrize("name", ["snap_late_history", "snap_mosaic", "snap_training_course"])
@pytest.mark.parametrize("form", ["terminal", "md"])
def test_nothing_is_negative_and_no_share_is_above_the_whole(name: str, form: str, shared: Path) -> None:
    text = render(report_on(shared / "more" / f"{name}.pickle"), form)
    assert not re.search(r"(?<![\w.])-\d[\d.,]* (?:B|KiB|MiB|GiB)", text)
    assert all(float(share) <= 100 for share in re.findall(r"([\d.]+)%", text))
