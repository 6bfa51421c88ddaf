"""The command line inside this process: a process of its own takes a second longer to start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from analyze.cli.main import _code_of, cli


class Done(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run `analyze` with a cache of its own, one worker unless others are asked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Done:
        words = [str(arg) for arg in args]
        if "compare" not in words and "--workers" not in words:
            words += ["--workers", "1"]
        monkeypatch.setattr(sys, "argv", ["analyze", *words])
        capfd.readouterr()
        try:
            code = cli.main(words, standalone_mode=False)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as the program itself does
            code = _code_of(error)
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(int(code or 0), *capfd.readouterr())

    return call
