from __future__ import annotations

import io
import sys
import threading

import pytest
from rich.table import Table

from capture.progress import PIPED_COLUMNS, print_table, shown_progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal and has no descriptor."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def _become_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    # Within the test: between fixtures and test pytest puts its own stream back.
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_stages_are_shown_on_a_terminal_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _become_a_terminal(monkeypatch)
    with shown_progress("vit [b]") as tell:
        tell("warming up")
        tell("measuring")
    shown = terminal.getvalue()
    assert shown.index("vit [b]: warming up") < shown.index("vit [b]: measuring")
    assert shown.endswith("\x1b[2K")  # the line is erased


def test_no_thread_draws_while_something_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    _become_a_terminal(monkeypatch)
    before = threading.active_count()
    with shown_progress("vit") as tell:
        tell("measuring")
        assert threading.active_count() == before


def test_a_pipe_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress("vit") as tell:
        tell("measuring")
    assert capsys.readouterr() == ("", "")


def test_a_piped_table_is_80_columns_wide(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name")
    table.add_row("x" * 200)
    print_table(table)
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) == PIPED_COLUMNS
