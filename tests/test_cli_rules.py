"""`analyze rules`, `analyze explain`, and limits from the command line, the environment and pyproject.toml."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyze.errors import SelectionError
from analyze.findings import RULES
from analyze.report.rules import explain, list_rules, parse_limit
from tests.synthetic.vit import Plan, write

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "trace.json"
    write(Plan(precision="fp16", batch=2), path)
    return path


def analyze(*args: object, folder: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    path = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    command = [sys.executable, "-m", "analyze", *map(str, args)]
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)


def test_all_rules_are_listed_and_explained() -> None:
    text = list_rules(width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    for rule in RULES:
        assert f"\n{rule.id} " in text
        page = explain(rule.id, width=72)
        assert max(len(line) for line in page.splitlines()) <= 80
        for heading in ("What", "Why", "How to fix", "Does not apply when", "How it is measured", "Limit"):
            assert f"\n{heading}\n" in page
    assert "60.0% of the window" in explain("verdict", width=200)


def test_commands() -> None:
    done = analyze("explain", "sync-stall")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sync-stall: ")
    assert analyze("rules", "--limit", "sync-stall=7.5%").stdout.count("7.5%") == 1
    wrong = analyze("explain", "sync-stal")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Did you mean sync-stall?" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sync-stall=2%", ("sync-stall", 0.02)),
        ("small-batch = 0.5", ("small-batch", 0.5)),
        ("warm-up=0", ("warm-up", 0)),
    ],
)
def test_limits_are_read(text: str, found: tuple[str, float]) -> None:
    assert parse_limit(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sync-stal=2%", "Did you mean sync-stall?"),
        ("sync-stall", "is no limit of a rule"),
        ("sync-stall=", "is no limit of a rule"),
        ("sync-stall=much", "is no limit of a rule"),
        ("sync-stall=nan", "is no limit of a rule"),
        ("sync-stall=200%", "is no limit of a rule"),
        ("clocks=2%", "has no limit"),
        ("", "There is no rule ''"),
    ],
)
def test_limits_that_are_wrong(text: str, said: str) -> None:
    with pytest.raises(SelectionError) as caught:
        parse_limit(text)
    assert said in str(caught.value)


def found(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode == 0, done.stderr
    return {finding["id"] for finding in json.loads(done.stdout)["findings"]}


def test_limits_change_what_is_told_and_are_echoed(trace: Path, tmp_path: Path) -> None:
    assert "input-wait" in found(analyze(trace, "--report", "json"))
    strict = analyze(trace, "--report", "json", "--limit", "input-wait=90%")
    assert "input-wait" not in found(strict)
    assert json.loads(strict.stdout)["limits"] == {"input-wait": 0.9}
    assert "input-wait" not in found(analyze(trace, "--report", "json", ANALYZE_LIMIT="input-wait=90%"))
    (tmp_path / "pyproject.toml").write_text("[tool.gpuledger.limits]\ninput-wait = 0.9\n")
    assert "input-wait" not in found(analyze(trace, "--report", "json", folder=tmp_path))
    assert "input-wait" in found(analyze(trace, "--report", "json", "--no-config", folder=tmp_path))
    assert "Limits set: input-wait 90.0%." in analyze(trace, "--report", "md", folder=tmp_path).stdout
    (tmp_path / "pyproject.toml").write_text("[tool.gpuledger.limits]\ninput-wait = 5\n")
    assert analyze(trace, folder=tmp_path).returncode == 2


def test_findings_as_gates(trace: Path) -> None:
    failed = analyze(trace, "-q", "--fail-if", "finding:launch-bound", "--fail-if", "finding:sync-stall")
    assert failed.returncode == 1
    assert "✗ finding:launch-bound" in failed.stdout
    assert "✓ finding:sync-stall" in failed.stdout
    assert analyze(trace, "-q", "--fail-if", "finding:iteration-sync").returncode == 0


@pytest.mark.parametrize("words", [["rules"], ["explain", "launch-bound"], ["explain", "host lead"], ["--help"]])
def test_words_wait_for_no_library(words: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['analyze', *sys.argv[1:]]\n"
        "from analyze.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'polars', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.stdout
    assert done.returncode == 0
