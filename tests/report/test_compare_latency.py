"""Recordings compared by their latency without the profiler: first, with a spread, without any GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from analyze.compare import comparable_of, compare, line_up
from analyze.compare.comparable import Comparable
from analyze.compare.run_json import read_side, recorded_file
from analyze.compare.schemas import lineup_schema, pair_schema
from analyze.report import build_report
from analyze.report.to_terminal import render
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.test_cli import run as analyze

MS = 1_000_000


def block(samples: list[float], **more: Any) -> dict[str, Any]:
    """What `capture` notes of forwards of so many milliseconds, 8 images each."""
    ns = [round(sample * MS) for sample in samples]
    p50 = sorted(ns)[len(ns) // 2]
    latency = {"p50_ns": p50, "samples_ns": ns, "throughput_samples_per_s": 8e9 / p50}
    frame = {"schema_version": "1.0", "tool": {"name": "gpuledger", "version": "0.1.0"}}
    return {**frame, "model": "tiny", "batch_size": 8, "warmup": {"steady": True}, "latency": latency, **more}


def recorded(path: Path, samples: list[float], **more: Any) -> Comparable:
    """A trace of the host alone, with the block of a recording."""
    builder = TraceBuilder()
    builder.metadata["gpuledger"] = block(samples, **more)
    builder.row("cpu_op", "aten::mm", 10, 20)
    return comparable_of(build_report(Trace.load(builder.write(path))))


SLOW, FAST = [2.0, 2.1, 2.2], [1.0, 1.1, 1.2]


def test_latencies_come_first_without_any_gpu(tmp_path: Path) -> None:
    found = compare(recorded(tmp_path / "a.json", SLOW), recorded(tmp_path / "b.json", FAST))
    row = found.changes.row("latency_p50")
    assert row is not None
    assert (row.a, row.b, row.verdict, row.a_steps.n) == (2_100_000, 1_100_000, "better", 3)
    rate = found.changes.row("throughput")
    assert rate is not None
    assert (rate.a, rate.verdict) == (pytest.approx(8e9 / 2_100_000), "better")
    assert found.changes.groups[0].id == "latency"
    assert found.page.sections[0].id == "compare-latency"
    assert found.page.headline == "Faster"
    assert found.page.sentences == (
        "Latency without the profiler (a forward, median) goes from 2.10 ms to 1.10 ms (-47.6%): better.",
        "Baseline: 2.00 ms to 2.20 ms, 3 samples; this: 1.00 ms to 1.20 ms, 3 samples.",
    )
    jsonschema.validate(json.loads(json.dumps(found.as_json())), pair_schema())


def test_no_ratio_within_the_spread(tmp_path: Path) -> None:
    """Five samples of a busy machine, medians 42 times apart, ranges that overlap."""
    a = recorded(tmp_path / "a.json", [1, 41, 42, 45, 50])
    b = recorded(tmp_path / "b.json", [2, 1, 1, 43, 60])
    found = compare(a, b)
    text = render(found.page)
    assert found.page.headline == "Within spread"
    assert "is 42.0 ms in the baseline and 2.00 ms in this run: within spread." in found.page.sentences[0]
    assert "%" not in "".join(found.page.sentences)
    (line,) = (line for line in text.splitlines() if line.strip().startswith("A forward"))
    assert line.split()[-3:] == ["–", "within", "spread"]


@pytest.mark.parametrize(("count", "verdict"), [(2, "no-spread"), (3, "better")])
def test_two_samples_have_no_spread(tmp_path: Path, count: int, verdict: str) -> None:
    found = compare(recorded(tmp_path / "a.json", SLOW[:count]), recorded(tmp_path / "b.json", FAST[:count]))
    assert found.changes.row("latency_p50").verdict == verdict  # type: ignore[union-attr]


def test_a_latency_on_one_side_is_no_comparison(tmp_path: Path) -> None:
    bare = TraceBuilder()
    bare.row("cpu_op", "aten::mm", 10, 20)
    other = comparable_of(build_report(Trace.load(bare.write(tmp_path / "b.json"))))
    found = compare(recorded(tmp_path / "a.json", SLOW), other)
    assert "Latency" not in found.page.sentences[0]


def test_what_makes_latencies_doubtful_is_said(tmp_path: Path) -> None:
    odd = recorded(tmp_path / "b.json", FAST, warmup={"steady": False}, load={"busy": True})
    found = compare(recorded(tmp_path / "a.json", SLOW), odd)
    texts = [notice.text for notice in found.page.notices]
    assert "The warm-up of this did not become steady: its latency may differ run to run." in texts
    assert "The host was busy with other work while this was recorded." in texts


def test_several_have_a_ratio_only_beyond_the_spread(tmp_path: Path) -> None:
    wide = [1.9, 2.3, 2.15]
    subjects = [recorded(tmp_path / f"{i}.json", samples) for i, samples in enumerate((SLOW, FAST, wide))]
    made = line_up(subjects, ["slow", "fast", "wide"])
    assert made.page.sentences[:2] == (
        "Latency without the profiler, median: slow 2.10 ms, fast 1.10 ms, wide 2.15 ms.",
        "Fastest without the profiler: fast.",
    )
    rows = [line.split() for line in render(made.page).splitlines() if line.strip().startswith("A forward")]
    assert rows[1][-3:] == ["0.52x", "within", "spread"]
    jsonschema.validate(json.loads(json.dumps(made.as_json())), lineup_schema())


def test_a_run_json_is_a_side_by_itself(tmp_path: Path) -> None:
    paths = []
    for name, samples in (("a", SLOW), ("b", FAST)):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "run.json")
        paths[-1].write_text(json.dumps(block(samples, device={"type": "cuda", "name": "Example GPU"}), indent=1))
    side = read_side(paths[0])
    assert side is not None
    assert (side.trace.device_names, side.trace.recorded.latency_samples_ns[0]) == (("Example GPU",), 2 * MS)
    done = analyze("compare", *[path.parent for path in paths], "--report", "terminal")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a and b")
    assert "FASTER" in done.stdout
    refused = analyze(paths[0])
    assert refused.returncode == 2
    assert "is what capture noted of a recording, without its trace." in refused.stderr


def test_a_folder_of_a_recording_stands_for_its_trace(tmp_path: Path) -> None:
    assert recorded_file(str(tmp_path)) == str(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    assert recorded_file(str(tmp_path)) == str(tmp_path / "run.json")
    (tmp_path / "trace.json.gz").write_text("")
    assert recorded_file(str(tmp_path)) == str(tmp_path / "trace.json.gz")


@pytest.mark.parametrize("odd", [[1, "2"], [1, None], [1, -1], [1, True], "12", {"a": 1}, [1.5]])
def test_samples_that_are_none_are_left_out(tmp_path: Path, odd: object) -> None:
    found = recorded(tmp_path / "a.json", SLOW, latency={"p50_ns": 5, "samples_ns": odd})
    assert found.trace.recorded is not None
    assert (found.trace.recorded.latency_p50_ns, found.trace.recorded.latency_samples_ns) == (5, ())


def test_a_run_whose_samples_nobody_counted_is_no_slower_for_it(tmp_path: Path) -> None:
    """Its samples per second are unknown rather than 0."""
    uncounted = {**block(SLOW)["latency"], "throughput_samples_per_s": None}
    found = compare(recorded(tmp_path / "a.json", SLOW), recorded(tmp_path / "b.json", SLOW, latency=uncounted))
    row = found.changes.row("throughput")
    assert row is not None
    assert (row.b, row.verdict) == (None, "not-comparable")
