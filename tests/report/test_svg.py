"""`--svg`: pictures whose areas are the times of a trace that was worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from analyze import Trace, build_report
from analyze.report.svg.pictures import THEMES, pictures
from analyze.report.svg.thumbnail import COLUMNS, LANE, thumbnail
from tests.builder import TraceBuilder
from tests.hostile_strings import HOSTILE
from tests.test_cli import run

_SVG = "{http://www.w3.org/2000/svg}"
_RECTANGLE = re.compile(r"M(\d+) ([\d.]+)V([\d.]+)H(\d+)V([\d.]+)z")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """On one stream 40 us of gemm, a gap of 40 us, and 20 us of a copy: a window of 100 us."""
    b = TraceBuilder().run("sm80_gemm", (10, 5), (20, 40))
    b.run("Memcpy HtoD (Pageable -> Device)", (92, 5), (100, 20), api="cudaMemcpyAsync", cat="gpu_memcpy")
    return b.write(tmp_path / "trace.json")


def _area(path: str) -> float:
    """Share of the lane that a path covers."""
    found = _RECTANGLE.findall(path)
    assert "".join(f"M{x} {b}V{t}H{end}V{b2}z" for x, b, t, end, b2 in found) == path
    return sum((int(end) - int(x)) * (float(b) - float(t)) for x, b, t, end, _ in found) / (COLUMNS * LANE)


def test_areas_of_the_timeline_are_shares_of_the_window(trace: Path) -> None:
    view = thumbnail(build_report(Trace.load(trace)).measures)
    assert view is not None
    areas = {(lane.label, layer.label): round(_area(layer.path), 3) for lane in view.lanes for layer in lane.layers}
    idle = {label: area for (lane, label), area in areas.items() if lane == "idle"}
    busy = {label: area for (lane, label), area in areas.items() if lane != "idle"}
    assert busy == {"GEMM": 0.4, "copies": 0.2}
    assert list(idle.values()) == [0.4]


def test_the_ledger_bar_has_the_shares_of_the_ledger(trace: Path) -> None:
    report = build_report(Trace.load(trace))
    text = next(text for name, _, text in pictures(report) if name == "ledger")
    widths = [float(r.get("width", 0)) / 688 for r in ET.fromstring(text).iter(f"{_SVG}rect") if r.get("x")]
    bar = [width for width in widths if width != pytest.approx(16 / 688)]
    expected = sorted((row["ns"] / 100_000 for row in report.ledger.iter_rows(named=True) if row["ns"]), reverse=True)
    assert sorted(bar, reverse=True) == pytest.approx(expected, abs=1e-4)


def test_pictures_are_files_of_both_themes(trace: Path, tmp_path: Path) -> None:
    done = run(trace, "-q", "--svg", tmp_path / "out")
    assert (done.returncode, done.stderr.strip()) == (0, f"drew ledger, timeline in {tmp_path / 'out'}")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"{name}-{theme}.svg" for name in ("ledger", "timeline") for theme in THEMES}
    assert run(trace, "-q", "--svg", tmp_path / "out").returncode == 0  # they are ours: replaced
    (tmp_path / "out" / "ledger-dark.svg").write_text("<svg/>")
    refused = run(trace, "-q", "--svg", tmp_path / "out")
    assert (refused.returncode, refused.stderr.count("Hint")) == (2, 1)
    assert "ledger-dark.svg exists" in refused.stderr


def test_names_are_inert_and_the_pictures_well_formed(tmp_path: Path) -> None:
    b = TraceBuilder()
    for i, name in enumerate(HOSTILE):
        b.run(name, (10 + 100 * i, 5), (20 + 100 * i, 40))
    b.metadata["deviceProperties"][0]["name"] = '<script>alert(1)</script>"&\x1b[31m'
    report = build_report(Trace.load(b.write(tmp_path / "trace.json")))
    found = list(pictures(report))
    assert {name for name, _, _ in found} >= {"ledger", "timeline"}
    for _, _, text in found:
        tags = {element.tag for element in ET.fromstring(text).iter()}
        assert not any("script" in tag for tag in tags)
        assert "\x1b" not in text


def test_a_trace_without_device_draws_nothing_and_says_so(tmp_path: Path) -> None:
    path = TraceBuilder().op("aten::add", 10, 5).write(tmp_path / "trace.json")
    done = run(path, "-q", "--svg", tmp_path / "out")
    assert (done.returncode, "drew nothing" in done.stderr) == (0, True)
