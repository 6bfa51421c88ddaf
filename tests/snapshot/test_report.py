"""Reports on snapshots: what their first lines say, their contract, escaping, redaction, comparison."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from analyze.blocks import Kind, Series
from analyze.report import build_report, render
from analyze.report.comparison import compare_snapshots
from analyze.report.redact import redacted, shorten_paths
from analyze.report.snapshot import build_snapshot_report
from analyze.report.snapshot_json import snapshot_document, snapshot_schema
from analyze.report.text import sparkline, to_ascii
from analyze.report.to_terminal import render as to_terminal
from analyze.snapshot import Snapshot
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.report.test_reports import NASTY
from tests.snapshot.conftest import write_pickle
from tests.synthetic.allocator import MIB, Allocator, snapshot, stack

ROOT = Path(__file__).parents[2]


def run(*args: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "analyze", *map(str, args)], input=stdin, capture_output=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def busy() -> Allocator:
    """Three steps that leave 4 MiB each at one place; a pending free; a failure in pieces; two pools."""
    allocator = Allocator(capacity=100 * MIB, pool_ids=True)
    allocator.recording = False
    allocator.allocate(20 * MIB)
    allocator.start_recording()
    for _ in range(3):
        allocator.annotate("step", start=True)
        allocator.allocate(4 * MIB, stack(31, 100))
        work = allocator.allocate(8 * MIB, stack(32, 100), label="layer3")
        assert work is not None
        allocator.free(work)
        allocator.annotate("step", start=False)
    held = allocator.allocate(3 * MIB, stack(33, 100), stream=1)
    assert held is not None
    allocator.free(held, in_use=True)
    allocator.allocate(2 * MIB, stack(34, 100), pool=(0, 7))
    allocator.allocate(200 * MIB, stack(35, 100))
    return allocator


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_pickle(snapshot(busy()), tmp_path / "busy.pickle")


def test_the_first_lines_of_a_real_snapshot(shared: Path) -> None:
    """Peak, start value and what the peak was made of, before anything else."""
    report = build_snapshot_report(Snapshot.load(shared / "snapshots" / "medium_1024_training_snapshot.pickle"))
    first = " ".join(render(report, "terminal").split("Alive at")[0].split())
    assert "PEAK 22.5 GIB" in first
    assert "peak 22.5 GiB (24,207,167,496 bytes)" in first
    assert "start 4.75 GiB (5,095,895,040 bytes) from before the recording" in first
    assert "made of 6.00 GiB nn_utils.py:6 softmax, 4.75 GiB allocated before recording" in first


def test_everything_is_told(path: Path) -> None:
    report = build_snapshot_report(Snapshot.load(path))
    (device,) = report.devices
    assert [one.label for one in device.growth.growing] == ["model.py:31 forward"]
    assert device.growth.growing[0].bytes_per_step == (4 * MIB, 4 * MIB, 4 * MIB)
    assert device.pending_free_bytes == 3 * MIB
    (failed,) = device.ooms
    assert (failed.asked_bytes, failed.cause) == (200 * MIB, "full")
    assert {one.label for one in device.at_end.by_pool} >= {"default pool, stream 1", "private pool 0,7, stream 0"}
    text = render(report, "md")
    assert "Out of memory" in text
    assert "200 MiB were asked for and the device had" in text
    assert "Grows from step to step and stays" in text


def test_a_failure_in_pieces_is_called_fragmentation(tmp_path: Path) -> None:
    """Sixteen of 32 MiB are free, in pieces of 2: 12 MiB do not fit."""
    allocator = Allocator(capacity=40 * MIB)
    pieces = [allocator.allocate(2 * MIB, stack(i + 1)) for i in range(18)]
    for piece in pieces[::2]:
        assert piece is not None
        allocator.free(piece)
    assert allocator.allocate(12 * MIB, stack(99)) is None
    report = build_snapshot_report(Snapshot.load(write_pickle(snapshot(allocator), tmp_path / "s.pickle")))
    (failed,) = report.devices[0].ooms
    assert (failed.cause, failed.unused_bytes, failed.largest_free_block_bytes) == (
        "fragmentation",
        allocator.failures[0].unused,
        allocator.failures[0].largest,
    )
    assert "in pieces of at most" in failed.text
    assert report.page.headline == "Out of memory"


def test_json_keeps_its_contract(path: Path) -> None:
    report = build_snapshot_report(Snapshot.load(path))
    found = json.loads(render(report, "json"))
    jsonschema.validate(found, snapshot_schema())
    golden = Path(__file__).parent / "snapshot.schema.json"
    assert json.loads(golden.read_text()) == snapshot_schema()
    assert found["snapshot"]["name"] == "busy.pickle"
    assert len(found["snapshot"]["sha256"]) == 64
    assert [device["id"] for device in found["devices"]] == [0]
    again = build_snapshot_report(Snapshot.load(path))
    assert render(again, "json") == render(report, "json")


@pytest.mark.parametrize("width", [30, 59, 60, 80, 120])
def test_every_width_fits(path: Path, width: int) -> None:
    page = build_snapshot_report(Snapshot.load(path)).page
    assert max(cell_len(line) for line in to_terminal(page, width=width).splitlines() if str(path) not in line) <= width
    assert to_terminal(page, width=width, ascii_only=True).isascii()


def test_one_screen(shared: Path) -> None:
    for name in ("medium_1024_inference", "medium_1024_training", "medium_128_training"):
        report = build_snapshot_report(Snapshot.load(shared / "snapshots" / f"{name}_snapshot.pickle"))
        assert len(render(report, "terminal").splitlines()) <= 40


def nasty() -> dict[str, Any]:
    allocator = Allocator()
    frames = [{"name": NASTY, "filename": f"/home/ann/{NASTY}.py", "line": 3}]
    allocator.annotate(NASTY, start=True)
    allocator.allocate(3 * MIB, frames, label=NASTY)
    allocator.annotate(NASTY, start=False)
    return snapshot(allocator, settings={NASTY: NASTY})


def test_names_stay_inert(tmp_path: Path) -> None:
    """Frames, annotations and metadata are a stranger's text."""
    report = build_snapshot_report(Snapshot.load(write_pickle(nasty(), tmp_path / "s.pickle")))
    text = render(report, "md")
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert not re.search(r"<script|<img|<a ", html)
    for drawn in (text, render(report, "terminal")):
        assert "\x1b" not in drawn
        assert "\u202e" not in drawn
    json.loads(render(report, "json"))


def test_lone_surrogates_do_not_break_json(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.allocate(MIB, [{"name": "f\ud800", "filename": "a.py", "line": 1}])
    report = build_snapshot_report(Snapshot.load(write_pickle(snapshot(allocator), tmp_path / "s.pickle")))
    json.loads(render(report, "json"))
    assert render(report, "md").encode()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/ann/project/model.py:3 forward", "model.py:3 forward"),
        (r"C:\Users\ann\model.py(3): f", "model.py(3): f"),
        ("~/secret/model.py", "model.py"),
        ("../x/model.py", "model.py"),
        ("forward/backward at 3 GB/s", "forward/backward at 3 GB/s"),
        ("void cutlass::f<a/b>(int)", "void cutlass::f<a/b>(int)"),
        ("see https://example.com/a/b", "see https://example.com/a/b"),
        ("loaded from /home/ann/x.so and /opt/y/z.so", "loaded from x.so and z.so"),
    ],
)
def test_paths_are_shortened_and_nothing_else(text: str, left: str) -> None:
    assert shorten_paths(text) == left


def test_redact_in_every_format(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.annotate("load /home/ann/weights.pt", start=True)
    allocator.allocate(MIB, stack(3), label="/home/ann/project/weights.bin")
    document = snapshot(allocator, settings={"PYTORCH_CUDA_ALLOC_CONF": "/home/ann/conf"})
    path = write_pickle(document, tmp_path / "s.pickle")
    report = build_snapshot_report(Snapshot.load(path))
    assert "/home/ann" in render(report, "json")
    for form in ("terminal", "md", "json"):
        text = render(redacted(report), form)
        assert "/home" not in text
        assert form == "terminal" or "weights.bin" in text
    done = run(path, "--redact", "--report", "json")
    assert (done.returncode, "/home/ann" in done.stdout) == (0, False)


def test_redact_of_a_trace(tmp_path: Path) -> None:
    b = (
        TraceBuilder()
        .step(1, 0, 900)
        .annotation("load /home/ann/weights.pt", 5, 400)
        .frame("/home/ann/m.py(3): f", 9, 300)
    )
    b.run("gemm", (10, 5), (20, 10)).run("gemm", (200, 5), (300, 10)).op("read /home/ann/x", 30, 100)
    report = build_report(Trace.load(b.write(tmp_path / "trace.json")))
    for form in ("terminal", "md", "json"):
        assert "/home" not in render(redacted(report), form)
        assert render(redacted(report), form) == render(redacted(redacted(report)), form)


def test_comparison_by_stack_with_sizes(tmp_path: Path) -> None:
    """Equal stacks with other sizes are differences; what is the same is not listed."""
    a, b = Allocator(), Allocator()
    for allocator, size in ((a, 4 * MIB), (b, 6 * MIB)):
        allocator.allocate(size, stack(1, 9))
        allocator.allocate(3 * MIB, stack(2, 9))
    b.allocate(5 * MIB, stack(3, 9))
    loaded = [Snapshot.load(write_pickle(snapshot(x), tmp_path / f"{i}.pickle")) for i, x in enumerate((a, b))]
    found = compare_snapshots(*loaded)
    rows = {row.label: row.change_bytes for row in found.devices[0].peak_by_stack if row.change_bytes}
    assert rows == {
        "model.py:3 forward < model.py:9 forward": 5 * MIB,
        "model.py:1 forward < model.py:9 forward": 2 * MIB,
    }
    figure = found.devices[0].figures["requested_peak_bytes"]
    assert (figure.a, figure.b, figure.change) == (7 * MIB, 14 * MIB, 7 * MIB)
    assert sum(row.change_bytes for row in found.devices[0].peak_by_site) == figure.change
    assert found.page.headline == "Peak +7.00 MiB"
    for form in ("terminal", "md", "json"):
        assert "model.py:3" in render(found, form)
    assert "Same peak" in render(compare_snapshots(loaded[0], loaded[0]), "md")


def test_the_command_line_knows_a_snapshot(path: Path, tmp_path: Path) -> None:
    done = run(path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("## Memory snapshot report: `busy.pickle`")
    assert run(path, "--report", "terminal").stdout.startswith("busy.pickle")
    assert json.loads(run("-", "--report", "json", stdin=path.read_bytes()).stdout)["devices"][0]["id"] == 0
    outputs = [tmp_path / name for name in ("r.txt", "r.md", "r.json")]
    done = run(path, *[arg for output in outputs for arg in ("-o", output)])
    assert done.returncode == 0
    assert all(output.stat().st_size for output in outputs)
    assert run(path, "-o", outputs[1]).returncode == 0, "a report of ours may be replaced"


def test_what_the_command_line_refuses(path: Path) -> None:
    sample = ROOT / "sample_traces" / "vit_tiny_fp32_synthetic.json.gz"
    for args, said in (
        ([path, "--steps", "1:2"], "is a memory snapshot"),
        ([path, "--range", "x"], "is a memory snapshot"),
        (["compare", path, sample], "is a memory snapshot, the other input is a trace"),
        (["compare", path, path, path], "cannot be compared at once"),
        ([path, "--baseline", path], "is a memory snapshot"),
        ([path, "--fail-if", "idle_share > 10%"], "is a memory snapshot"),
        (["compare", path, "nothing.pickle"], "does not exist"),
        (["compare", path], "nothing to compare it with"),
    ):
        done = run(*args)  # type: ignore[arg-type]
        assert (done.returncode, done.stdout) == (2, ""), args
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    done = run("compare", path, path, "--report", "terminal")
    assert done.returncode == 0
    assert "SAME PEAK" in done.stdout


def test_sparklines() -> None:
    def drawn(points: tuple[int, ...], width: int, top: int = 8) -> str:
        return sparkline(Series("x", Kind.COUNT, points, top), width)

    assert drawn((0, 1, 4, 8), 4) == " ▂▅█"
    assert drawn((0, 1, 4, 8), 2) == "▂█", "the largest of each part"
    assert drawn((1, 2), 80) == "▂▃", "never wider than there are points"
    assert drawn((), 10) == ""
    assert drawn((5, 0), 2, top=0) == "█ "
    assert to_ascii("▁▂▃▄▅▆▇█") == "_.-=+*%#"


def test_document_of_several_devices(tmp_path: Path) -> None:
    other = busy()
    other.device = 2
    report = build_snapshot_report(Snapshot.load(write_pickle(snapshot(busy(), other), tmp_path / "s.pickle")))
    assert [d["id"] for d in snapshot_document(report)["devices"]] == [0, 2]
    assert "Devices" in render(report, "terminal")
