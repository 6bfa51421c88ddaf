from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from capture import output
from capture.errors import OutputError
from capture.output import check_target, staged


def _write_and_fail(target: Path, error: type[BaseException]) -> None:
    with staged(target) as staging:
        (staging / "run.json").write_text("newer")
        raise error


def test_a_finished_folder_takes_its_name(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "fp32"
    with staged(target) as staging:
        (staging / "run.json").write_text("{}")
        assert not target.exists()
        assert staging.parent == target.parent  # the same file system, so that the move is one step
    assert [path.name for path in target.parent.iterdir()] == ["fp32"]
    assert (target / "run.json").read_text() == "{}"


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with staged(tmp_path / "fp32"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fp32").stat().st_mode) == 0o755


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_fails_leaves_not_even_the_folders(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        _write_and_fail(tmp_path / "a" / "b" / "fp32", error)
    assert not list(tmp_path.iterdir())


def test_what_fails_leaves_an_older_recording_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "fp32"
    target.mkdir()
    (target / "run.json").write_text("older")
    with pytest.raises(KeyboardInterrupt):
        _write_and_fail(target, KeyboardInterrupt)
    assert (target / "run.json").read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["fp32"]


def test_overwriting_replaces_our_files_and_no_others(tmp_path: Path) -> None:
    target = tmp_path / "fp32"
    target.mkdir()
    for name in ("run.json", "snapshot.pickle", "notes.txt"):
        (target / name).write_text("older")
    with staged(target) as staging:
        (staging / "run.json").write_text("newer")
    assert (target / "run.json").read_text() == "newer"
    assert not (target / "snapshot.pickle").exists()  # it would belong to another run
    assert (target / "notes.txt").read_text() == "older"


def test_an_existing_recording_needs_force(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("older")
    with pytest.raises(OutputError, match="already holds") as caught:
        check_target(tmp_path, force=False)
    assert "--force" in caught.value.hint
    check_target(tmp_path, force=True)


def test_an_empty_or_a_missing_folder_is_free(tmp_path: Path) -> None:
    check_target(tmp_path, force=False)
    check_target(tmp_path / "missing", force=False)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "fp32").write_text("")
    with pytest.raises(OutputError, match="not a folder"):
        check_target(tmp_path / "fp32", force=True)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Cannot write"), staged(tmp_path / "file" / "runs" / "fp32"):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission_to_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="Permission denied"), staged(tmp_path / "fp32"):
        pass


def test_no_permission_to_write_as_the_system_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**where: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output.tempfile, "mkdtemp", refuse)
    with pytest.raises(OutputError, match="Permission denied") as caught, staged(tmp_path / "a" / "fp32"):
        pass
    assert caught.value.hint == "Choose another folder."
    assert not list(tmp_path.iterdir())
