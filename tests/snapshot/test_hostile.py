"""Hostile pickles end in one sentence within 2 s and 1 GiB; nothing in them runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analyze.errors import GpuledgerError, SnapshotError
from analyze.snapshot import Snapshot
from analyze.snapshot.opcodes import check_opcodes
from tests.snapshot.hostile import HOSTILE

_LIMIT_S, _LIMIT_BYTES = 2.0, 1 << 30
_RUN = """
import json, resource, sys, time
sys.path.insert(0, {root!r})
from analyze.errors import GpuledgerError
from analyze.snapshot import Snapshot
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
found = {{}}
for path in sys.argv[1:]:
    begun = time.perf_counter()
    try:
        Snapshot.load(path)
        said = ""
    except GpuledgerError as error:
        said = error.message
    found[path] = said, time.perf_counter() - begun
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on memory")
def test_each_is_refused_in_one_sentence_in_time_and_memory(tmp_path: Path) -> None:
    paths = {}
    for i, (kind, (data, _)) in enumerate(HOSTILE.items()):
        paths[kind] = tmp_path / f"hostile-{i}.pickle"
        paths[kind].write_bytes(data)
    code = _RUN.format(limit=_LIMIT_BYTES, root=str(Path(__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths.values())],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    odd = []
    for kind, path in paths.items():
        said, seconds = found[str(path)]
        one_sentence = re.search(HOSTILE[kind][1], said) and "\n" not in said and len(said) < 250
        if not one_sentence or seconds > _LIMIT_S:
            odd.append(f"{kind}: {said!r}, {seconds:.2f} s")
    assert not odd, "\n".join(odd)
    assert not (tmp_path / "it-ran").exists()


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    """The error names the file and nothing that is in it."""
    path = tmp_path / "a.pickle"
    path.write_bytes(b"\x80\x04cos\nsystem\n\x8c\x05clear\x85R.")
    with pytest.raises(GpuledgerError) as caught:
        Snapshot.load(path)
    assert "system" not in str(caught.value)


def test_every_byte_is_either_known_or_refused() -> None:
    """No opcode gets through that is not on the list."""
    allowed = set(b"hjKMJqGXr.N}])(ustaeld\x80\x85\x86\x87\x88\x89\x8a\x8c\x94\x95")
    let_through = {opcode for opcode in range(256) if not refused(b"\x80\x04" + bytes([opcode]) + bytes(16) + b".")}
    assert let_through <= allowed


def refused(data: bytes) -> bool:
    try:
        check_opcodes(data, "x")
    except SnapshotError:
        return True
    return False
