from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capture import metadata
from capture.errors import ProfileError
from capture.metadata import KEY, read_block, to_json, write_json, write_trace

NASTY = 'a "quote", a \\ backslash, a\nnewline, a\ttab, \u00fcml\u00e4ut, \u65e5\u672c, \U0001f600, </script>, \x00\x1f'
EXPORTED: dict[str, Any] = {
    "schemaVersion": 1,
    "traceEvents": [{"ph": "X", "name": "m\u00e9", "ts": 1.5}],
    "traceName": "runs/.fp32/exported.json",
}


def _export(folder: Path, text: str | None = None) -> Path:
    path = folder / "exported.json"
    path.write_text(json.dumps(EXPORTED, indent=2) if text is None else text, encoding="utf-8")
    return path


def _read(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def test_every_kind_of_character_survives(tmp_path: Path) -> None:
    target = tmp_path / "trace.json.gz"
    write_trace(_export(tmp_path), {"model": NASTY, NASTY: 1}, target)
    assert read_block(target) == {"model": NASTY, NASTY: 1}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none()))
def test_any_text_survives(tmp_path: Path, block: dict[str, Any]) -> None:
    target = tmp_path / "trace.json.gz"
    write_trace(_export(tmp_path), block, target)
    assert read_block(target) == block


def test_the_rest_of_the_trace_is_untouched_but_for_its_name(tmp_path: Path) -> None:
    target = tmp_path / "trace.json.gz"
    write_trace(_export(tmp_path), {"a": 1}, target)
    document = _read(target)
    assert next(iter(document)) == KEY
    assert document.pop(KEY) == {"a": 1}
    assert document == {**EXPORTED, "traceName": "trace.json.gz"}


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
def test_the_splice_does_not_depend_on_where_the_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(metadata, "_CHUNK_BYTES", chunk)
    monkeypatch.setattr(metadata, "_TAIL_BYTES", 80)
    target = tmp_path / "trace.json.gz"
    write_trace(_export(tmp_path), {"a": 1}, target)
    assert _read(target) == {KEY: {"a": 1}, **EXPORTED, "traceName": "trace.json.gz"}


@pytest.mark.parametrize("text", ["{}", " \n{ \n}\n"])
def test_an_empty_trace_gets_the_block_alone(tmp_path: Path, text: str) -> None:
    target = tmp_path / "trace.json.gz"
    write_trace(_export(tmp_path, text), {"a": 1}, target)
    assert _read(target) == {KEY: {"a": 1}}


@pytest.mark.parametrize("text", ["", "[]", "null"])
def test_what_is_not_an_object_is_refused_and_leaves_no_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProfileError, match="not a JSON object"):
        write_trace(_export(tmp_path, text), {"a": 1}, tmp_path / "trace.json.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["exported.json"]


def test_numbers_that_json_lacks_become_null() -> None:
    assert json.loads(to_json({"a": float("nan"), "b": [float("inf"), 1.5]})) == {"a": None, "b": [None, 1.5]}


def test_the_text_is_ascii() -> None:
    assert to_json({"model": NASTY}).isascii()


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    exported = _export(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_trace(exported, {"x": 1}, tmp_path / name / "trace.json.gz")
    assert (tmp_path / "a/trace.json.gz").read_bytes() == (tmp_path / "b/trace.json.gz").read_bytes()


@pytest.mark.parametrize("kind", ["trace", "json"])
def test_an_interrupted_write_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    exported = _export(tmp_path)
    target = tmp_path / "target"
    target.write_text("older")

    def interrupt(source: object, destination: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(metadata.os, "replace", interrupt)
    write = partial(write_trace, exported) if kind == "trace" else write_json
    with pytest.raises(KeyboardInterrupt):
        write({"a": 1}, target)
    assert target.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exported.json", "target"]
