"""Gates and settings as processes: exit codes, files for CI, which setting wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from analyze.cli.config import read_config
from analyze.errors import ConfigError
from tests.builder import TraceBuilder
from tests.report.runs import run
from tests.snapshot.conftest import write_pickle
from tests.snapshot.test_report import busy
from tests.synthetic.allocator import snapshot
from tests.test_cli import ROOT
from tests.test_cli import run as analyze

IDLE, STEP = "idle_share > 10%", "step_time > 80 ms"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Idle for 49.2 % of the window, steps of 1 ms."""
    return run([400, 410, 420]).write(tmp_path / "trace.json")


def test_exit_codes(trace: Path) -> None:
    assert analyze(trace, "--fail-if", STEP).returncode == 0
    done = analyze(trace, "--fail-if", STEP, "--fail-if", IDLE)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.rstrip().splitlines()[-4:-1] == [
        "- ✓ step_time 1 ms &lt;= 80 ms",
        "- ✗ idle_share 49.2% &gt; 10%",
        "",
    ]
    for expression in ("idle_shar > 1%", "step_time > 80", "step_time +5%", "finding:nothing-such"):
        done = analyze(trace, "--fail-if", expression)
        assert (done.returncode, done.stdout) == (2, ""), expression
        assert "Hint: " in done.stderr
    done = analyze(trace, "--fail-if", "memory_peak > 1 GiB")
    assert done.returncode == 1
    assert "could not be judged" in done.stdout


def test_a_baseline_gate(trace: Path, tmp_path: Path) -> None:
    slow = run([400, 410, 420], [1200] * 3).write(tmp_path / "slow.json")
    done = analyze(slow, "--baseline", trace, "--fail-if", "step_time +5%", "-q")
    assert done.returncode == 1
    assert "✗ step_time 20% worse, limit 5% worse (1.00 ms to 1.20 ms)" in done.stdout
    assert analyze(trace, "--baseline", slow, "--fail-if", "step_time +5%", "-q").returncode == 0


def test_files_for_ci(trace: Path, tmp_path: Path) -> None:
    """With the report in a file the gates are on stderr; JUnit has one case each; the summary is appended."""
    junit, summary = tmp_path / "gates.xml", tmp_path / "summary.md"
    summary.write_text("before\n")
    args = (trace, "-o", tmp_path / "r.md", "--fail-if", IDLE, "--fail-if", STEP, "--junit", junit, "--summary-github")
    done = analyze(*args, GITHUB_STEP_SUMMARY=str(summary))
    assert (done.returncode, done.stdout) == (1, "")
    assert "✗ idle_share 49.2% > 10%\n✓ step_time 1 ms <= 80 ms\n" in done.stderr
    cases = ET.parse(junit).getroot()[0]
    assert [case.get("name") for case in cases] == [IDLE, STEP]
    assert summary.read_text().startswith("before\n## Trace report: `trace.json`")
    again = analyze(*args, GITHUB_STEP_SUMMARY="")
    assert again.returncode == 1
    assert "GITHUB_STEP_SUMMARY is not set" in again.stderr
    mine = tmp_path / "mine.xml"
    mine.write_text("<mine/>")
    done = analyze(trace, "--fail-if", STEP, "--junit", mine)
    assert done.returncode == 2
    assert mine.read_text() == "<mine/>"
    assert analyze(trace, "--junit", tmp_path / "no" / "x.xml").returncode == 2


def test_quiet(trace: Path) -> None:
    done = analyze(trace, "-q", "--fail-if", IDLE)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert lines[-2:] == ["Findings: launch-bound, fp32-gemm", "✗ idle_share 49.2% > 10%"]
    assert analyze(trace, "-q", "--ascii", "--fail-if", IDLE).stdout.isascii()
    assert analyze(trace, "-q", "--report", "md").returncode == 2


def test_quiet_says_that_a_file_without_device_rows_has_no_findings(tmp_path: Path) -> None:
    host_only = TraceBuilder().op("aten::mm", 0, 10).write(tmp_path / "host.json")
    assert analyze(host_only, "-q").stdout.splitlines()[-1] == "Findings: none"


def test_a_closed_pipe_hides_no_failed_gate(trace: Path) -> None:
    command = f"set -o pipefail; {sys.executable} -m analyze {trace} --fail-if '{IDLE}' | head -c 1 > /dev/null"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, cwd=ROOT, text=True)
    assert (done.returncode, done.stderr) == (1, "")


def inside(folder: Path, *args: Any, **env: str) -> subprocess.CompletedProcess[str]:
    """Run with the working folder in a project."""
    import os

    return subprocess.run(
        [sys.executable, "-m", "analyze", *map(str, args)], cwd=folder, capture_output=True, check=False, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **env},
    )  # fmt: skip


def test_command_line_then_environment_then_project_then_default(trace: Path, tmp_path: Path) -> None:
    deep = tmp_path / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(f'[tool.gpuledger]\nfail-if = ["{IDLE}", "{STEP}"]\ntop = 3\n')
    project = inside(deep, trace, "-q")
    assert project.returncode == 1
    assert "✗ idle_share" in project.stdout
    assert "✓ step_time" in project.stdout
    environment = inside(deep, trace, "-q", ANALYZE_FAIL_IF=f"{STEP};launches > 99")
    assert environment.returncode == 0
    assert environment.stdout.count("✓") == 2
    line = inside(deep, trace, "-q", "--fail-if", "busy_share < 1%", ANALYZE_FAIL_IF=IDLE)
    assert line.returncode == 0
    assert line.stdout.count("✓") == 1
    assert inside(deep, trace, "-q", "--no-config").returncode == 0
    import json

    assert json.loads(inside(deep, trace, "--report", "json").stdout)["definitions"]["top"] == 3
    assert json.loads(inside(deep, trace, "--report", "json", ANALYZE_TOP="4").stdout)["definitions"]["top"] == 4
    assert inside(deep, "compare", trace, trace).returncode == 0, "gates are for reports"
    pickle = write_pickle(snapshot(busy()), tmp_path / "memory.pickle")
    assert inside(deep, pickle).returncode == 0, "and not for memory snapshots"
    assert inside(deep, pickle, "--fail-if", IDLE).returncode == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.gpuledger]\nfail_if = []", "Did you mean 'fail-if'?"),
        ("[tool.gpuledger]\ncolour = 1", "Keys: fail-if, top, limits."),
        ("[tool.gpuledger]\nfail-if = 'x'", "is no list of texts"),
        ("[tool.gpuledger]\ntop = true", "is no whole number"),
        ("[tool.gpuledger.limits.sync-stall]\nshare = 0.1", "is no table of shares"),
        ("[tool.gpuledger]\nlimits = 0.1", "is no table of shares"),
        ("[tool]\ngpuledger = 5", "is no table"),
        ("not toml", "cannot be read"),
    ],
)
def test_settings_that_are_wrong(text: str, said: str, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_config(tmp_path)
    assert said in str(caught.value)
    done = inside(tmp_path, trace)
    assert (done.returncode, done.stdout) == (2, "")
    assert inside(tmp_path, trace, "--no-config").returncode == 0


def test_settings_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'")
    assert read_config(tmp_path) == {}
