"""`analyze FOLDER` on the command line: what is printed, and with which exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tests.conftest import ROOT
from tests.ranks.conftest import Run
from tests.ranks.jobs import random_job, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(random_job(12)[0], tmp_path / "job")


def test_a_folder_and_its_files_give_one_job(folder: Path, tmp_path: Path, run: Run) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "analyze", str(folder), "--report", "json", "--workers", "2"]
    found = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert found["kind"] == "ranks"
    files = sorted(folder.iterdir())
    again = json.loads(run(*files, "--report", "json").stdout)
    assert again["job"] == found["job"]


def test_a_report_on_one_rank(folder: Path, tmp_path: Path, run: Run) -> None:
    found = json.loads(run(folder, "--rank", 1, "--report", "json").stdout)
    assert found["trace"]["name"] == "rank1.json"
    refused = run(folder, "--rank", 77)
    assert refused.returncode == 2
    assert "There is no rank 77" in refused.stderr


def test_the_only_trace_of_a_folder_is_reported_on(folder: Path, tmp_path: Path, run: Run) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(folder / "rank0.json", alone)
    done = run(alone, "--report", "json")
    assert json.loads(done.stdout)["trace"]["name"] == "rank0.json"
    assert "holds one trace: rank0.json" in done.stderr


def test_gates_on_a_job(folder: Path, tmp_path: Path, run: Run) -> None:
    gates = ("missing_ranks >= 0", "min_busbw:all_reduce < 1 TB/s", "exposed_wait_share > 200%")
    done = run(folder, "-q", *(part for gate in gates for part in ("--fail-if", gate)))
    assert done.returncode == 1
    assert "✗ missing_ranks" in done.stdout
    assert "✓ exposed_wait_share" in done.stdout
    assert run(folder, "--fail-if", "min_busbw:all_reduce < 3").returncode == 2


def test_what_is_for_one_trace_is_refused(folder: Path, tmp_path: Path, run: Run) -> None:
    for options in (("--steps", "1:2"), ("--range", "x"), ("--round", "9"), ("--job", "512"), ("--shard", "2/2")):
        done = run(folder, *options)
        assert (done.returncode, done.stdout) == (2, ""), options
        assert "Hint: " in done.stderr
        assert "Traceback" not in done.stderr


def test_two_folders_are_compared(folder: Path, tmp_path: Path, run: Run) -> None:
    other = write(random_job(12)[0], tmp_path / "other")
    found = json.loads(run("compare", folder, other, "--report", "json").stdout)
    assert found["kind"] == "ranks-comparison"
    assert all(one["a_ns"] == one["b_ns"] for one in found["changes"])


def test_the_report_shows_no_folder_when_redacted(folder: Path, tmp_path: Path, run: Run) -> None:
    deep = tmp_path / "secret_user" / "run"
    shutil.copytree(folder, deep / "host_secret")
    done = run(deep, "--redact", "--report", "json")
    assert done.returncode == 0, done.stderr
    assert "secret_user" not in done.stdout


def test_gates_of_a_job_as_junit(folder: Path, tmp_path: Path, run: Run) -> None:
    gates = ("--fail-if", "missing_ranks >= 0", "--fail-if", "exposed_wait_share > 200%")
    done = run(folder, "-q", *gates, "--junit", tmp_path / "gates.xml")
    assert done.returncode == 1
    (suite,) = ET.parse(tmp_path / "gates.xml").getroot()
    assert suite.attrib["tests"] == "2"
    assert [case.attrib["name"] for case in suite if case.find("failure") is not None] == ["missing_ranks >= 0"]
    assert {case.attrib["classname"] for case in suite} == {"job"}


def test_documents_keep_their_contracts(folder: Path, tmp_path: Path, run: Run) -> None:
    from analyze.compare.ranks_schemas import ranks_comparison_schema, ranks_schema

    report = json.loads(run(folder, "--fail-if", "missing_ranks > 9", "--report", "json").stdout)
    jsonschema.validate(report, ranks_schema())
    shutil.copytree(folder, tmp_path / "fewer", ignore=lambda *_: ["rank0.json"])
    fewer = json.loads(run(tmp_path / "fewer", "--report", "json").stdout)
    jsonschema.validate(fewer, ranks_schema())
    compared = json.loads(run("compare", folder, tmp_path / "fewer", "--report", "json").stdout)
    jsonschema.validate(compared, ranks_comparison_schema())


def test_odd_things_in_a_folder_cost_their_own_row(folder: Path, run: Run) -> None:
    right = json.loads(run(folder, "--report", "json").stdout)["job"]
    (folder / "dangling.json").symlink_to("nowhere")
    (folder / "again").symlink_to(folder)
    os.mkfifo(folder / "pipe.json")
    done = run(folder, "--report", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["job"]
    assert found.pop("left_out") == [
        ["dangling.json", "a link to a file that does not exist"],
        ["pipe.json", "a pipe or a device, not a file"],
    ]
    assert right.pop("left_out") == []
    assert found == right


def test_what_is_no_job_is_one_error_with_a_hint(folder: Path, tmp_path: Path, run: Run) -> None:
    places = {name: tmp_path / name for name in ("empty", "pickles", "texts", "broken")}
    for place in places.values():
        place.mkdir()
    (places["pickles"] / "snapshot.pickle").write_bytes(b"\x80\x04.")
    (places["texts"] / "notes.json").write_text("{}")
    (places["broken"] / "a.json").symlink_to("nowhere")
    for args, said in (
        ([places["empty"]], "without .json or .json.gz files"),
        ([places["pickles"]], "a folder of pickles"),
        ([places["texts"]], "a folder without a trace"),
        ([places["broken"]], "No file could be read; the first, a.json"),
        ([tmp_path / "nowhere"], "does not exist"),
        ([folder / "rank0.json", "-"], "Standard input holds one trace"),
        ([folder / "rank0.json", tmp_path / "nowhere.json"], "there is no such file"),
        (["--from-store", places["empty"]], "holds no summaries"),
        ([folder, "--cluster", "tcp://127.0.0.1:1"], "No Dask scheduler answers"),
    ):
        done = run(*args)
        assert (done.returncode, done.stdout) == (2, ""), args
        assert said in done.stderr, args
        assert "\nHint: " in done.stderr, args
        assert done.stderr.count("Error") == 1, done.stderr


def test_traces_of_several_jobs_are_listed_with_a_hint(folder: Path, tmp_path: Path, run: Run) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(folder / "rank0.json", mixed / "a.json")
    other = json.loads((folder / "rank0.json").read_text())
    other["distributedInfo"]["world_size"] = 64
    (mixed / "b.json").write_text(json.dumps(other))
    done = run(mixed)
    assert done.returncode == 2
    assert "holds 2 traces, but no two are ranks of one job." in done.stderr
    assert "\n  64 ranks: b.json" in done.stderr


def test_a_file_that_may_not_be_read_is_left_out(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "rank0" not in str(path) and allowed(path, mode))
    found = json.loads(run(folder, "--report", "json").stdout)["job"]
    assert found["left_out"] == [["rank0.json", "there is no permission to read it"]]
