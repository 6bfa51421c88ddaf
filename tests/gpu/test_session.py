"""The session script, tried without a GPU: the groups that end in seconds there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from analyze import Trace, build_report
from tests.gpu import judge, session
from tests.report.runs import run as run_of

SCRIPT = Path(__file__).with_name("session.sh")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_script_on_the_cpu(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    command = [str(SCRIPT), str(tmp_path), "--device", "cpu", "variants"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = [json.loads(line) for line in (tmp_path / "recordings" / "results.jsonl").read_text().splitlines()]
    assert [(result["name"], result["outcome"]) for result in results] == [
        (name, "ok") for name in ("cuda_graph", "weights", "amp", "steps", "stacks")
    ]
    with tarfile.open(tmp_path / "session.tar.gz") as tar:
        names = set(tar.getnames())
    assert {"log.txt", "recordings/results.jsonl"} < names
    for recording in ("amp", "steps", "stacks"):
        files = {f"recordings/{recording}/{name}" for name in ("trace.json.gz", "run.json", "key_averages.json")}
        assert files < names
    assert (tmp_path / "session.tar.gz").stat().st_size < 16_000_000


def test_a_failing_recording_does_not_cost_the_session(tmp_path: Path) -> None:
    def fail() -> str:
        raise ZeroDivisionError("planted")

    assert session._report("broken", tmp_path, fail) is False
    assert session._report("sound", tmp_path, lambda: "fine") is True
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines] == ["FAILED", "ok"]
    assert "ZeroDivisionError: planted" in lines[0]["text"]


def test_the_tar_leaves_out_the_largest_when_it_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.txt").write_bytes(b"x")
    (tmp_path / "large.bin").write_bytes(os.urandom(50_000))
    monkeypatch.setattr(session, "MOST_TAR_BYTES", 20_000)
    assert session.pack(tmp_path) is False
    with tarfile.open(tmp_path / "session.tar.gz") as tar:
        assert tar.getnames() == ["small.txt"]


def test_the_comparison_of_peaks_can_fail(tmp_path: Path) -> None:
    """Weights of 20 MiB, then three steps that keep 4 MiB and use 8 for a while: most in the last one."""
    from tests.snapshot.conftest import write_pickle
    from tests.snapshot.test_report import busy, snapshot

    run = tmp_path / "recordings" / "weights"
    run.mkdir(parents=True)
    write_pickle(snapshot(busy()), run / "snapshot.pickle")
    (run / "run.json").write_text("{}")
    right = 20 + 3 * 4 + 8  # MiB
    for peak, holds in ((right << 20, True), ((right << 20) + 512, False)):
        (run / "snapshot_memory_stats.json").write_text(json.dumps({"requested_bytes.all.peak": peak}))
        (line,) = judge.judge(tmp_path)
        assert line.holds is holds, line.text


def test_averages_that_differ_are_named(tmp_path: Path) -> None:
    """One op of 20 us with a launch of 5 us in it; torch would say 20 us of its own, since it ends calls elsewhere."""
    run = tmp_path / "eager"
    run.mkdir()
    builder = run_of([400, 410])
    report = build_report(Trace.load(builder.write(run / "trace.json.gz")))
    (op,) = (op for op in report.measures.ops.ops if op.name == "aten::mm")
    row = {"key": "aten::mm", "device_type": "DeviceType.CPU", "is_user_annotation": False, "count": 2}
    row |= {"self_cpu_time_total": op.self_cpu_ns / 1000, "self_device_time_total": 810}
    for change, holds in (({}, True), ({"count": 3}, False), ({"self_device_time_total": 812}, False)):
        (run / "key_averages.json").write_text(json.dumps([{**row, **change}]))
        (line,) = judge._averages(run, report)
        assert line.holds is holds, line.text
    (run / "key_averages.json").write_text("[]")
    assert next(iter(judge._averages(run, report))).holds is False, "nothing compared is no agreement"


def test_the_error_of_a_prediction_is_by_hand(tmp_path: Path) -> None:
    """2 ms eager and no finding: 2 ms predicted; 1.6 ms measured: 25 % too slow."""
    for name, p50 in (("eager_b8", 2_000_000), ("fp16_b8", 1_600_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"latency": {"p50_ns": p50}}))
    report = build_report(
        Trace.load(run_of([400, 410], name="ampere_fp16_s16816gemm_fp16_128x64").write(tmp_path / "t.json"))
    )
    (line,) = judge._pairs(tmp_path, {"eager_b8": report})
    assert line.text.endswith("2.000 ms predicted (no finding), 1.600 ms measured: error +25.0%")
