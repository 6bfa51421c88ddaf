"""Two programs appended in one file: each activity meets its own launches, or none where that is unclear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyze.metrics import Measures
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from analyze.trace.read import read

Row = dict[str, Any]
LATENCY_NS = 12_000


def program(pid: int, start_us: int, kernel_us: int, *, launches: int = 10, first: int = 501) -> list[Row]:
    """An op of 40 µs every 50 µs; its launch begins 20 µs into it, its kernel 12 µs after that, all on pid 0."""
    rows: list[Row] = []
    for i in range(launches):
        at, ids = start_us + 50 * i, {"correlation": first + i, "External id": 2 + i}
        host, gpu = {"ph": "X", "pid": pid, "tid": pid}, {"ph": "X", "pid": 0, "tid": 7}
        rows.append({**host, "cat": "cpu_op", "name": f"op of {kernel_us}", "ts": at, "dur": 40, "args": ids})
        rows.append({**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 20, "dur": 8, "args": ids})
        args = {**ids, "device": 0, "stream": 7}
        rows.append({**gpu, "cat": "kernel", "name": f"k{kernel_us}", "ts": at + 32, "dur": kernel_us, "args": args})
    return rows


def names(pid: int) -> list[Row]:
    """The metadata rows of a program: its own process, and GPU 0 and 1 whatever it used."""
    one = {"ph": "M", "ts": 0, "tid": 0}
    return [
        {**one, "name": name, "pid": p, "args": {"name": "python", "sort_index": p}}
        for p in (pid, 0, 1)
        for name in ("process_name", "process_sort_index")
    ]


def load(rows: list[Row], folder: Path) -> Trace:
    path = folder / "merged.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    return Trace.load(path)


def latencies(trace: Trace) -> list[int]:
    return list(trace.launches["latency_ns"])


A, B = program(1111, 1000, 10), program(2222, 1025, 5)
ORDERS = {
    "metadata behind": [*A, *names(1111), *B, *names(2222)],
    "metadata in front": [*names(1111), *A, *names(2222), *B],
    "metadata behind, the second cut off": [*A, *names(1111), *B],
    "kernels in front of their calls": [*A[::-1], *names(1111), *B[::-1], *names(2222)],
}


@pytest.mark.parametrize("order", ORDERS)
def test_each_kernel_meets_its_own_programs_launch(order: str, tmp_path: Path) -> None:
    trace = load(ORDERS[order], tmp_path)
    assert latencies(trace) == [LATENCY_NS] * 20
    pids = dict(zip(trace.threads["thread"], trace.threads["pid"], strict=True))
    met = {(row["name"], pids[row["launch_thread"]], row["op"]) for row in trace.activities.iter_rows(named=True)}
    assert met == {("k10", "1111", "op of 10"), ("k5", "2222", "op of 5")}
    (said,) = [n for n in trace.notices if n.id == "repeated-ids"]
    assert "two processes with the same ids (1111, 2222): 10 correlation ids" in said.text
    assert "own program only" in said.text


def test_the_original_merged_file(shared: Path) -> None:
    """12 µs for all 20; busy 10 x 10 + 10 x 5 = 150 µs of 1,512 - 1,032 = 480; never 37 or -13 µs."""
    (path,) = shared.glob("cases/25-*/trace.json")
    trace = Trace.load(path)
    assert latencies(trace) == [LATENCY_NS] * 20
    measures = Measures(trace, Definitions(), Scope())
    (device,) = measures.devices
    assert (device.busy_ns, device.window_ns, device.unlinked) == (150_000, 480_000, 0)
    assert measures.launches.complete_share == 1.0


UNCLEAR = {
    "no metadata": [*A, *B],
    "metadata in front of all": [*names(1111), *names(2222), *A, *B],
    "sorted by time": sorted([*names(1111), *A, *names(2222), *B], key=lambda row: int(row["ts"])),
}


@pytest.mark.parametrize("order", UNCLEAR)
def test_what_may_be_anybodys_is_linked_to_nobody_and_said(order: str, tmp_path: Path) -> None:
    trace = load(UNCLEAR[order], tmp_path)
    assert trace.activities["launch"].null_count() == 20
    measures = Measures(trace, Definitions(), Scope())
    said = {n.id: n.text for n in measures.notices}
    assert "two processes with the same ids" in said["repeated-ids"]
    assert "linked to no launch" in said["repeated-ids"]
    assert "two processes with the same ids" in said["unlinked-activities"]
    assert all(not op.total_device_ns for op in measures.ops.ops), "an External id that two programs share names no op"


def test_ids_that_only_one_program_has_are_linked_all_the_same(tmp_path: Path) -> None:
    """Correlations 501..510 and 506..515: 501..505 are the first program's, 511..515 the second's."""
    rows = [*A, *program(2222, 1025, 5, first=506)]
    trace = load(rows, tmp_path)
    linked = trace.activities.filter(trace.activities["launch"].is_not_null())
    assert sorted(linked["correlation"]) == [*range(501, 506), *range(511, 516)]
    assert set(latencies(trace)) == {LATENCY_NS}
    assert trace.notices[0].count == 10


def test_processes_of_one_number_have_threads_of_their_own(tmp_path: Path) -> None:
    """Two containers, both pid 7: the second one's calls lie on a thread of its own, not inside the first one's ops."""
    rows = [*program(7, 1000, 10), *names(7), *program(7, 1025, 5), *names(7)]
    trace = load(rows, tmp_path)
    assert latencies(trace) == [LATENCY_NS] * 20
    assert trace.threads["pid"].to_list() == ["7", "7 (2)"]
    assert trace.ops.group_by("thread").len().sort("thread")["len"].to_list() == [10, 10]
    assert set(zip(trace.activities["name"], trace.activities["op"], strict=True)) == {
        ("k10", "op of 10"),
        ("k5", "op of 5"),
    }


def test_one_program_with_its_metadata_in_the_middle_stays_one(tmp_path: Path) -> None:
    """Calls, metadata, kernels, metadata again: no id repeats, so nothing parts them."""
    host, gpu = [row for row in A if row["pid"]], [row for row in A if not row["pid"]]
    trace = load([*host, *names(1111), *gpu, *names(1111)], tmp_path)
    assert latencies(trace) == [LATENCY_NS] * 10
    assert trace.recording.programs is None
    assert not trace.notices


def test_several_calls_with_one_correlation_are_no_second_program(tmp_path: Path) -> None:
    """The runtime's call and the driver's call under it: the first in the file is the launch."""
    driver = [{**row, "cat": "cuda_driver", "name": "cuLaunchKernel"} for row in A if row["cat"] == "cuda_runtime"]
    trace = load([*A, *driver, *names(1111)], tmp_path)
    assert trace.recording.programs is None
    assert set(trace.launches["name"]) == {"cudaLaunchKernel"}


def test_several_processes_read_the_places_of_metadata_rows_alike(tmp_path: Path) -> None:
    rows = [
        *program(1, 1000, 10, launches=3000, first=1),
        *names(1),
        *program(2, 1025, 5, launches=3000, first=1),
        *names(2),
    ]
    path = tmp_path / "big.json"
    path.write_text(json.dumps({"traceEvents": rows}, indent=2))
    assert path.stat().st_size > 1 << 21
    one, three = read(path, jobs=1), read(path, jobs=3)
    assert one.programs is not None
    assert three.programs is not None
    assert (one.programs.of_activity == three.programs.of_activity).all()
    assert set(Trace(three).launches["latency_ns"]) == {LATENCY_NS}
