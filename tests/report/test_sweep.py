"""sweep.json as a document, and the charts of recordings; right values worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from analyze.report import render
from analyze.report.html.curves import BOTTOM, LEFT, RIGHT, TOP, recording_curves, sweep_curves
from analyze.report.sweep import read_sweep, sweep_schema
from analyze.trace.recorded import read_recorded
from tests.hostile_strings import HOSTILE
from tests.test_cli import run

MS = 1_000_000


def _row(batch: int, p50_ms: int, **more: Any) -> dict[str, Any]:
    latency = {"p50_ns": p50_ms * MS, "p90_ns": 2 * p50_ms * MS, "min_ns": MS, "max_ns": 3 * p50_ms * MS}
    rate = 1000 * batch / p50_ms
    return {"batch_size": batch, "latency": {**latency, "throughput_samples_per_s": rate}, "steady": True, **more}


def _write(folder: Path, **changes: Any) -> Path:
    """Batches 1, 2 and 4 take 10, 10 and 20 ms: 100, 200 and 200 samples/s; batch 8 did not fit."""
    document = {
        "schema_version": "1.0",
        "tool": {"name": "gpuledger", "version": "0.1.0"},
        "settings": {"model": "resnet10t", "precision": "fp16"},
        "device": {"name": "Example GPU"},
        "rows": [_row(1, 10), _row(2, 10), _row(4, 20, steady=False), {"batch_size": 8, "latency": None}],
        "saturated_batch_size": 2,
        "saturated_share": 0.95,
        "still_growing": False,
        "ended_by": None,
        **changes,
    }
    path = folder / "sweep.json"
    path.write_text(json.dumps(document))
    return path


def test_what_the_page_says(tmp_path: Path) -> None:
    report = read_sweep(_write(tmp_path))
    assert report is not None
    assert report.page.headline == "Saturated at batch 2"
    assert report.page.sentences == (
        "Throughput is highest at batch 2: 200 samples/s, at a median latency of 10.0 ms.",
        "Batch 2 is the smallest with at least 95.0% of that throughput.",
        "Batch 8 did not fit into memory.",
        "The warm-up did not become steady at batch 4: another run may give other figures.",
    )
    assert [row.samples_per_s for row in report.rows] == [100, 200, 200, None]
    Draft202012Validator(sweep_schema()).validate(json.loads(render(report, "json")))


def test_points_of_the_curves(tmp_path: Path) -> None:
    report = read_sweep(_write(tmp_path))
    assert report is not None
    throughput, latency = sweep_curves(report)
    half = (TOP + BOTTOM) / 2
    middle = (LEFT + RIGHT) / 2
    assert [(x, y) for x, y, _ in throughput.lines[0].dots] == [(LEFT, half), (middle, TOP), (RIGHT, TOP)]
    assert [line.label for line in latency.lines] == ["p90", "p50"]
    assert [y for _, y, _ in latency.lines[1].dots] == pytest.approx([BOTTOM - (BOTTOM - TOP) / 4] * 2 + [half])


def test_formats_and_refusals(tmp_path: Path) -> None:
    path = _write(tmp_path)
    done = run(path, "-o", tmp_path / "page.html", "-o", tmp_path / "out.md", "-o", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert page.count('<section id="curve-') == 2
    assert "batch 4: 200 samples/s" in page
    for options in (["--fail-if", "idle_share > 1%"], ["--tables", tmp_path / "t"], ["--steps", "1:2"]):
        refused = run(path, *options)
        assert (refused.returncode, "batch sweep" in refused.stderr) == (2, True)
    compared = run("compare", path, path)
    assert (compared.returncode, "batch sweep" in compared.stderr) == (2, True)


def test_redacted_names_neither_model_nor_error(tmp_path: Path) -> None:
    path = _write(tmp_path, settings={"model": "secret.module:net", "precision": "fp16"}, ended_by="OSError /home/bob")
    done = run(path, "--redact", "--report", "json")
    assert done.returncode == 0, done.stderr
    assert not any(word in done.stdout for word in ("secret", "bob", "OSError"))


@pytest.mark.parametrize("rows", [[], None, [None, 3, {"batch_size": "x"}], [_row(1, 10)], [{"batch_size": True}]])
def test_odd_rows(tmp_path: Path, rows: Any) -> None:
    done = run(_write(tmp_path, rows=rows), "-o", tmp_path / "page.html", "--report", "terminal")
    assert done.returncode == 0, done.stderr


def test_hostile_texts(tmp_path: Path) -> None:
    for i, text in enumerate(HOSTILE):
        folder = tmp_path / str(i)
        folder.mkdir()
        given = {"settings": {"model": text, "precision": text}, "device": {"name": text}, "ended_by": text}
        report = read_sweep(_write(folder, **given))
        if report is None:  # no Unicode: the reader of traces refuses it
            assert "\ud800" in text
            continue
        for form in ("terminal", "md", "html", "json"):
            assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(render(report, form))


def test_the_curve_of_a_recording() -> None:
    """Two windows of ten at 40 and 20 ms, then two timed forwards of 20 and 10 ms: 22 iterations."""
    recorded = read_recorded(
        {"warmup": {"medians_ns": [40 * MS, 20 * MS]}, "latency": {"samples_ns": [20 * MS, 10 * MS]}}
    )
    (curve,) = recording_curves(recorded)
    warm, timed = curve.lines
    width, half = RIGHT - LEFT, (TOP + BOTTOM) / 2
    assert [(x, y) for x, y, _ in warm.dots] == [
        (pytest.approx(LEFT + width * 4.5 / 21), TOP), (pytest.approx(LEFT + width * 14.5 / 21), half)
    ]  # fmt: skip
    assert [x for x, _, _ in timed.dots] == [pytest.approx(LEFT + width * 20 / 21), RIGHT]
    assert [title for _, _, title in timed.dots] == ["forward: 20.0 ms", "forward: 10.0 ms"]


@pytest.mark.parametrize("block", [None, {}, {"latency": {"samples_ns": [5]}}, {"warmup": {"medians_ns": [1, "x"]}}])
def test_recordings_without_a_curve(block: Any) -> None:
    assert recording_curves(read_recorded(block)) == ()
