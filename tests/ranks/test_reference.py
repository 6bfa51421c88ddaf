"""The figures of every shared folder equal the hand-worked values and those of an independent program, to the ns."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analyze.ranks import Job
from tests.conftest import SHARED

FOLDERS = ("dlrm_4_of_8", "gloo_cpu_4", "hta_2_of_128", "planted_16_ranks")
UNSTATED = {"own_ns", "inherited_ns", "algbw_bytes_per_s", "busbw_bytes_per_s", "stragglers"}  # with ranks missing


def _cases() -> dict[str, Any]:
    place = SHARED / "ranks" / "cases" / "right.json"
    return dict(json.loads(place.read_text())) if place.is_file() else {}


@cache
def _figures(folder: Path) -> Any:
    return json.loads(json.dumps(Job.load(folder, workers=1).document()))


def _find(value: Any, path: list[str]) -> Any:
    """The value under a path; keys may hold dots themselves."""
    if not path:
        return value
    if isinstance(value, list):
        return _find(value[int(path[0])], path[1:])
    for size in range(len(path), 0, -1):
        key = ".".join(path[:size])
        if key in value:
            return _find(value[key], path[size:])
    raise KeyError(path)


@pytest.mark.parametrize("case", sorted(_cases()))
def test_hand_worked_case(case: str) -> None:
    found = _figures(SHARED / "ranks" / "cases" / case)
    for path, right in _cases()[case]["right"].items():
        what, _, place = path.rpartition(":")
        if what == "absent":
            with pytest.raises(KeyError):
                _find(found, place.split("."))
        else:
            got = _find(found, place.split("."))
            assert (len(got) if what == "len" else got) == right, path


def _differences(right: Any, got: Any, path: str, skipped: set[str]) -> list[str]:
    if isinstance(right, dict):
        assert isinstance(got, dict), path
        found = []
        for key in right.keys() - skipped:
            found += _differences(right[key], got[key], f"{path}.{key}", skipped) if key in got else [f"{path}.{key}"]
        return found
    if isinstance(right, list) and isinstance(got, list) and len(right) == len(got):
        pairs = enumerate(zip(right, got, strict=True))
        return [line for at, (a, b) in pairs for line in _differences(a, b, f"{path}[{at}]", skipped)]
    return [] if right == got else [f"{path}: {right} is right, not {got}"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_reference_figures(folder: str, shared: Path) -> None:
    right = json.loads((shared / "ranks" / "reference" / f"shared.{folder}.json").read_text())
    right = right[0] if isinstance(right, list) else right
    skipped = {"folder", "left_out"} | (UNSTATED if right["ranks_missing"] else set())
    found = _figures(shared / "ranks" / folder)
    assert _differences(right, found, folder, skipped) == []
    assert [path for path, _ in found["left_out"]] == [path for path, _ in right["left_out"]]


def test_nobody_is_blamed_with_ranks_missing(shared: Path) -> None:
    found = _figures(shared / "ranks" / "dlrm_4_of_8")
    assert found["stragglers"] == []
    assert all(rank["own_ns"] is None for rank in found["ranks"].values())
    assert all(one["own_ns"] is None and one["inherited_ns"] is None for one in found["collectives"])
