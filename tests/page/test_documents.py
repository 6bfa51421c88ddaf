"""The page of snapshots, comparisons and jobs, and the command line that makes pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analyze.cli.deliver import page_name
from analyze.compare import compare
from analyze.compare.snapshots import compare_snapshots
from analyze.ranks import Job
from analyze.report import build_report, write
from analyze.report.html.render import render
from analyze.report.ranks import build_ranks_report
from analyze.report.report import Document
from analyze.report.snapshot import build_snapshot_report
from analyze.settings import Definitions
from analyze.snapshot import Snapshot
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.conftest import ROOT
from tests.page.browser import Browser
from tests.page.conftest import lesson
from tests.page.markup import read, unpacked
from tests.page.test_browser import AUDIT, AXE

SAMPLES = ROOT / "sample_traces"
TIMELINE = "gpuledger.timeline"


def slower() -> TraceBuilder:
    """The lesson with a gap that is 100 us longer, on another clock."""
    builder = lesson()
    builder.offset_us += 777_777
    for row in builder.rows:
        if row["ts"] >= 490_000:
            row["ts"] += 100_000
    return builder


def documents(shared: Path) -> dict[str, Document]:
    """One of each kind."""
    snapshot = Snapshot.load(shared / "more" / "snap_mosaic.pickle")
    other = Snapshot.load(shared / "more" / "snap_training_course.pickle")
    a, b = (build_report(Trace.load(SAMPLES / f"vit_tiny_{name}.json.gz"))
            for name in ("fp32_synthetic", "fp16_small_batch_synthetic"))  # fmt: skip
    return {
        "snapshot": build_snapshot_report(snapshot),
        "snapshots": compare_snapshots(snapshot, other, definitions=Definitions()),
        "pair": compare(a, b),
        "job": build_ranks_report(Job.load(shared / "ranks" / "cases" / "13-inherited-lateness", workers=1)),
        "cpu": build_report(Trace.load(SAMPLES / "resnet_training_cpu.json.gz")),
    }


def test_every_kind_of_document_has_a_sound_page(shared: Path, browser: Browser, tmp_path: Path) -> None:
    browser.said.clear()
    browser.asked.clear()
    for name, document in documents(shared).items():
        elements = read(render(document))
        ids = [one.attributes["id"] for one in elements if "id" in one.attributes]
        assert len(ids) == len(set(ids)), name
        assert unpacked(elements, "report-data")["schema_version"]
        path = tmp_path / f"{name}.html"
        write(document, path)
        for dark in (False, True):
            browser.open(path, width=360, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= 360, name
        if AXE.exists():
            browser.run(AXE.read_text(encoding="utf-8") + "; 1")
            assert browser.run(AUDIT) == [], name
    assert browser.said == []
    assert browser.asked == []


def test_both_sides_of_a_comparison_begin_a_step_together(browser: Browser, tmp_path: Path) -> None:
    sides = [build_report(Trace.load(builder.write(tmp_path / "t.json"))) for builder in (lesson(), slower())]
    path = tmp_path / "pair.html"
    write(compare(*sides), path)
    browser.open(path)
    scene = f"{TIMELINE}.scene"
    steps = browser.run(f"[[...{scene}.steps.start], [...{scene}.otherSteps.start]]")
    assert steps[0][0] == steps[1][0]
    gaps = browser.run(f"{scene}.devices.map((one) => [...one.gaps.start].map((at, i) => [at, one.gaps.dur[i]]))")
    assert gaps[1][0][0] == gaps[0][0][0]
    assert gaps[1][0][1] == gaps[0][0][1] + 100_000
    labels = browser.run(f"{TIMELINE}.lanes.lanes.map((lane) => lane.label)")
    assert {label[:2] for label in labels} == {"A:", "B:"}
    browser.run(
        "((one) => { one.value = '2'; one.dispatchEvent(new Event('change')); })(document.getElementById('align'))"
    )
    steps = browser.run(f"[[...{scene}.steps.start], [...{scene}.otherSteps.start]]")
    assert steps[0][1] == steps[1][1]
    root = browser.run("(({total, before}) => [total, before])(gpuledger.icicle.root)")
    assert root == [600_000, 600_000]


def test_a_wait_points_to_the_rank_that_came_last(shared: Path, browser: Browser, tmp_path: Path) -> None:
    job = Job.load(shared / "ranks" / "cases" / "13-inherited-lateness", workers=1)
    path = tmp_path / "job.html"
    write(build_ranks_report(job), path)
    browser.open(path)
    browser.key("l")
    said = browser.run("document.querySelector('#selected h3').textContent")
    assert said.startswith("Waits ")
    launch = browser.run(f"{TIMELINE}.launchOf({TIMELINE}.chosen).lane.label")
    assert f" for {launch}," in said


def test_a_snapshot_is_stacked_by_who_allocated(shared: Path, browser: Browser, tmp_path: Path) -> None:
    report = build_snapshot_report(Snapshot.load(shared / "more" / "snap_mosaic.pickle"))
    path = tmp_path / "snapshot.html"
    write(report, path)
    browser.open(path)
    peak = sum(device.requested_peak_bytes for device in report.devices)
    assert browser.run("gpuledger.icicle.root.total") == peak
    assert "iB" in browser.run("document.getElementById('icicle-path').textContent")
    assert browser.run("document.querySelectorAll('svg.area polygon').length") > 0
    assert browser.run("document.querySelectorAll('svg.segments g').length") > 0


def analyze(*args: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "analyze", *map(str, args)]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "BROWSER": "true"},
    )


def test_a_page_gets_the_name_of_its_trace(tmp_path: Path) -> None:
    sample = SAMPLES / "vit_tiny_cpu_fp32_b1.json.gz"
    done = analyze(sample, "--report", "html", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "vit_tiny_cpu_fp32_b1.html\n")
    page = (tmp_path / "vit_tiny_cpu_fp32_b1.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert analyze(sample, "--report", "html", folder=tmp_path).returncode == 0
    (tmp_path / "vit_tiny_cpu_fp32_b1.html").write_text("mine")
    refused = analyze(sample, "--report", "html", folder=tmp_path)
    assert refused.returncode == 2
    assert (tmp_path / "vit_tiny_cpu_fp32_b1.html").read_text() == "mine"


def test_a_page_is_opened_where_that_is_asked_for(tmp_path: Path) -> None:
    sample = SAMPLES / "vit_tiny_cpu_fp32_b1.json.gz"
    done = analyze(sample, "-o", "page.html", "--open", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize("name", ["host.example.org_4711.1700000000000000000.pt.trace.json", "trace.json"])
def test_a_redacted_page_has_no_host_in_its_name(name: str, tmp_path: Path) -> None:
    lesson().write(tmp_path / name)
    done = analyze(name, "--report", "html", "--redact", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = tmp_path / done.stdout.strip()
    assert "example.org" not in made.name
    text = made.read_text(encoding="utf-8")
    scene = unpacked(read(text), "scene-data")
    assert "example.org" not in text
    assert not any("/home" in one or "home/me" in one for one in scene["names"])


@pytest.mark.parametrize(
    ("paths", "redacted", "name"),
    [
        (["a/run.json.gz"], False, "run.html"),
        (["-"], False, "report.html"),
        ([], False, "report.html"),
        (["snap.pickle"], False, "snap.html"),
        (["a/before.json", "b/after.json.gz"], False, "before-and-after.html"),
        (["host.example.org_4711.1700000000000000000.pt.trace.json"], True, "host-1_process-1.pt.trace.html"),
    ],
)
def test_names_of_pages(paths: list[str], redacted: bool, name: str) -> None:
    assert page_name(paths, redacted=redacted) == name
