"""Printed commands work when they are typed, whatever the file and its ranges are called."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from analyze.report import build_report, render
from analyze.report.commands import quoted_path
from analyze.report.redact import redacted
from analyze.trace import Trace
from tests.builder import TraceBuilder

NAMES = ["trace.json", "my trace.json", "it's.json", "-x.json", "rules", "a/b.json", "$(rm).json", "täst&.json"]


def steps(count: int) -> TraceBuilder:
    b = TraceBuilder()
    for i in range(count):
        b.step(i + 4, 100 * i, 100).run("k", (100 * i + 10, 5), (100 * i + 20, 50))
    return b


def ranges(*names: str) -> TraceBuilder:
    b = TraceBuilder()
    for i, name in enumerate(names):
        b.annotation(name, 100 * i, 60 - i).run("k", (100 * i + 10, 5), (100 * i + 20, 50))
    return b


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command as a shell runs it in a folder."""
    assert command.startswith("analyze ")
    line = f"{shlex.quote(sys.executable)} -m {command}"
    return subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_path_that_was_given_is_typed_as_a_shell_takes_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    steps(3).write(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    page = build_report(Trace.load(name)).page
    first, *_, last = page.next_steps
    assert shlex.split(first)[1].removeprefix("./") == name
    assert last.endswith(" --steps 5:6")
    for command in page.next_steps:
        done = typed(command, tmp_path)
        assert done.returncode == 0, (command, done.stderr)
    assert (tmp_path / "report.md").exists()


@pytest.mark.parametrize(("count", "option"), [(1, None), (2, "5:6"), (3, "5:6"), (5, "5:8")])
def test_steps_that_can_be_selected(count: int, option: str | None, tmp_path: Path) -> None:
    path = steps(count).write(tmp_path / "trace.json")
    found = [command for command in build_report(Trace.load(path)).page.next_steps if "--steps" in command]
    assert found == ([f"analyze {path} --steps {option}"] if option else [])
    if option:
        first, last = map(int, option.split(":"))
        assert build_report(Trace.load(path), steps=(first, last)).measures.devices


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["forward"], "forward"),
        (["my range's"], "'my range'\"'\"'s'"),
        (["-dash", "other"], None),
        (["a  b", "c`d", "e\nf", "\x1b[31m", "x" * 41, "fine"], "fine"),
        (["a  b"], None),
    ],
)
def test_ranges_that_can_be_selected(names: list[str], told: str | None, tmp_path: Path) -> None:
    path = ranges(*names).write(tmp_path / "trace.json")
    report = build_report(Trace.load(path))
    found = [command for command in report.page.next_steps if "--range" in command]
    assert found == ([f"analyze {path} --range {told}"] if told else [])
    if told:
        assert build_report(Trace.load(path), range=shlex.split(told)[0]).measures.devices


def test_a_range_that_launched_nothing_is_no_hint(tmp_path: Path) -> None:
    b = TraceBuilder().annotation("loading", 0, 900).annotation("forward", 1_000, 50).run("k", (1_010, 5), (1_020, 9))
    path = b.write(tmp_path / "trace.json")
    assert build_report(Trace.load(path)).page.next_steps[-1].endswith("--range forward")


@pytest.mark.parametrize("path", ["-", "a\nb.json", "a  b.json", "c`d.json", "\x1b.json", ""])
def test_what_cannot_be_typed_is_not_printed(path: str) -> None:
    assert quoted_path(path) == ""


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_a_terminal_breaks_commands_between_their_words(width: int, tmp_path: Path) -> None:
    from analyze.report.to_terminal import render as to_terminal

    folder = tmp_path / ("a long folder's name " * 3).strip()
    folder.mkdir()
    path = steps(2).write(folder / "trace.json")
    page = build_report(Trace.load(path)).page
    printed = to_terminal(page, width=width).split("\n Next ", 1)[1]
    lines = printed.replace("\\\n", " ").splitlines()
    assert [shlex.split(line) for line in lines] == [shlex.split(command) for command in page.next_steps[:2]]


def test_redaction_keeps_the_name_only(tmp_path: Path) -> None:
    folder = tmp_path / "secret place"
    folder.mkdir()
    path = ranges("a/b c").write(folder / "trace.json")
    text = render(redacted(build_report(Trace.load(path))), "md")
    assert "analyze trace.json -o report.md" in text
    assert "analyze trace.json --range 'a/b c'" in text
    assert "secret" not in text
    assert "place/" not in text
