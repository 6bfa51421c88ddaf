"""Nothing is written over that is not ours: inputs, notes of capture or with our name in them, what a link leads to."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from analyze.errors import OutputError
from analyze.report.files import write_text
from tests.builder import TraceBuilder
from tests.test_cli import run

OURS = [".txt", ".md", ".json", ".xml"]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    b = TraceBuilder().step(1, 0, 900).run("gemm", (10, 5), (20, 10)).run("gemm", (200, 5), (300, 10))
    return b.write(tmp_path / "trace.json")


def refused(path: Path, *args: str | Path, why: str) -> None:
    """The command exits with 2 and one sentence, and leaves the file as it was."""
    before = path.read_bytes()
    done = run(*args)
    assert done.returncode == 2, done.stderr
    assert why in done.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", OURS)
def test_every_report_of_ours_is_replaced(suffix: str, trace: Path) -> None:
    path = trace.with_name(f"report{suffix}")
    args = ("--junit", path, "--fail-if", "idle_share > 99%") if suffix == ".xml" else ("-o", path)
    assert run(trace, *args).returncode == 0
    first = path.read_bytes()
    again = run(trace, *args)
    assert (again.returncode, path.read_bytes()) == (0, first)
    path.write_bytes(first + b"\nmy own notes below it\n")
    refused(path, trace, *args, why="is no report of gpuledger")


@pytest.mark.parametrize(
    "text",
    [
        "my notes on gpuledger",
        "gpuledger 0.1.0, report schema 1.1\nwas what I used",
        json.dumps({"tool": {"name": "gpuledger", "version": "1"}, "schema_version": "1.0", "model": "vit"}),
        json.dumps({"traceEvents": [], "gpuledger": {"tool": {"name": "gpuledger"}}}),
    ],
)
@pytest.mark.parametrize("suffix", OURS)
def test_what_only_names_us_is_kept(text: str, suffix: str, trace: Path) -> None:
    path = trace.with_name(f"run{suffix}")
    path.write_text(text)
    args = ("--junit", path) if suffix == ".xml" else ("-o", path)
    refused(path, trace, *args, why="is no report of gpuledger")
    assert run(trace, *args, "--force").returncode == 0


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_input_is_no_output(force: tuple[str, ...], trace: Path) -> None:
    link, hard = trace.with_name("link.json"), trace.with_name("hard.json")
    link.symlink_to(trace)
    os.link(trace, hard)
    report = trace.with_name("report.json")
    assert run(trace, "-o", report).returncode == 0
    for output in (trace, link, hard, trace.parent / "." / trace.name):
        refused(trace, trace, "-o", output, *force, why="is the input")
        refused(trace, trace, "--junit", output, *force, why="is the input")
    refused(report, trace, "--baseline", report, "-o", report, *force, why="is the input")
    refused(report, "compare", report, trace, "-o", report, *force, why="is the input")
    with trace.open("rb") as stdin:
        before = trace.read_bytes()
        import subprocess
        import sys

        done = subprocess.run([sys.executable, "-m", "analyze", "-", "-o", str(trace), *force], stdin=stdin,
                              capture_output=True, check=False)  # fmt: skip
        assert (done.returncode, trace.read_bytes()) == (2, before)


def test_the_summary_is_no_input(trace: Path) -> None:
    before = trace.read_bytes()
    done = run(trace, "--summary-github", GITHUB_STEP_SUMMARY=str(trace))
    assert (done.returncode, trace.read_bytes()) == (2, before)


def test_two_outputs_are_two_files(trace: Path) -> None:
    link = trace.with_name("b.json")
    link.symlink_to(trace.with_name("a.json"))
    for pair in (("-o", "a.md", "-o", "a.md"), ("-o", "a.json", "-o", "b.json"), ("-o", "a.md", "--junit", "./a.md")):
        args = [arg if arg.startswith("-") else trace.parent / arg for arg in pair]
        done = run(trace, *args)
        assert (done.returncode, "one file" in done.stderr) == (2, True), done.stderr


def test_refused_before_anything_is_written(trace: Path) -> None:
    note = trace.with_name("note.md")
    note.write_text("mine")
    done = run(trace, "-o", trace.with_name("first.json"), "-o", note)
    assert (done.returncode, trace.with_name("first.json").exists()) == (2, False)


def test_links_are_followed(trace: Path, tmp_path: Path) -> None:
    place = tmp_path / "real"
    place.mkdir()
    link = tmp_path / "latest.md"
    link.symlink_to(place / "report.md")  # nothing is there yet
    for _ in range(2):
        assert run(trace, "-o", link).returncode == 0
        assert link.is_symlink()
        assert (place / "report.md").read_text().startswith("## Trace report")
    assert sorted(p.name for p in place.iterdir()) == ["report.md"], "no half files are left"


def test_modes_follow_the_umask_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    old = os.umask(0o027)
    try:
        write_text("x\n", path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.write_text("")
        path.chmod(0o604)
        write_text("x\n", path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604, "a file keeps its own mode"
    finally:
        os.umask(old)


def test_what_is_no_plain_file_is_written_to(trace: Path, tmp_path: Path) -> None:
    link = tmp_path / "null.md"
    link.symlink_to(os.devnull)
    assert run(trace, "-o", link).returncode == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    with pytest.raises(OutputError, match="is a folder"):
        write_text("x", tmp_path, force=True)


def test_a_full_disk_leaves_the_old_report(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.md"
    assert run(trace, "-o", path).returncode == 0
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match="No space left"):
        write_text("y", path)
    assert path.read_bytes() == before
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")], "no half file is left"


def test_notes_of_capture_beside_a_trace(shared: Path, tmp_path: Path) -> None:
    """The file that capture writes beside its trace carries the program's name and a schema version."""
    trace = tmp_path / "trace.json.gz"
    shutil.copy(Path(__file__).parents[1] / "sample_traces" / "vit_tiny_fp32_synthetic.json.gz", trace)
    run_json = tmp_path / "run.json"
    block = {"schema_version": "1.0", "tool": {"name": "gpuledger", "version": "0.1.0"}, "model": "vit", "notices": []}
    run_json.write_text(json.dumps(block))
    refused(run_json, trace, "-o", run_json, why="is no report of gpuledger")
