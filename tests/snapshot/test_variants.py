"""All forms in which snapshots come, and what each leaves unsaid."""

from __future__ import annotations

import gzip
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from analyze.errors import SnapshotError, UnreadableError
from analyze.report.snapshot import SnapshotReport, build_snapshot_report
from analyze.snapshot import Snapshot, is_snapshot, measure_snapshot, recorded_beside
from tests.snapshot.conftest import Measure, write_pickle
from tests.synthetic.allocator import MIB, Allocator, snapshot, stack


def example(**how: Any) -> Allocator:
    """40 MiB from before; +10, +20, -20 MiB on record. Peak 70 MiB at the second allocation."""
    allocator = Allocator(**how)
    allocator.recording = False
    allocator.allocate(40 * MIB)
    allocator.start_recording()
    allocator.allocate(10 * MIB, stack(5, 50))
    piece = allocator.allocate(20 * MIB, stack(6, 50))
    assert piece is not None
    allocator.free(piece)
    return allocator


def report_on(path: Path) -> SnapshotReport:
    return build_snapshot_report(Snapshot.load(path))


PEAK = 70 * MIB
FORMS = {
    "protocol 2": lambda d: pickle.dumps(d, 2),
    "protocol 3": lambda d: pickle.dumps(d, 3),
    "protocol 4": lambda d: pickle.dumps(d, 4),
    "protocol 5": lambda d: pickle.dumps(d, 5),
    "gzipped": lambda d: gzip.compress(pickle.dumps(d, 4)),
    "JSON": lambda d: json.dumps(d).encode(),
    "JSON in other order": lambda d: json.dumps(d, sort_keys=True, indent=1).encode(),
    "gzipped JSON": lambda d: gzip.compress(json.dumps(d).encode()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", ["pickle", "bin"])
def test_every_form_gives_the_same_figures(tmp_path: Path, form: str, suffix: str) -> None:
    path = tmp_path / f"memory.{suffix}"
    path.write_bytes(FORMS[form](snapshot(example())))
    assert is_snapshot(path)
    (device,) = report_on(path).devices
    assert (device.before_recording_bytes, device.requested_peak_bytes, device.peak_event) == (40 * MIB, PEAK, 3)
    assert device.requested_end_bytes == 50 * MIB
    held = {one.label: one.size_bytes for one in device.at_peak.by_site}
    assert held == {
        "allocated before recording": 40 * MIB,
        "model.py:5 forward": 10 * MIB,
        "model.py:6 forward": 20 * MIB,
    }


def test_segments_alone(tmp_path: Path) -> None:
    """`torch.cuda.memory_snapshot()` gives a list: a state without a history."""
    report = report_on(write_pickle(snapshot(example())["segments"], tmp_path / "s.pickle"))
    (device,) = report.devices
    assert (device.requested_end_bytes, device.events, device.peak_event) == (50 * MIB, 0, -1)
    assert report.page.headline == "50.0 MiB in use"
    assert "history" in [missing.id for missing in report.page.not_measured]
    path = tmp_path / "s.json"
    path.write_text(json.dumps(snapshot(example())["segments"]))
    assert is_snapshot(path)
    assert report_on(path).devices[0].requested_end_bytes == 50 * MIB


def test_events_alone_have_no_level(tmp_path: Path) -> None:
    document = snapshot(example())
    del document["segments"]
    devices, notices = measure_snapshot(Snapshot.load(write_pickle(document, tmp_path / "s.pickle")))
    assert (devices[0].before_recording_bytes, devices[0].requested_peak_bytes) == (0, 30 * MIB)
    assert "level-unknown" in [notice.id for notice in notices]


EMPTY: dict[str, Any] = {"segments": [], "device_traces": [], "allocator_settings": {}, "external_annotations": []}


@pytest.mark.parametrize("document", [EMPTY, {**EMPTY, "device_traces": [[], []]}, []])
def test_an_empty_snapshot_says_why(tmp_path: Path, document: Any) -> None:
    report = report_on(write_pickle(document, tmp_path / "s.pickle"))
    assert report.devices == ()
    assert report.page.headline == "Empty snapshot"
    assert "recording was off" in report.page.sentences[0]


def test_a_profile_turned_into_a_snapshot(tmp_path: Path) -> None:
    """`torch.cuda._memory_viz._profile_to_snapshot`: no times, no block addresses, categories, names with files."""
    torch = pytest.importorskip("torch")
    viz = pytest.importorskip("torch.cuda._memory_viz")
    from torch.profiler import ProfilerActivity, profile

    model = torch.nn.Linear(64, 64)
    batch = torch.ones(8, 64)
    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True
    ) as recorded:
        model(batch).sum().backward()
    document = viz._profile_to_snapshot(recorded)
    report = report_on(write_pickle(document, tmp_path / "s.pickle"))
    device = report.devices[-1]
    assert device.requested_end_bytes == sum(
        block["requested_size"]
        for segment in document["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    )
    sizes = {"alloc": 1, "free_completed": -1}
    total = peak = device.before_recording_bytes
    for event in document["device_traces"][-1]:
        total += sizes.get(event["action"], 0) * event["size"]
        peak = max(peak, total)
    assert (total, peak) == (device.requested_end_bytes, device.requested_peak_bytes)
    assert "gradient" in {held.label for held in device.at_end.by_annotation}


def test_pinned_host_memory_is_a_device_of_its_own(tmp_path: Path) -> None:
    device, host = example(), example()
    document = snapshot(device)
    document["host_segments"] = host.segments()
    document["host_traces"] = [list(host.events)]
    found = report_on(write_pickle(document, tmp_path / "s.pickle")).devices
    assert [(d.id, d.label, d.requested_peak_bytes) for d in found] == [
        (0, "device 0", PEAK),
        (-1, "pinned host memory", PEAK),
    ]


def test_fields_of_other_versions(tmp_path: Path) -> None:
    """2.10 adds fx keys to frames, 2.12 pools to events, 2.14 annotate; 2^64 - 1 stands for unlimited in old files."""
    document = snapshot(example(pool_ids=True), settings={"max_split_size": 2**64 - 1})
    trace = document["device_traces"][0]
    trace[1]["frames"][0]["fx_node_name"] = "addmm"
    trace[1]["forward_frames"] = ["forward"]
    trace.append({"action": "annotate", "addr": 1, "size": 0, "stream": 0, "user_metadata": "weight", "time_us": 1})
    trace.append({"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 1})
    trace.append({"action": "teleport", "addr": 0, "size": 5, "stream": 0, "time_us": 1})
    report = report_on(write_pickle(document, tmp_path / "s.pickle"))
    assert report.devices[0].requested_peak_bytes == PEAK
    assert report.devices[0].actions["teleport"] == 1
    assert [n.count for n in report.page.notices if n.id == "unknown-actions"] == [1]


def test_files_without_requested_sizes_and_times(tmp_path: Path) -> None:
    document = snapshot(example())
    for segment in document["segments"]:
        for block in segment["blocks"]:
            del block["requested_size"]
    for event in document["device_traces"][0]:
        del event["time_us"], event["frames"], event["compile_context"]
    report = report_on(write_pickle(document, tmp_path / "s.pickle"))
    assert report.devices[0].requested_peak_bytes == PEAK, "these sizes are whole blocks"
    assert "rounded-sizes" in [notice.id for notice in report.page.notices]
    assert "stacks" in [missing.id for missing in report.page.not_measured]


def test_legacy_frees_and_both_names_of_pending(measured: Measure) -> None:
    document = snapshot(example())
    trace = document["device_traces"][0]
    frees = [event for event in trace if event["action"].startswith("free")]
    frees[0]["action"] = "free"
    trace.remove(frees[1])
    assert measured(document)[0].allocated_end_bytes == 50 * MIB
    for state in ("active_pending_free", "active_awaiting_free"):
        document = snapshot(example())
        document["segments"][0]["blocks"][0]["state"] = state
        assert measured(document)[0].pending_free_bytes == 40 * MIB


def test_what_capture_noted_beside_the_snapshot(tmp_path: Path) -> None:
    path = write_pickle(snapshot(example()), tmp_path / "snapshot.pickle")
    events = len(example().events)
    noted = {
        "file": path.name, "events": events, "max_entries": 100_000,
        "device_free_bytes": 100 * MIB, "device_total_bytes": 400 * MIB, "peak_requested_bytes": PEAK,
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps({"snapshot": noted}))
    loaded = Snapshot.load(path)
    (device,), quiet = measure_snapshot(loaded, recorded_beside(path))
    assert quiet == ()
    assert device.outside_bytes == 400 * MIB - 100 * MIB - device.reserved_end_bytes
    assert device.overflow == "none seen"
    noted["max_entries"] = events
    (tmp_path / "run.json").write_text(json.dumps({"snapshot": noted}))
    (device,), notices = measure_snapshot(loaded, recorded_beside(path))
    assert device.overflow == "yes"
    assert "history-overflow" in [notice.id for notice in notices]
    noted["peak_requested_bytes"] = PEAK + 1
    (tmp_path / "run.json").write_text(json.dumps({"snapshot": noted}))
    assert "peak-disagrees" in [notice.id for notice in measure_snapshot(loaded, recorded_beside(path))[1]]
    noted["file"] = "another.pickle"
    (tmp_path / "run.json").write_text(json.dumps({"snapshot": noted}))
    assert recorded_beside(path) is None


def test_overflow_is_detected(measured: Measure) -> None:
    """By the settings of newer files, or by blocks with a stack and without an allocation."""

    def ring(most: int | None, **settings: Any) -> str:
        allocator = Allocator(max_entries=most)
        for line in range(8):
            allocator.allocate(3 * MIB, stack(line + 1))
        return str(measured(snapshot(allocator, settings=settings))[0].overflow)

    assert ring(None) == "none seen"
    assert ring(5) == "possible"
    assert ring(5, trace_alloc_max_entries=5) == "yes"
    assert ring(5, trace_alloc_overflowed=True) == "yes"
    assert ring(None, trace_alloc_max_entries=100_000) == "none seen"


def test_torch_prints_the_same_totals(tmp_path: Path) -> None:
    """`python -m torch.cuda._memory_viz stats` on the same file."""
    pytest.importorskip("torch")
    viz = pytest.importorskip("torch.cuda._memory_viz")
    document = snapshot(example())
    document["segments"] += snapshot(example(device=1))["segments"]
    (device, other), _ = measure_snapshot(Snapshot.load(write_pickle(document, tmp_path / "s.pickle")))
    text = viz.segsum(document)
    reserved, requested = (
        sum(getattr(one, f"{name}_end_bytes") for one in (device, other)) for name in ("reserved", "requested")
    )
    assert f"total_reserved: {viz.Bytes(reserved)}\n" in text
    assert f"total_allocated: {viz.Bytes(requested)}\n" in text


REFUSED = {
    "a word": ("hello", "neither segments nor device_traces"),
    "another dictionary": ({"weights": [1]}, "neither segments nor device_traces"),
    "segments of numbers": ({"segments": [1]}, "segment that is no dictionary"),
    "text as size": ({"segments": [{"total_size": "big"}]}, "no whole number"),
    "too large": ({"segments": [{"total_size": 2**63}]}, "beyond any machine"),
    "negative": ({"segments": [], "device_traces": [[{"action": "alloc", "size": -1}]]}, "beyond any machine"),
    "true as size": ({"segments": [], "device_traces": [[{"action": "alloc", "size": True}]]}, "no whole number"),
    "list as action": ({"device_traces": [[{"action": ["alloc"], "size": 1}]]}, "list where a name"),
    "bytes-like name": ({"device_traces": [[{"action": 5, "size": 1}]]}, "int where a text"),
    "frames of numbers": ({"device_traces": [[{"action": "alloc", "size": 1, "frames": [1]}]]}, "frames are no dict"),
    "frames as number": ({"device_traces": [[{"action": "alloc", "size": 1, "frames": 7}]]}, "stack that is no list"),
    "odd clock": ({"device_traces": [[{"action": "alloc", "size": 1, "time_us": 2**63}]]}, "no clock"),
    "pool of three": ({"device_traces": [[{"action": "alloc", "size": 1, "pool_id": (1, 2, 3)}]]}, "pair of numbers"),
    "huge sum": ({"device_traces": [[{"action": "alloc", "size": 2**61}] * 1 + [{"size": 2**61}, {"size": 2**61}]]},
                 "beyond any machine"),
    "annotation of texts": ({"segments": [], "external_annotations": ["a"]}, "annotation that is no dictionary"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_snapshot_is_refused_in_one_sentence(tmp_path: Path, kind: str) -> None:
    document, said = REFUSED[kind]
    path = write_pickle(document, tmp_path / "odd.pickle")
    with pytest.raises(SnapshotError, match=re.escape(said)) as caught:
        Snapshot.load(path)
    assert caught.value.message.startswith("odd.pickle")
    assert "\n" not in caught.value.message


def test_damaged_files_are_named(tmp_path: Path) -> None:
    whole = pickle.dumps(snapshot(example()), 4)
    path = tmp_path / "s.pickle"
    for cut in (3, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(SnapshotError):
            Snapshot.load(path)
    path.write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(UnreadableError):
        Snapshot.load(path)
    path.write_bytes(whole + b"something after its end")
    assert Snapshot.load(path).segments, "what follows the end of a pickle is no part of it"
