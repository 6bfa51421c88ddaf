"""`analyze FOLDER` on the command line: what is printed, and with which exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.ranks.jobs import random_job, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(random_job(12)[0], tmp_path / "job")


def run(*args: object, cache: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "analyze", *map(str, args)]
    return subprocess.run(command, env=env, cwd=cache, capture_output=True, text=True, check=False)


def test_a_folder_and_its_files_give_one_job(folder: Path, tmp_path: Path) -> None:
    found = json.loads(run(folder, "--report", "json", cache=tmp_path).stdout)
    assert found["kind"] == "ranks"
    files = sorted(folder.iterdir())
    again = json.loads(run(*files, "--report", "json", cache=tmp_path).stdout)
    assert again["job"] == found["job"]


def test_a_report_on_one_rank(folder: Path, tmp_path: Path) -> None:
    found = json.loads(run(folder, "--rank", 1, "--report", "json", cache=tmp_path).stdout)
    assert found["trace"]["name"] == "rank1.json"
    refused = run(folder, "--rank", 77, cache=tmp_path)
    assert refused.returncode == 2
    assert "There is no rank 77" in refused.stderr


def test_the_only_trace_of_a_folder_is_reported_on(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(folder / "rank0.json", alone)
    done = run(alone, "--report", "json", cache=tmp_path)
    assert json.loads(done.stdout)["trace"]["name"] == "rank0.json"
    assert "holds one trace: rank0.json" in done.stderr


def test_gates_on_a_job(folder: Path, tmp_path: Path) -> None:
    gates = ("missing_ranks >= 0", "min_busbw:all_reduce < 1 TB/s", "exposed_wait_share > 200%")
    done = run(folder, "-q", *(part for gate in gates for part in ("--fail-if", gate)), cache=tmp_path)
    assert done.returncode == 1
    assert "✗ missing_ranks" in done.stdout
    assert "✓ exposed_wait_share" in done.stdout
    assert run(folder, "--fail-if", "min_busbw:all_reduce < 3", cache=tmp_path).returncode == 2


def test_what_is_for_one_trace_is_refused(folder: Path, tmp_path: Path) -> None:
    for options in (("--steps", "1:2"), ("--range", "x"), ("--round", "9"), ("--job", "512"), ("--shard", "2/2")):
        done = run(folder, *options, cache=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), options
        assert "Hint: " in done.stderr
        assert "Traceback" not in done.stderr


def test_two_folders_are_compared(folder: Path, tmp_path: Path) -> None:
    other = write(random_job(12)[0], tmp_path / "other")
    found = json.loads(run("compare", folder, other, "--report", "json", cache=tmp_path).stdout)
    assert found["kind"] == "ranks-comparison"
    assert all(one["a_ns"] == one["b_ns"] for one in found["changes"])


def test_the_report_shows_no_folder_when_redacted(folder: Path, tmp_path: Path) -> None:
    deep = tmp_path / "secret_user" / "run"
    shutil.copytree(folder, deep / "host_secret")
    done = run(deep, "--redact", "--report", "json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "secret_user" not in done.stdout
