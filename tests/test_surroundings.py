"""Ordinary surroundings: streams that are full, closed or not UTF-8, narrow terminals, pipes, odd names, Ctrl-C.

`python -m tests.test_surroundings` prints the table: case, exit code, first line of standard error.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from pathlib import Path

import pytest

from analyze.compare import read_comparable
from tests.builder import TraceBuilder
from tests.snapshot.conftest import write_pickle
from tests.synthetic.allocator import MIB, Allocator, snapshot

ROOT = Path(__file__).parent.parent
PROGRAM = f"{shlex.quote(sys.executable)} -m analyze"
FULL = "Error: Standard output cannot be written: No space left on device."
CLOSED = "Error: Standard output is closed."
GATE = "--fail-if 'idle_share > 1%'"

LONG = "x" * 300

# name, command in bash, exit code, first line of standard error
CASES = (
    ("stdout ascii", "PYTHONIOENCODING=ascii A t.json", 0, ""),
    ("stdout latin-1, json", "PYTHONIOENCODING=latin-1 A t.json --report json", 0, ""),
    ("stdout ascii, colours", "PYTHONIOENCODING=ascii A t.json --report terminal --color always", 0, ""),
    ("stdout ascii, quiet", f"PYTHONIOENCODING=ascii A t.json -q {GATE}", 1, ""),
    ("stdout ascii, explain", "PYTHONIOENCODING=ascii A explain launch-bound", 0, ""),
    ("stdout full", "A t.json >/dev/full", 2, FULL),
    ("stdout full, json", "A t.json --report json >/dev/full", 2, FULL),
    ("stdout full, gate failed", f"A t.json {GATE} >/dev/full", 2, FULL),
    ("stdout full, help", "A --help >/dev/full", 2, FULL),
    ("stdout full, rules", "A rules >/dev/full", 2, FULL),
    ("stdout full, -o", "A t.json -o r1.md >/dev/full", 0, "wrote r1.md"),
    ("stdout fills up, unbuffered", "(ulimit -f 1; PYTHONUNBUFFERED=1 A t.json --report json >u.json)", 2,
     "Error: Standard output cannot be written: File too large."),
    ("stdout full, --junit", f"A t.json {GATE} --junit j.xml >/dev/full; R=$?; [ -s j.xml ] && exit $R", 2, FULL),
    ("stdout closed", "A t.json >&-", 2, CLOSED),
    ("stdout closed, -o", "A t.json -o r2.md >&-", 0, "wrote r2.md"),
    ("reader gone", f"A t.json {GATE} | true; exit ${{PIPESTATUS[0]}}", 1, ""),
    ("stderr full", "A missing.json 2>/dev/full", 2, ""),
    ("stderr full, gate failed", f"A t.json {GATE} 2>/dev/full", 1, ""),
    ("stderr full, -o", "A t.json -o r3.md 2>/dev/full", 0, ""),
    ("stderr closed", "A missing.json 2>&-", 2, ""),
    ("stderr closed, -o", f"A t.json -o r4.json {GATE} 2>&- && exit 9 || A compare r4.json t.json", 0, ""),
    ("all closed", f"A t.json {GATE} -q -o r5.json <&- >&- 2>&-", 2, ""),
    ("stdin closed", "A - <&-", 2, "Error: Standard input is closed."),
    ("stdin empty", "A - </dev/null", 2, "Error: standard input is empty (0 bytes)."),
    ("folder deleted", "mkdir gone; cd gone; rmdir ../gone; A ../t.json", 0, ""),
    ("folder deleted, full path", 'T=$PWD/t.json; mkdir gone2; cd gone2; rmdir ../gone2; A "$T"', 0, ""),
    ("folder deleted, -o", 'T=$PWD/t.json; mkdir gone3; cd gone3; rmdir ../gone3; A "$T" -o r.md', 2,
     "Error: r.md cannot be written: No such file or directory."),
    ("name not UTF-8", "A $'n\\xff.json' --report md", 0, ""),
    ("name not UTF-8, json", "A $'n\\xff.json' --report json", 0, ""),
    ("name not UTF-8, -o", "A t.json -o $'o\\xff.md'", 0, "wrote o\ufffd.md"),
    ("name not UTF-8, missing", "A $'m\\xff.json'", 2, "Error: m\ufffd.json does not exist."),
    ("<(zcat)", "A <(zcat t.json.gz)", 0, ""),
    ("<(cat) gzip", "A <(cat t.json.gz)", 0, ""),
    ("<(cat) zip", "A <(cat t.zip)", 0, ""),
    ("FIFO", "mkfifo f1; cat t.json >f1 & A f1", 0, ""),
    ("- gzip", "cat t.json.gz | A -", 0, ""),
    ("- zip", "cat t.zip | A -", 0, ""),
    ("- from a file", "A - <t.json", 0, ""),
    ("/dev/stdin", "cat t.json | A /dev/stdin", 0, ""),
    ("- snapshot", "cat s.pickle | A -", 0, ""),
    ("<(cat) snapshot", "A <(cat s.pickle)", 0, ""),
    ("<(zcat) snapshots", "A compare <(cat s.pickle) <(zcat s.pickle.gz)", 0, ""),
    ("- report", "cat r.json | A compare - t.json", 0, ""),
    ("<(cat) report, baseline", "A t.json --baseline <(cat r.json)", 0, ""),
    ("<(cat) both", "A compare <(cat r.json) <(zcat t.json.gz)", 0, ""),
    ("report as a trace", "cat r.json | A -", 2, "Error: standard input is a report of gpuledger, not a trace."),
    ("- twice", "A compare - - <t.json", 2, "Error: Standard input can be read only once."),
    ("FIFO twice", "mkfifo f2; A compare f2 f2", 2, "Error: f2 can be read only once."),
    ("stdin twice, by two names", "cat t.json | A compare - /dev/stdin", 2,
     "Error: /dev/stdin can be read only once."),
    ("blanks only", "echo | A -", 2, "Error: standard input begins with nothing but blanks."),
    ("name too long", f"A {LONG}.json", 2, f"Error: {LONG}.json cannot be opened: File name too long."),
    ("name too long, compare", f"A compare t.json {LONG}.json", 2, f"Error: {LONG}.json does not exist."),
    ("name too long, -o", f"A t.json -o {LONG}.md", 2, f"Error: {LONG}.md cannot be written: File name too long."),
    ("name too long, --junit", f"A t.json --junit {LONG}.xml", 2,
     f"Error: {LONG}.xml cannot be written: File name too long."),
    ("name empty", "A ''", 2, "Error: The name of an input is empty."),
    ("name empty, --baseline", "A t.json --baseline ''", 2, "Error: The name of an input is empty."),
    ("name empty, --junit", "A t.json --junit ''", 2, "Error: The name of an output is empty."),
    ("line end in a name", "A t.json -o $'d\\n\\e[31m.md'", 0, "wrote d  [31m.md"),
    ("COLUMNS 0", "COLUMNS=0 A t.json --report terminal", 0, ""),
    ("COLUMNS 1", "COLUMNS=1 A t.json --report terminal", 0, ""),
    ("COLUMNS no number", "COLUMNS=wide A t.json --report terminal", 0, ""),
    ("COLUMNS 1, rules", "COLUMNS=1 A rules", 0, ""),
)  # fmt: skip


def make(folder: Path) -> None:
    """The files that the cases read."""
    b = TraceBuilder().step(1, 0, 900).run("gemm", (10, 5), (20, 10)).run("gemm", (200, 5), (300, 10))
    b.step(2, 1000, 900).run("gemm", (1010, 5), (1020, 10)).annotation("größe–µ", 0, 900)
    trace = b.write(folder / "t.json")
    b.write(folder / "t.json.gz")
    import zipfile

    with zipfile.ZipFile(folder / "t.zip", "w") as archive:
        archive.write(trace, "t.json")
    os.link(trace, os.path.join(os.fsencode(folder), b"n\xff.json"))
    allocator = Allocator()
    allocator.allocate(MIB, [{"name": "f", "filename": "a.py", "line": 1}])
    pickled = write_pickle(snapshot(allocator), folder / "s.pickle")
    (folder / "s.pickle.gz").write_bytes(gzip.compress(pickled.read_bytes()))
    assert bash("A t.json -o r.json", folder).returncode == 0


def bash(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    """A command line in bash, `A` standing for the program."""
    line = f'A() {{ {PROGRAM} "$@"; }}\n{command}'
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, check=False, timeout=60, stdin=None,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **env})  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("surroundings")
    make(place)
    return place


@pytest.mark.parametrize(("name", "command", "code", "line"), CASES, ids=[case[0] for case in CASES])
def test_case(name: str, command: str, code: int, line: str, folder: Path) -> None:
    done = bash(command, folder)
    told = done.stderr.decode()
    assert done.returncode == code, told
    assert (told.splitlines() or [""])[0] == line
    assert "Traceback" not in told
    assert "Internal error" not in told
    if "IOENCODING" in command:
        assert done.stdout.isascii()
        assert done.stdout


def test_ascii_json_says_the_same(folder: Path) -> None:
    plain = bash("A t.json --report json", folder).stdout
    other = bash("PYTHONIOENCODING=ascii A t.json --report json", folder).stdout
    assert json.loads(plain) == json.loads(other)
    assert not plain.isascii()


def test_a_command_that_ascii_cannot_spell_is_left_out(folder: Path) -> None:
    assert "größe–µ" in bash("A t.json", folder, PYTHONIOENCODING="utf-8").stdout.decode()
    found = bash("A t.json --report terminal", folder, PYTHONIOENCODING="ascii").stdout.decode("ascii")
    assert "gr??e" not in "".join(line for line in found.splitlines() if "analyze " in line)


def test_pipes_and_files_give_the_same_report(folder: Path) -> None:
    file = json.loads(bash("A t.json --report json", folder).stdout)
    for command in ("A <(cat t.json)", "cat t.json | A -", "cat t.zip | A -", "A <(zcat t.json.gz)"):
        found = json.loads(bash(f"{command} --report json", folder).stdout)
        assert found["metrics"] == file["metrics"]
        assert found["trace"]["name"] in ("pipe", "standard input")
        assert not any("analyze /dev" in line for line in bash(command, folder).stdout.decode().splitlines())
    assert read_comparable(folder / "r.json") is not None


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (24, 1), (24, 5), (24, 10), (50, 200)], ids=str)
def test_a_terminal_of_any_size(size: tuple[int, int], folder: Path) -> None:
    text, code = in_terminal(["t.json"], size, folder)
    assert code == 0
    assert "Traceback" not in text
    widest = max(len(line) for line in re.sub(r"\x1b\[[0-9;]*[mK]", "", text).splitlines() if "t.json" not in line)
    assert widest <= (80 if not size[1] else 30 if size[1] <= 10 else 120)


def test_columns_is_honoured(folder: Path) -> None:
    text, _ = in_terminal(["t.json"], (24, 80), folder, COLUMNS="50")
    assert 40 < max(len(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()) <= 50
    piped = bash("COLUMNS=100 A t.json --report terminal", folder).stdout.decode()
    assert 80 < max(map(len, piped.splitlines())) <= 100


def in_terminal(args: list[str], size: tuple[int, int], folder: Path, **env: str) -> tuple[str, int]:
    """What a terminal of so many rows and columns is sent, and the exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "analyze", *args], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**environment, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **env},
    )  # fmt: skip
    os.close(theirs)
    pieces: list[bytes] = []

    def drain() -> None:
        try:
            while piece := os.read(ours, 1 << 16):
                pieces.append(piece)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    code = process.wait(60)
    reader.join()
    os.close(ours)
    return b"".join(pieces).decode().replace("\r\n", "\n"), code


_INTERRUPTING = """
import builtins, os, signal, sys
sys.argv = ["analyze", "t.json"]
real, name = builtins.__import__, {name!r}
def hooked(module, *args, **kwargs):
    if module == name:
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return real(module, *args, **kwargs)
builtins.__import__ = hooked
from analyze.__main__ import run
run()
"""


def test_next_to_nothing_is_imported_before_an_interrupt_is_caught(folder: Path) -> None:
    """What the package imports before `__main__` runs cannot be guarded."""
    code = "import sys; before = set(sys.modules); import analyze; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    assert set(done.stdout.split()) == {"analyze", "analyze.lazy", "__future__"}


def test_an_interrupt_within_exec_ends_in_130(folder: Path) -> None:
    """Python ends itself by the signal when an interrupt met a text that was run, even one that was caught."""
    code = (
        "import sys; sys.argv = ['analyze', 't.json']\n"
        "from analyze.trace import Trace\n"
        "def load(*a, **k): exec('import os, signal; os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(10**6)]')\n"
        "Trace.load = load\n"
        "from analyze.__main__ import run; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)  # fmt: skip
    assert (done.returncode, done.stderr.decode().strip()) == (130, "Interrupted; no report was made.")


@pytest.mark.parametrize("name", ["analyze.cli", "click", "polars", "numpy", "orjson", "rich.text", "analyze.report"])
def test_an_interrupt_while_modules_are_imported(name: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTING.format(name=name)], cwd=folder, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60,
    )  # fmt: skip
    if name == "rich.text" and done.returncode == 0:
        return  # a pipe gets Markdown: it is not imported
    assert (done.returncode, done.stderr.decode().strip()) == (130, "Interrupted; no report was made.")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as place:
        make(Path(place))
        for name, command, *_ in CASES:
            done = bash(command, Path(place))
            first = (done.stderr.decode().splitlines() or ["–"])[0]
            print(f"| {name} | `{command}` | {done.returncode} | {first} |")


if __name__ == "__main__":
    main()
