"""`analyze export`: the rows of the file stay byte by byte, and the added ones say what the report says."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analyze import Trace, build_report
from analyze.errors import NotATraceError
from analyze.report.share.export import export_file
from analyze.report.share.proof import figures_of
from tests.builder import TraceBuilder
from tests.hostile_strings import HOSTILE
from tests.test_cli import run

SHARED = Path(__file__).parents[2] / "sample_traces"
SAMPLES = sorted(path.name for path in SHARED.glob("*synthetic.json.gz"))
ADDED = "gpuledger"
_FIELDS = {"M": {"args"}, "X": {"ts", "dur", "args"}, "i": {"ts", "s", "args"}, "C": {"ts", "args"}}


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows with times as text, so that no digit is lost."""
    document = json.loads(_text(path), parse_float=str)
    found: list[dict[str, Any]] = document if isinstance(document, list) else document["traceEvents"]
    return found


def _ns(text: str) -> int:
    whole, decimals = text.split(".")
    assert len(decimals) == 3
    return int(whole + decimals)


def _added(path: Path) -> list[dict[str, Any]]:
    return [row for row in _rows(path) if row.get("cat") == ADDED]


def _ledgers(path: Path) -> list[Counter[str]]:
    """Nanoseconds per label of each ledger track."""
    tracks = {(row["pid"], row["tid"]) for row in _added(path) if row["args"].get("name") == "ledger"}
    found: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for row in _added(path):
        if row["ph"] == "X" and (row["pid"], row["tid"]) in tracks:
            found[row["pid"], row["tid"]][row["name"]] += _ns(row["dur"])
    return list(found.values())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Kernels at 20 and 70 us of 40 and 20 us: a window of 70 us with a gap of 10 us, launched at 62 us."""
    b = TraceBuilder().run("gemm", (10, 5), (20, 40)).run("relu", (62, 5), (70, 20))
    return b.write(tmp_path / "trace.json")


def test_the_ledger_of_a_trace_worked_out_by_hand(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    export_file(trace, out)
    rows = _added(out)
    (ledger,) = _ledgers(out)
    assert ledger["Computation"] == 60_000
    assert sum(ledger.values()) == 70_000
    offset = 2_500_000_000_000
    busy = [(_ns(row["ts"]) - offset * 1000, _ns(row["dur"])) for row in rows if row["name"] == "Computation"]
    assert busy == [(20_000, 40_000), (70_000, 20_000)]
    queue = [(_ns(row["ts"]) - offset * 1000, row["args"]["launches"]) for row in rows if row["ph"] == "C"]
    assert queue == [(10_000, 1), (20_000, 0), (62_000, 1), (70_000, 0)]
    gaps = [row for row in rows if row["args"].get("rank by length") == 1]
    assert [(row["args"]["before"], row["args"]["ended by"]) for row in gaps] == [("gemm", "relu")]


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_stay_and_figures_too(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json.gz"
    export_file(SHARED / name, out)
    before, after = _text(SHARED / name), _text(out)
    head, _, events = before.partition('"traceEvents": [')
    assert after.endswith(events)
    assert after.partition("{")[2].partition(",\n")[2].startswith(head.lstrip().removeprefix("{")[:200])
    assert figures_of(Trace.load(out)).places == figures_of(Trace.load(SHARED / name)).places
    report = build_report(Trace.load(SHARED / name))
    expected = {row["owner"]: row["ns"] for row in report.ledger.iter_rows(named=True) if row["ns"]}
    (ledger,) = _ledgers(out)
    assert ledger == expected


@pytest.mark.parametrize("name", SAMPLES[:1])
def test_added_rows_are_well_formed(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    export_file(SHARED / name, out)
    theirs = {value for row in _rows(SHARED / name) for value in (row.get("pid"), row.get("tid"))}
    slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for row in _added(out):
        assert set(row) == {"ph", "cat", "name", "pid", "tid", *_FIELDS[row["ph"]]}
        assert {row["pid"], row["tid"]}.isdisjoint(theirs)
        if row["ph"] == "X":
            slices[row["pid"], row["tid"]].append((_ns(row["ts"]), _ns(row["dur"])))
        elif row["ph"] == "C":
            assert all(isinstance(value, int) for value in row["args"].values())
    assert slices
    for lane in slices.values():
        ordered = sorted(lane)
        assert all(a + d <= b for (a, d), (b, _) in pairwise(ordered))


def test_exporting_again_replaces_the_tracks(trace: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    export_file(trace, first)
    export_file(first, second)
    assert _text(second) == _text(first)
    rewritten = tmp_path / "rewritten.json"
    document = json.loads(_text(first))
    document["traceEvents"].sort(key=lambda row: str(row.get("ts", "")))
    rewritten.write_text(json.dumps(document))
    with pytest.raises(NotATraceError, match="another program"):
        export_file(rewritten, tmp_path / "third.json")


def test_a_bare_list_stays_one(trace: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(json.loads(_text(trace))["traceEvents"]))
    export_file(bare, tmp_path / "out.json")
    assert isinstance(json.loads(_text(tmp_path / "out.json")), list)
    assert sum(_ledgers(tmp_path / "out.json")[0].values()) == 70_000


def test_hostile_names_are_inert(tmp_path: Path) -> None:
    b = TraceBuilder()
    for i, name in enumerate(HOSTILE):
        b.run(name, (10 + 100 * i, 5), (20 + 100 * i, 40))
    export_file(b.write(tmp_path / "trace.json"), tmp_path / "out.json")
    added = json.dumps(_added(tmp_path / "out.json"), ensure_ascii=False)
    assert not {"\x1b", "\u202e", "\x07"} & set(added)


def test_command_and_its_refusals(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json.gz"
    done = run("export", trace, "-o", out)
    assert (done.returncode, "ledger slices that add" in done.stdout) == (0, True), done.stderr
    assert run("export", trace, "-o", out).returncode == 0  # it is ours
    (tmp_path / "other.json").write_text("{}")
    no_device = TraceBuilder().op("aten::add", 10, 5).write(tmp_path / "cpu.json")
    for arguments in (
        ("export", trace, "-o", trace),
        ("export", trace, "-o", tmp_path / "other.json"),
        ("export", trace, "-o", tmp_path / "out.txt"),
        ("export", no_device, "-o", tmp_path / "none.json"),
        ("export", tmp_path / "missing.json", "-o", tmp_path / "none.json"),
    ):
        refused = run(*arguments)
        assert (refused.returncode, refused.stderr.count("Error: "), refused.stderr.count("Hint: ")) == (2, 1, 1)
    assert not (tmp_path / "none.json").exists()
