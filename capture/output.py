"""The folder of one recording: filled under a temporary name, and given its own when all of it is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from capture.errors import OutputError

TRACE_NAME = "trace.json.gz"
SNAPSHOT_NAME = "snapshot.pickle"
RUN_NAME = "run.json"
SWEEP_NAME = "sweep.json"
EXPORTED_NAME = "exported.json"
"""The trace as torch wrote it; it is gone when the recording is whole."""
_open_stagings: dict[Path, list[Path]] = {}
"""Temporary folders in use, and the folders that were made for them."""
Spoken = Literal["option", "argument"]
_OUT: dict[Spoken, str] = {"option": "--out", "argument": "folder"}
_FORCE: dict[Spoken, str] = {"option": "--force", "argument": "force=True"}
OWN_NAMES = (TRACE_NAME, SNAPSHOT_NAME, RUN_NAME, SWEEP_NAME)


def check_target(target: Path, *, force: bool, spoken: Spoken = "option") -> None:
    """Refuse a folder that holds something, unless it may be overwritten.

    Args:
        target: The folder.
        force: It may be overwritten.
        spoken: Whether the hint names options of the command line or arguments of `record`.

    Raises:
        OutputError: The folder exists and is not empty, or is not a folder.
    """
    try:
        taken = os.path.lexists(target) and (not target.is_dir() or any(target.iterdir()))
    except OSError as error:
        raise _unusable(target, error) from error
    if taken and not target.is_dir():
        raise OutputError(f"{target} exists and is not a folder.", f"Choose another {_OUT[spoken]}.")
    if taken and not force:
        hint = f"Use {_FORCE[spoken]} to overwrite it, or another {_OUT[spoken]}."
        raise OutputError(f"{target} already holds a recording.", hint)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target`, moved to it when the block ends well and removed otherwise.

    With an older recording in `target`, its files are replaced one by one and those that the new one lacks
    are removed; files of other names are left alone.

    Raises:
        OutputError: The folder cannot be made or written to.
    """
    made = _make_parents(target.parent)
    try:
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as error:
        _remove_empty(made)
        raise _unusable(target, error) from error
    _open_stagings[staging] = made
    try:
        yield staging
        _publish(staging, target)
    except OSError as error:
        raise _unusable(target, error) from error
    finally:
        _abandon(staging)


def abandon() -> None:
    """Remove every temporary folder, where the process is to end without unwinding."""
    for staging in list(_open_stagings):
        _abandon(staging)


def _abandon(staging: Path) -> None:
    shutil.rmtree(staging, ignore_errors=True)
    _remove_empty(_open_stagings.pop(staging, []))


def _publish(staging: Path, target: Path) -> None:
    staging.chmod(0o777 & ~_umask())  # mkdtemp makes folders that only their owner can read
    if not target.exists():
        staging.rename(target)
        return
    finished = {path.name for path in staging.iterdir()}
    for name in sorted(finished):
        os.replace(staging / name, target / name)
    for name in OWN_NAMES:
        if name not in finished:
            (target / name).unlink(missing_ok=True)


def _make_parents(folder: Path) -> list[Path]:
    """Make a folder and those above it; returns the new ones, innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error
    return missing


def _remove_empty(folders: list[Path]) -> None:
    with contextlib.suppress(OSError):  # something was written into it, as it should be
        for folder in folders:
            folder.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unusable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"Cannot write {path}: {error.strerror or error}.", "Choose another folder.")
