"""The command line: what it prints where, and its exit codes: 0 report, 1 gate failed, 2 unusable."""

from __future__ import annotations

import gc
import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builder import TraceBuilder

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample_traces" / "vit_tiny_fp32_synthetic.json.gz"
HINT = "Hint: "


def run(*args: str | Path, stdin: bytes | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `analyze` as a process of its own, as users and scripts do."""
    done = subprocess.run(
        [sys.executable, "-m", "analyze", *map(str, args)], input=stdin, capture_output=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8", **env},
    )  # fmt: skip
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    )


def test_a_pipe_gets_markdown_and_stderr_stays_empty() -> None:
    done = run(SAMPLE)
    assert done.returncode == 0
    assert done.stdout.startswith("## Trace report: `vit_tiny_fp32_synthetic.json.gz`")
    assert done.stderr == ""


@pytest.mark.parametrize(("form", "start"), [("md", "## Trace"), ("terminal", "vit_tiny"), ("json", "{\n")])
def test_formats(form: str, start: str) -> None:
    done = run(SAMPLE, "--report", form)
    assert done.returncode == 0
    assert done.stdout.startswith(start)
    assert "\x1b" not in done.stdout


def test_outputs_pick_their_format_by_suffix(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("r.txt", "r.md", "r.json")]
    done = run(SAMPLE, *[arg for name in names for arg in ("-o", name)])
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "".join(f"wrote {name}\n" for name in names)
    assert json.loads(names[2].read_text())["schema_version"] == "2.0"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "r.md", "r.txt"], "no half files are left"
    again = run(SAMPLE, "-o", names[1])
    assert again.returncode == 0, "a report of ours may be replaced"


def test_somebody_elses_file_is_kept(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("my own notes")
    done = run(SAMPLE, "-o", notes)
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert notes.read_text() == "my own notes"
    assert run(SAMPLE, "-o", notes, "--force").returncode == 0
    assert notes.read_text().startswith("## Trace report")


def test_standard_input() -> None:
    done = run("-", "--report", "json", stdin=SAMPLE.read_bytes())
    assert json.loads(done.stdout)["trace"]["name"] == "standard input"


def test_steps_exclude_the_last_and_ranges_select() -> None:
    """The sample has steps 2, 3 and 4; `2:4` is steps 2 and 3."""
    some = json.loads(run(SAMPLE, "--steps", "2:4", "--report", "json").stdout)
    assert [s["name"] for s in some["steps"]] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert some["trace"]["selection"] == "steps 2:4"
    every = json.loads(run(SAMPLE, "--steps", ":", "--report", "json").stdout)
    assert len(every["steps"]) == 3
    inside = json.loads(run(SAMPLE, "--range", "model_inference", "--report", "json").stdout)
    assert inside["devices"][0]["activities"] == 3 * 125
    for report in (some, every, inside):
        device = report["devices"][0]
        assert device["busy_ns"] + sum(device["idle"].values()) == device["window_ns"]


def test_top_limits_the_lists() -> None:
    report = json.loads(run(SAMPLE, "--top", "3", "--report", "json").stdout)
    assert len(report["gaps"]) == len(report["kernels"]) == 3


def test_ops_are_sorted_and_grouped_as_asked() -> None:
    report = json.loads(run(SAMPLE, "--sort", "calls", "--group-by-shape", "--report", "json").stdout)
    calls = [op["calls"] for op in report["ops"]["ops"]]
    assert calls == sorted(calls, reverse=True)
    shapes = [op["input_dims"] for op in report["ops"]["ops"] if op["name"] == "aten::addmm"]
    assert len(set(shapes)) == len(shapes) == 5
    plain = json.loads(run(SAMPLE, "--report", "json").stdout)
    assert sum(op["name"] == "aten::addmm" for op in plain["ops"]["ops"]) == 1


REFUSED = {
    "no such file": (["no/such.json"], "does not exist"),
    "folder": ([ROOT / "sample_traces"], "no two are ranks of one job"),
    "open without a page": ([SAMPLE, "--open"], "none is written"),
    "unknown suffix": ([SAMPLE, "-o", "x.pdf"], "no report format has this suffix"),
    "no such folder": ([SAMPLE, "-o", "no/such/r.md"], "no such folder"),
    "steps as a word": ([SAMPLE, "--steps", "two"], "is not A:B"),
    "steps that are not there": ([SAMPLE, "--steps", "7:9"], "No step in 7:9"),
    "no such range": ([SAMPLE, "--range", "model_inferenc"], "'model_inference'"),
    "steps and range": ([SAMPLE, "--steps", "2:3", "--range", "x"], "cannot be selected together"),
    "unknown option": ([SAMPLE, "--nope"], "--nope"),
    "unknown format": ([SAMPLE, "--report", "pdf"], "pdf"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_with_one_error_a_hint_and_exit_code_2(kind: str) -> None:
    args, said = REFUSED[kind]
    done = run(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert HINT in done.stderr


CONTENT = {
    "empty": b"", "png": b"\x89PNG\r\n\x1a\n" + bytes(50), "pickle": b"\x80\x04\x95\x00.", "jax": json.dumps({
        "traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
                        {"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}).encode(),
    "text": b"hello", "gz of nothing": gzip.compress(b""), "random": bytes(range(1, 256)) * 40,
}  # fmt: skip


@pytest.mark.parametrize("kind", [k for k in CONTENT if k != "pickle"])
def test_other_content_is_one_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(CONTENT[kind])
    done = run(path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_a_host_only_trace_is_a_report(tmp_path: Path) -> None:
    path = TraceBuilder().step(0, 0, 50).op("aten::mm", 5, 20).write(tmp_path / "cpu.json")
    done = run(path)
    assert done.returncode == 0
    assert "No GPU activity in this file" in done.stdout
    assert "aten::mm" in done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m analyze {SAMPLE} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False, cwd=ROOT, text=True)
    assert done.stdout.startswith("## Trace report")
    assert "Error" not in done.stderr


def test_an_internal_error_is_no_failed_gate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python's own exit code for an exception is 1, which a CI job would read as a failed gate."""
    from analyze import cli
    from analyze.trace import Trace

    def broken(path: str, **_options: object) -> Trace:
        raise RuntimeError

    monkeypatch.setattr(Trace, "load", broken)
    monkeypatch.setattr(gc, "disable", lambda: None)  # the tests go on
    monkeypatch.setattr(sys, "argv", ["analyze", str(SAMPLE)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert "Internal error (RuntimeError)" in capsys.readouterr().err


def test_help_shows_examples_first_and_every_option() -> None:
    short, long = run("-h"), run("--help")
    assert (short.returncode, short.stdout) == (0, long.stdout)
    assert short.stdout.index("Examples:") < short.stdout.index("Options:")
    for option in ("--report", "--output", "--steps", "--range", "--top", "--color", "--ascii", "--force"):
        assert option in short.stdout
    assert run().returncode == 2
    assert run("--version").returncode in (0, 2)


def test_help_examples_run(tmp_path: Path) -> None:
    (tmp_path / "trace.json.gz").write_bytes(SAMPLE.read_bytes())
    lines = [
        line.split("  ")[1] for line in run("-h").stdout.splitlines() if line.startswith("  analyze trace.json.gz")
    ]
    commands = [
        line.strip() for line in run("-h").stdout.splitlines() if line.strip().startswith("analyze trace.json.gz")
    ]
    assert commands or lines
    for command in commands:
        args = shlex.split(command.split("   ")[0])[1:]
        done = subprocess.run([sys.executable, "-m", "analyze", *args], cwd=tmp_path, capture_output=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
        assert done.returncode == 0, command


def test_help_needs_no_polars() -> None:
    code = "import sys; import analyze.cli; assert not {'polars', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0
