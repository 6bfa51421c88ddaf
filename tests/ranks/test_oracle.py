"""The product and a brute-force program that was written from the same page agree to the nanosecond."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import SHARED
from tests.oracles.ranks import figures
from tests.ranks.jobs import joined, random_job


def differences(right: Any, got: Any, path: str = "") -> list[str]:
    if isinstance(right, dict):
        keys = [key for key in right if not key.startswith("_")]
        return [line for key in keys for line in differences(right[key], got.get(key, "absent"), f"{path}.{key}")]
    if isinstance(right, list) and isinstance(got, list) and len(right) == len(got):
        pairs = enumerate(zip(right, got, strict=True))
        return [line for at, (a, b) in pairs for line in differences(a, b, f"{path}[{at}]")]
    return [] if right == got else [f"{path}: {right} is right, not {got}"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_random_jobs(seed: int) -> None:
    documents, world = random_job(seed)
    if not documents:
        return
    found = joined(documents).document()
    right = figures(copy.deepcopy(documents), world)
    got = json.loads(json.dumps(found))
    assert differences(right, got) == []
    states_bandwidth = [c.get("busbw_bytes_per_s") for c in right["collectives"] if c["kind"] != "barrier"]
    assert [c.get("busbw_bytes_per_s") for c in got["collectives"] if c["kind"] != "barrier"] == states_bandwidth


@pytest.mark.parametrize("case", ["01", "02", "03", "04", "05", "06", "07", "10", "12", "13"])
def test_the_oracle_agrees_with_the_hand_worked_cases(case: str, shared: Path) -> None:
    (folder,) = (shared / "ranks" / "cases").glob(f"{case}-*")
    documents = [json.loads(path.read_text()) for path in sorted(folder.glob("rank*.json"))]
    found = figures(documents, documents[0]["distributedInfo"]["world_size"])
    for path, right in json.loads((SHARED / "ranks/cases/right.json").read_text())[folder.name]["right"].items():
        if ":" in path or path.startswith(("stragglers", "matched_by")):
            continue
        value: Any = found
        for key in path.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        assert value == right, path
