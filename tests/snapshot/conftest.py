"""Snapshots as files."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.snapshot import DeviceMemory, Snapshot, measure_snapshot

Measure = Callable[..., list[DeviceMemory]]


def write_pickle(document: Any, path: Path, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(document, protocol=protocol))
    return path


@pytest.fixture
def load_document(tmp_path: Path) -> Callable[[Any], Snapshot]:
    """Write a document as a pickle and read it back."""
    return lambda document: Snapshot.load(write_pickle(document, tmp_path / "snapshot.pickle"))


@pytest.fixture
def measured(load_document: Callable[[Any], Snapshot]) -> Measure:
    """The devices of a document."""
    return lambda document: list(measure_snapshot(load_document(document))[0])
