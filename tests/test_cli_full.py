"""The whole report on a terminal, lists and their options, what a shell offers, and progress while measuring."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from analyze.cli import deliver
from analyze.cli.main import cli
from analyze.guard import STAGES, Guard
from tests.golden import SAMPLES
from tests.report.runs import run as run_of
from tests.test_cli import run

GPU = next(path for path in SAMPLES if "small_batch" in path.name)
HOST = next(path for path in SAMPLES if "vit_tiny_cpu" in path.name)


def test_full_holds_every_table_of_the_markdown() -> None:
    text, page = run(GPU, "--full").stdout, json.loads(run(GPU, "--report", "json").stdout)
    tables = [block for section in page["sections"] for block in section["blocks"] if block["type"] == "table"]
    assert len(tables) > 10
    for section in page["sections"]:
        assert f"\n {section['title'].upper()}\n" in text
    for block in tables:
        assert not block["rows"] or block["title"][:6] in text, block["title"]
    advice = next(block for section in page["sections"] for block in section["blocks"] if block["type"] == "advice")
    for suggestion in advice["suggestions"]:
        assert f" {suggestion['id']}: {suggestion['title']}" in text
        assert suggestion["link"] in text
    for name, _ in (*advice["passed"], *advice["unmeasured"]):
        assert f"\n   {name}: " in text
    assert max(len(line) for line in text.splitlines() if str(GPU) not in line) <= 80, "a path is never cut"


def test_full_goes_into_text_files_too(tmp_path: Path) -> None:
    assert run(GPU, "--full", "-o", tmp_path / "full.txt").returncode == 0
    assert "Checks passed" in (tmp_path / "full.txt").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--report", "md"), "--report md is full already"),
        (("--report", "json"), "--report json is full already"),
        (("--quiet",), "Pass --quiet or --full"),
    ],
)
def test_full_is_for_the_terminal(options: tuple[str, ...], words: str) -> None:
    refused = run(GPU, "--full", *options)
    assert refused.returncode == 2
    assert words in refused.stderr


@pytest.mark.parametrize("option", [("--sort", "self_cpu"), ("--group-by-shape",), ("--top", "3")])
def test_options_of_lists_need_a_list(option: tuple[str, ...], tmp_path: Path) -> None:
    refused = run(GPU, *option, "--report", "terminal")
    assert refused.returncode == 2
    assert f"{option[0]} would change nothing." in refused.stderr
    assert "--full" in refused.stderr
    for shown in (("--full",), ("--report", "md"), ("-o", tmp_path / "report.md"), ("--report", "json")):
        assert run(GPU, *option, *shown).returncode == 0


def test_options_of_lists_change_a_list_that_is_there() -> None:
    told = run(HOST, "--top", "3", "--sort", "calls", "--report", "terminal")
    assert told.returncode == 0
    lines = told.stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith(" Ops on the host (3 of "))
    counts = [int(line.split()[1].replace(",", "")) for line in lines[head + 1 : head + 4]]
    assert counts == sorted(counts, reverse=True)
    assert not lines[head + 4]


def test_top_holds_for_kernels_and_ops_in_markdown() -> None:
    text = run(GPU, "--top", "2", "--report", "md").stdout
    assert "Activities with most time (2 of 9)" in text
    assert "Ops by device time (2 of " in text


class _Any(ShellComplete):
    name = "any"
    source_template = ""


def offered(*args: str) -> list[str]:
    """What is offered for the last of some arguments."""
    found = _Any(cli, {}, "analyze", "_ANALYZE_COMPLETE").get_completions(list(args[:-1]), args[-1])
    return [item.value for item in found]


def test_a_shell_offers_rules_words_and_gates() -> None:
    assert offered("t.json", "--limit", "sync") == ["sync-stall="]
    assert "clocks=" not in offered("t.json", "--limit", ""), "it has no limit"
    assert offered("explain", "launch-b") == ["launch-bound"]
    assert "verdict" in offered("explain", "")
    assert offered("t.json", "--fail-if", "finding:h") == ["finding:high", "finding:host-lead"]
    assert offered("compare", "a", "b", "--fail-if", "category:conv") == ["category:convolution"]
    assert "idle_share" in offered("t.json", "--fail-if", "idle_s")


def test_a_shell_offers_the_ranges_of_the_trace(tmp_path: Path) -> None:
    builder = run_of([400, 410])
    builder.row("user_annotation", 'forward "é"', 10, 50)
    builder.row("user_annotation", "backward", 70, 50)
    path = str(builder.write(tmp_path / "t.json.gz"))
    assert sorted(offered(path, "--range", "")) == ["backward", 'forward "é"']
    assert offered(path, "--range", "b") == ["backward"]
    assert offered("compare", path, path, "--range", "b") == ["backward"]
    assert offered("compare", str(tmp_path / "none.json"), "--range", "") == []


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_goes_on_while_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(deliver, "PROGRESS_AFTER_S", -1.0)
    with deliver.progress() as tell:
        assert tell is not None
        tell(2_000_000, 4_000_000)
        Guard().make("idle-parts", lambda: None)
    assert "read 2 of 4 MB" in screen.getvalue()
    assert "measuring idle-parts, 0 s" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
    assert (STAGES.filters, STAGES.level) == ([], logging.NOTSET)


def test_nothing_is_drawn_where_nobody_watches(capfd: pytest.CaptureFixture[str]) -> None:
    with deliver.progress() as tell:
        assert tell is None
        Guard().make("idle-parts", lambda: None)
    assert capfd.readouterr() == ("", "")
