"""Fixtures for all tests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from analyze.report import build_report
from analyze.trace import Trace
from tests.builder import TraceBuilder

settings.register_profile("any machine", deadline=None)  # a slow machine is not a defect
settings.load_profile("any machine")

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("GPULEDGER_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material; tests that need it are skipped without it."""
    if not (SHARED / "traces").is_dir():
        pytest.skip("no reference traces: set GPULEDGER_SHARED to their folder")
    return SHARED


@pytest.fixture
def load(tmp_path: Path) -> Callable[[TraceBuilder], Trace]:
    """Write a built trace and read it back."""
    return lambda builder: Trace.load(builder.write(tmp_path / "trace.json"))


@pytest.fixture
def report_of(load: Callable[[TraceBuilder], Trace]) -> Callable[..., dict[str, Any]]:
    """The JSON report of a built trace, as a script would read it."""

    def make(builder: TraceBuilder, **wish: Any) -> dict[str, Any]:
        from analyze.report.to_json import render

        return dict(json.loads(render(build_report(load(builder), **wish))))

    return make
