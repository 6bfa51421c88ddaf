"""The session script, tried without a GPU: the groups that end in seconds there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.gpu import session

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
