"""`analyze compare` and `--baseline` as processes: inputs in any mix, exit codes, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyze.compare.pair import SAME
from tests.builder import TraceBuilder
from tests.golden import SAMPLES
from tests.report.runs import TF32, edited, report, run
from tests.test_cli import SAMPLE
from tests.test_cli import run as analyze


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A baseline, and a run of twice its speed."""
    return (
        run([400, 410, 420]).write(tmp_path / "before.json"),
        run([100, 110, 120], [500] * 3, TF32).write(tmp_path / "after.json.gz"),
    )


def test_traces_and_reports_in_any_mix(pair: tuple[Path, Path], tmp_path: Path) -> None:
    reports = [tmp_path / "before-report.json", tmp_path / "after-report.json"]
    for trace, stored in zip(pair, reports, strict=True):
        assert analyze(trace, "-o", stored).returncode == 0
    told = []
    for inputs in (pair, reports, (pair[0], reports[1]), (reports[0], pair[1])):
        done = analyze("compare", *inputs, "--report", "terminal")
        assert (done.returncode, done.stderr) == (0, "")
        told.append(done.stdout)
    assert len(set(told)) == 1
    assert told[0].startswith("before.json and after.json.gz")
    assert "FASTER  Step time (median) goes from 1.00 ms to 0.50 ms (-50.0%): better." in told[0]


def test_outputs_and_standard_input(pair: tuple[Path, Path], tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("c.txt", "c.md", "c.json")]
    done = analyze(
        "compare", "-", pair[1], *[arg for name in names for arg in ("-o", name)], stdin=pair[0].read_bytes()
    )
    assert done.returncode == 0
    assert json.loads(names[2].read_text())["a"]["name"] == "standard input"
    assert names[1].read_text().startswith("## Trace comparison report")
    assert analyze("compare", *pair, "-o", names[0]).returncode == 0, "a report of ours may be replaced"


def test_a_file_with_itself_differs_in_nothing() -> None:
    done = analyze("compare", SAMPLE, SAMPLE)
    assert done.returncode == 0
    assert SAME in done.stdout
    assert f"{SAMPLE.name} and {SAMPLE.name}" in done.stdout


def test_several(pair: tuple[Path, Path]) -> None:
    done = analyze("compare", *pair, *SAMPLES[:1], "--report", "terminal")
    assert done.returncode == 0
    assert "3 INPUTS" in done.stdout
    assert "before" in done.stdout
    assert json.loads(analyze("compare", *pair, pair[0], "--report", "json").stdout)["inputs"][1]["label"] == "B"


def test_a_baseline_beside_the_report(pair: tuple[Path, Path], tmp_path: Path) -> None:
    done = analyze(pair[1], "--baseline", pair[0], "--report", "terminal")
    assert done.returncode == 0
    assert "Against before.json: step time (median) goes from 1.00 ms to 0.50 ms (-50.0%): better." in " ".join(
        done.stdout.split()
    )
    assert "Where the window goes" in done.stdout
    found = json.loads(analyze(pair[1], "--baseline", pair[0], "--report", "json").stdout)
    assert found["comparison"]["a"]["name"] == "before.json"
    assert found["trace"]["name"] == "after.json.gz"


def test_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    made = report(run([400, 410, 420]), tmp_path / "t.json")
    other = edited(made, tmp_path / "other.json", definitions={"long_gap_ns": 5, "top": 10})
    newer = edited(made, tmp_path / "newer.json", schema_version="3.0")
    same = edited(made, tmp_path / "same.json")
    snapshot = edited(made, tmp_path / "snapshot.json", snapshot={})
    text = tmp_path / "random.json"
    text.write_text('{"a": 1}')
    for args, said in (
        (["compare", pair[0]], "nothing to compare it with"),
        (["compare", pair[0], "nothing.json"], "does not exist"),
        (["compare", "-", "-"], "only once"),
        (["compare", pair[0], other], "long_gap_ns (1,000,000 and 5)"),
        (["compare", pair[0], newer], "has report schema 3.0"),
        (["compare", snapshot, pair[0]], "is a report on a memory snapshot"),
        (["compare", text, pair[0]], "random.json"),
        (["compare", *pair * 3], "at most 5"),
        ([same], "is a report of gpuledger, not a trace"),
        ([pair[0], "--baseline", other], "long_gap_ns"),
        ([pair[0], "--baseline", "nothing.json"], "does not exist"),
    ):
        done = analyze(*args)
        assert (done.returncode, done.stdout) == (2, ""), (args, done.stdout)
        assert said in done.stderr, done.stderr
        assert "Hint: " in done.stderr
        assert "Internal" not in done.stderr


def test_help() -> None:
    done = analyze("compare", "-h")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert "ANALYZE_" in done.stdout


def test_gates_on_a_comparison(pair: tuple[Path, Path], tmp_path: Path) -> None:
    junit = tmp_path / "gates.xml"
    gates = ("--fail-if", "step_time +5%", "--fail-if", "category:gemm share < 40%")
    done = analyze("compare", *pair, *gates, "--report", "terminal")
    assert done.returncode == 0
    assert "✓ step_time 50% better, limit 5% worse (1.00 ms to 0.50 ms)" in " ".join(done.stdout.split())
    assert "✓ category:gemm share 100% >= 40%" in done.stdout
    worse = analyze("compare", *pair[::-1], "--fail-if", "step_time +5%", "--junit", junit, "--report", "json")
    assert worse.returncode == 1
    found = json.loads(worse.stdout)["gates"]
    assert [(gate["expression"], gate["outcome"]) for gate in found] == [("step_time +5%", "failed")]
    assert 'failures="1"' in junit.read_text()


def test_gates_on_several_runs_name_the_run(pair: tuple[Path, Path]) -> None:
    done = analyze("compare", *pair, pair[0], "--fail-if", "step_time +5%", "--report", "terminal")
    assert done.returncode == 0
    assert "✓ B: step_time 50% better" in done.stdout
    assert "✓ C: step_time unchanged" in done.stdout


def test_steps_and_ranges_of_a_comparison(pair: tuple[Path, Path], tmp_path: Path) -> None:
    found = json.loads(analyze("compare", *pair, "--steps", "1:3", "--report", "json").stdout)
    assert [found[side]["selection"] for side in "ab"] == ["steps 1:3"] * 2
    assert [found[side]["steps"] for side in "ab"] == [2, 2]
    assert analyze("compare", *pair, "--steps", "1:3", "--range", "x").returncode == 2
    stored = tmp_path / "report.json"
    analyze(pair[0], "-o", stored)
    refused = analyze("compare", stored, stored, "--steps", "1:3")
    assert refused.returncode == 2
    assert "The inputs are reports: --steps and --range select traces." in refused.stderr


def test_the_page_of_two_traces_draws_both_and_of_three_none(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    for i, path in enumerate(names):
        TraceBuilder().run("gemm", (10, 5), (20, 40 + i)).write(path)
    page = tmp_path / "page.html"
    for count in (2, 3):
        done = analyze("compare", *names[:count], "-o", page)
        assert done.returncode == 0, done.stderr
        text = page.read_text()
        assert ('<section id="pair"' in text, '<section id="timeline"' in text) == (count == 2, count == 2)
        assert "Not drawn" not in text
