"""A short form of `python -m tests.fuzz`, and whole documents drawn by hypothesis."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyze.errors import GpuledgerError
from analyze.trace import Trace
from tests.fuzz import run
from tests.fuzz.document import Document, every_kind
from tests.fuzz.invariants import report_holds, rows_hold
from tests.fuzz.tree import CATEGORIES, PHASES


@pytest.mark.parametrize(("seed", "count"), [(1, 100), (2, 100), (time.time_ns() % 10**9, 120)], ids=["1", "2", "new"])
def test_mutants(seed: int, count: int, tmp_path: Path) -> None:
    outcome = run(count, seed, out=tmp_path, every=5)
    assert not outcome.failures, f"seed {seed}: {outcome.failures[0]}"
    assert outcome.counts.total() == count
    assert outcome.counts["said"] > count / 4, "mutants are broken, and are said to be"


def test_a_failure_is_kept_as_a_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: names with an `x` raise. What is kept holds one, and less than the mutant around it."""
    original = Trace.load

    def load(path: Path, **given: Any) -> Trace:
        if b"ampere" in path.read_bytes():
            raise ZeroDivisionError("planted")
        return original(path, **given)

    monkeypatch.setattr(Trace, "load", load)
    outcome = run(6, 3, out=tmp_path, every=100)
    assert outcome.failures
    for failure in outcome.failures:
        kept = failure.path.read_bytes()
        assert b"ampere" in kept
        assert len(kept) < 2_000
        assert "ZeroDivisionError: planted" in failure.error


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
_times = st.floats(0, 1e7) | st.integers(0, 10**16) | st.integers() | _scalars
_args = st.fixed_dictionaries(
    {},
    optional={
        "device": st.integers(-1, 4) | _values, "stream": st.integers(0, 9) | _values,
        "correlation": st.integers(0, 5) | _values,
        "External id": st.integers(0, 5) | _values, "Input Dims": st.lists(st.lists(st.integers(0, 64))) | _values,
        "Bytes": st.integers() | _values, "bytes": st.integers() | _values, "Total Allocated": st.integers() | _values,
        "Device Type": st.integers(0, 2), "grid": st.lists(st.integers()) | _values,
    },
)  # fmt: skip
_names = st.sampled_from(
    ("aten::mm", "k", "ncclKernel", "ProfilerStep#1", "[memory]", "cudaLaunchKernel", "process_name")
)
rows = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.just("X") | st.sampled_from(PHASES), "cat": st.sampled_from(CATEGORIES), "name": _names | _values,
        "pid": st.integers(0, 3) | _values, "tid": st.integers(0, 3) | _values, "ts": _times,
        "dur": _times, "args": _args | _values,
    },
)  # fmt: skip
documents = st.builds(
    Document,
    rows=st.lists(rows | _values, max_size=12),
    metadata=st.dictionaries(
        st.sampled_from(("deviceProperties", "distributedInfo", "gpuledger", "x")), _values, max_size=3
    ),
    further=st.lists(
        st.tuples(st.sampled_from(("before", "after", "nested", "behind")), st.lists(rows, max_size=3)), max_size=2
    ),
    bare=st.booleans(),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(document=documents)
def test_documents(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(document.text().encode("utf-8", "surrogatepass"))
    try:
        trace = Trace.load(path)
    except GpuledgerError:
        return
    rows_hold(trace, document.count())
    report_holds(trace, again=None)


def test_a_sound_document_loses_nothing(tmp_path: Path) -> None:
    """The count by hand, of the document that most mutants come from."""
    b = every_kind()
    trace = Trace.load(b.write(tmp_path / "t.json"))
    account = trace.recording.account
    assert account.total == len(b.rows) == 48
    assert account.used == {
        "ops": 6, "runtime": 12, "activities": 10, "ranges": 3, "frames": 2, "overhead": 1, "spans": 1, "memory": 6,
    }  # fmt: skip
    assert account.unused == {"flow arrows": 2, "views of other rows": 2, "instants": 1, "counters": 1, "metadata": 1}
    assert not any(account.lost.values())
    assert trace.recording.notices == ()


def test_the_order_of_rows_changes_no_count(tmp_path: Path) -> None:
    b = every_kind()
    first = Trace.load(b.write(tmp_path / "a.json")).recording.account
    random.Random(5).shuffle(b.rows)
    assert Trace.load(b.write(tmp_path / "b.json")).recording.account == first
    assert json.loads((tmp_path / "b.json").read_text())["traceEvents"]
