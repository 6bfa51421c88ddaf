"""Reading: layouts, dialects, damage. What is whole is kept, what is lost is counted and said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyze import schema
from analyze.errors import DamagedTraceError, GpuledgerError, NotATraceError, UnreadableError
from analyze.trace import Trace
from analyze.trace.read import Recording, read
from tests.builder import TraceBuilder
from tests.synthetic.vit import Plan, simulate


def big() -> dict[str, Any]:
    """A document of several pieces."""
    machine = simulate(Plan(steps=6, batch=8))
    return dict(json.loads(machine.writer.document((0, machine.now))))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return big()


@pytest.fixture(scope="module")
def expected(document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("plain") / "plain.json"
    path.write_text(json.dumps(document))
    return read(path)


def same(a: Recording, b: Recording) -> None:
    for name, frame in a.frames.items():
        assert frame.equals(b.frames[name]), name


LAYOUTS = {
    "kineto": lambda d: simulate(Plan(steps=6, batch=8)).writer.document((0, 10**9)),
    "compact": lambda d: json.dumps(d, separators=(",", ":")),
    "indent 1": lambda d: json.dumps(d, indent=1),
    "indent 4": lambda d: json.dumps(d, indent=4),
    "tabs": lambda d: json.dumps(d, indent="\t"),
    "CRLF": lambda d: json.dumps(d, indent=2).replace("\n", "\r\n"),
    "bare list": lambda d: json.dumps(d["traceEvents"]),
    "bare list without end": lambda d: json.dumps(d["traceEvents"])[:-1],
    "metadata last": lambda d: json.dumps(
        {"traceEvents": d["traceEvents"], **{k: v for k, v in d.items() if k != "traceEvents"}}
    ),
    "sorted keys": lambda d: json.dumps(d, sort_keys=True),
    "nested": lambda d: json.dumps({"traceEvents": {"traceEvents": d["traceEvents"]}}),
    "BOM": lambda d: "\ufeff" + json.dumps(d),
    "leading blanks": lambda d: "\n\n  " + json.dumps(d),
    "metadata that looks like events": lambda d: json.dumps({**d, "zz": [{"name": "x"}, {"name": "}, {"}] * 50_000}),
    "boundary text in names": lambda d: json.dumps(
        {
            **d,
            "traceEvents": [
                {
                    "ph": "X",
                    "cat": "cpu_op",
                    "name": 'a}, {"b',
                    "pid": 1,
                    "tid": 1,
                    "ts": 1,
                    "dur": 1,
                    "args": {"l": [{}, {}]},
                },
                *d["traceEvents"],
            ],
        }
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows(
    layout: str, document: dict[str, Any], expected: Recording, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(LAYOUTS[layout](document).encode())
    found = read(path)
    for name in ("activities", "runtime", "ranges"):
        assert found.frames[name].height == expected.frames[name].height, name
        columns = [c for c in found.frames[name].columns if c not in ("thread",)]
        if layout not in ("kineto",):
            assert found.frames[name].select(columns).equals(expected.frames[name].select(columns)), name
    assert found.cut is (layout == "bare list without end")


def test_gzip_by_content_not_by_suffix(document: dict[str, Any], expected: Recording, tmp_path: Path) -> None:
    data = json.dumps(document).encode()
    half = len(data) // 2
    for name, packed in {
        "packed.json": gzip.compress(data),
        "members.gz": gzip.compress(data[:half]) + gzip.compress(data[half:]),
        "padded.gz": gzip.compress(data) + b"\0" * 512,
        "plain.json.gz": data,
    }.items():
        (tmp_path / name).write_bytes(packed)
        same(read(tmp_path / name), expected)


def test_other_compression(document: dict[str, Any], expected: Recording, tmp_path: Path) -> None:
    import zipfile

    zstandard = pytest.importorskip("zstandard")
    data = json.dumps(document).encode()
    (tmp_path / "a.zst").write_bytes(zstandard.compress(data))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme.txt", "not the trace")
        archive.writestr("worker0.pt.trace.json", data)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("trace.json.gz", gzip.compress(data))
    for name in ("a.zst", "a.zip", "b.zip"):
        same(read(tmp_path / name), expected)
    cut = zstandard.compress(data)
    (tmp_path / "cut.zst").write_bytes(cut[: len(cut) // 2])
    assert read(tmp_path / "cut.zst").cut


def test_archives_without_exactly_one_trace(tmp_path: Path) -> None:
    import zipfile

    for count in (0, 2):
        with zipfile.ZipFile(tmp_path / f"{count}.zip", "w") as archive:
            archive.writestr("notes.txt", "x")
            for i in range(count):
                archive.writestr(f"{i}.json", "[]")
        with pytest.raises(NotATraceError, match=r"no trace|2 traces"):
            read(tmp_path / f"{count}.zip")
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(UnreadableError, match="damaged zip"):
        read(tmp_path / "bad.zip")


@pytest.mark.parametrize("trusted", [False, True])
def test_a_zip_bomb_is_refused_unless_it_is_trusted(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from analyze.trace import unpack

    monkeypatch.setattr(unpack, "BOMB_FREE_BYTES", 1 << 22)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (40 << 20) + b'{"ph": "X", "cat": "cpu_op"}]}'))
    if trusted:
        assert read(path, trusted=True).frames["ops"].height == 1
        return
    with pytest.raises(UnreadableError, match="zip bomb") as caught:
        read(path)
    assert "--trust-size" in str(caught.value)


def test_the_standard_library_unpacks_the_same(
    document: dict[str, Any], expected: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zlib

    from analyze.trace import unpack

    monkeypatch.setattr(unpack, "_fast_zlib", lambda: zlib)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    same(read(tmp_path / "t.json.gz"), expected)


def test_lone_surrogates(document: dict[str, Any], expected: Recording, tmp_path: Path) -> None:
    text = json.dumps(document).replace('"aten::linear"', '"a\\ud800b"', 2)
    (tmp_path / "t.json").write_text(text)
    assert read(tmp_path / "t.json").frames["ops"].height == expected.frames["ops"].height


@pytest.fixture(scope="module")
def several_megabytes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    machine = simulate(Plan(steps=30, batch=8))
    path = machine.writer.write(tmp_path_factory.mktemp("large") / "large.json", (0, machine.now))
    assert path.stat().st_size > 3 << 20
    return path


@pytest.mark.parametrize("jobs", [2, 3])
def test_several_processes_read_the_same(jobs: int, several_megabytes: Path) -> None:
    alone = read(several_megabytes, jobs=1)
    together = read(several_megabytes, jobs=jobs)
    same(together, alone)
    assert (together.sha256, together.size_bytes, together.metadata) == (alone.sha256, alone.size_bytes, alone.metadata)
    assert together.notices == alone.notices


@pytest.mark.parametrize("harm", ["cut", "metadata after", "damaged", "not at line breaks"])
def test_several_processes_or_one_make_no_difference(harm: str, several_megabytes: Path, tmp_path: Path) -> None:
    """What the second process cannot read as events, one process reads alone."""
    text = several_megabytes.read_text()
    if harm == "cut":
        text = text[: int(len(text) * 0.9)]
    elif harm == "metadata after":
        text = text.rstrip()[:-1] + ', "zz": ' + json.dumps([{"a": 1}] * 300_000, indent=2) + "}"
    elif harm == "damaged":
        text = text.replace('"aten::linear"', '"<frozen "x">"')
    else:
        text = json.dumps(json.loads(text))
    path = tmp_path / "t.json"
    path.write_text(text)
    together, alone = read(path, jobs=2), read(path, jobs=1)
    same(together, alone)
    assert together.notices == alone.notices


def test_a_cut_gzip_gives_its_first_part(document: dict[str, Any], tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(document).encode())
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    found = read(path)
    assert found.cut
    assert 0 < found.frames["activities"].height < 6 * 130
    assert any(n.id == "file-cut" and "first part only" in n.text for n in found.notices)


@pytest.mark.parametrize("keep", [0.35, 0.6, 0.999])
def test_a_cut_document_keeps_every_whole_event(keep: float, document: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(document)
    cut = text[: int(len(text) * keep)]
    path = tmp_path / "cut.json"
    path.write_text(cut)
    found = read(path)
    whole = cut.count('"cat": "kernel"') - (not cut.rstrip().endswith("}"))
    assert abs(found.frames["activities"].filter(pl.col("kind") == "kernel").height - whole) <= 1
    assert found.cut
    assert next(n.id for n in found.notices) == "file-cut"


DAMAGE = {
    "unescaped quote": ('"name": "aten::linear"', '"name": "<frozen "x">: f"'),
    "line break": ('"name": "aten::linear"', '"name": "a\nb"'),
    "control character": ('"name": "aten::linear"', '"name": "a\x01b"'),
    "Windows path": ('"name": "aten::linear"', '"name": "C:\\code\\_x.py: f"'),
    "bare hexadecimal": ('"cbid": 211', '"cbid": 211, "ptr": 0x7f001'),
    "infinity": ('"cbid": 211', '"cbid": 211, "bw": inf'),
    "not a number": ('"cbid": 211', '"cbid": 211, "bw": NaN'),
    "trailing comma": ('"cbid": 211', '"cbid": 211,'),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_only_the_damaged_event_pays(kind: str, document: dict[str, Any], expected: Recording, tmp_path: Path) -> None:
    """Every event survives with its times; names of damaged ones are approximate, and that is counted."""
    sound, broken = DAMAGE[kind]
    text = json.dumps(document, indent=2)
    if kind == "trailing comma":
        text = json.dumps(document).replace(
            '"cbid": 211, "correlation": 4001}', '"cbid": 211, "correlation": 4001,}', 1
        )
    else:
        text = text.replace(sound, broken, 3)
    path = tmp_path / "damaged.json"
    path.write_text(text)
    found = read(path)
    for name in ("ops", "runtime", "activities", "ranges"):
        assert found.frames[name].height == expected.frames[name].height, name
        assert found.frames[name]["start_ns"].equals(expected.frames[name]["start_ns"]), name
    ids = [n.id for n in found.notices]
    assert "events-lost" not in ids
    assert not found.cut


def test_bad_utf8_in_a_name(document: dict[str, Any], expected: Recording, tmp_path: Path) -> None:
    data = json.dumps(document).encode().replace(b'"aten::linear"', b'"aten\xb9\xfe"', 2)
    (tmp_path / "t.json").write_bytes(data)
    found = read(tmp_path / "t.json")
    assert found.frames["ops"].height == expected.frames["ops"].height
    assert [(n.id, n.count) for n in found.notices] == [("events-mended", 2)]


def test_an_event_beyond_repair_is_lost_alone_and_counted(
    document: dict[str, Any], expected: Recording, tmp_path: Path
) -> None:
    text = json.dumps(document).replace('"name": "aten::linear", "pid"', '"name" aten::linear", "pid"', 1)
    (tmp_path / "t.json").write_text(text)
    found = read(tmp_path / "t.json")
    assert found.frames["ops"].height == expected.frames["ops"].height - 1
    assert [(n.id, n.count) for n in found.notices] == [("events-lost", 1)]


def test_interleaved_ranks_are_refused_with_the_cause(document: dict[str, Any], tmp_path: Path) -> None:
    events = [json.dumps(e) for e in document["traceEvents"]]
    mixed = [a[: len(a) // 2] + b + a[len(a) // 2 :] for a, b in zip(events[::2], events[1::2], strict=False)]
    (tmp_path / "t.json").write_text('{"traceEvents": [' + ", ".join(mixed) + "]}")
    with pytest.raises(DamagedTraceError) as caught:
        read(tmp_path / "t.json")
    assert "ranks writing to one path" in str(caught.value)


OTHER_KINDS = {
    "a PNG image": b"\x89PNG\r\n\x1a\n",
    "Python pickle": b"\x80\x04\x95abc",
    "SQLite": b"SQLite format 3\0",
    "HTML": b"<!doctype html>",
    "text, not JSON": b"hello",
    "binary data": b"\x01\x02\x00\x03",
    "execution trace": b'{"schema": "1.1.0", "nodes": []}',
    "rocprofv3": b'{"rocprofiler-sdk-tool": [{}]}',
    "without `traceEvents`": b'{"a": 1}',
    "UTF-16": '{"traceEvents": []}'.encode("utf-16"),
    "Perfetto protobuf": b"\x0a\x9f\x01",
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_other_kinds_are_named(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_bytes(OTHER_KINDS[kind])
    with pytest.raises(NotATraceError) as caught:
        read(tmp_path / "file.json")
    assert kind in caught.value.message
    assert caught.value.hint


def test_empty_missing_and_folder(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "empty.json.gz").write_bytes(gzip.compress(b""))
    for name, said in {
        "empty.json": "0 bytes",
        "empty.json.gz": "0 bytes after gunzip",
        "none.json": "not exist",
    }.items():
        with pytest.raises(UnreadableError, match=said):
            read(tmp_path / name)
    with pytest.raises(GpuledgerError, match="folder") as caught:
        read(tmp_path)
    assert "without a trace" in str(caught.value), "empty files are no traces"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"traceEvents": []}', "a trace without events"),
        ('{"schemaVersion": 1, "traceEvents": [\n  ],\n  "traceName": "t.json"\n}', "a trace without events"),
        ("[]", "an empty JSON list"),
        ("{}\n", "an empty JSON object"),
        ('{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "x"}}]}', "metadata rows"),
        ('{"traceEvents": [{"ph": "B", "name": "a", "ts": 1}, {"ph": "E", "ts": 2}]}', "none of its 2 events"),
    ],
)
def test_a_trace_without_events_gets_no_verdict(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(NotATraceError) as caught:
        Trace.load(tmp_path / "t.json")
    assert what in caught.value.message
    assert caught.value.hint


def test_old_and_odd_rows(tmp_path: Path) -> None:
    """PyTorch 1.8 spellings, device and stream without args, values of any type."""
    rows = [
        {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 5, "tid": "77", "ts": 10, "dur": 9, "args": None},
        {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 77, "ts": 11, "dur": 2,
         "args": {"external id": "12", "correlation": "31"}},
        {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 20, "dur": 3,
         "args": {"correlation": 31.0, "bytes": "N/A"}},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 24, "dur": 1,
         "args": {"bytes": "64", "correlation": 0}},
        {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 1, "tid": 7, "ts": "25.5", "dur": "1.25",
         "args": []},
        {"ph": "X", "cat": "kernel", "name": 17, "pid": 1, "tid": 7, "ts": 30, "dur": -4, "args": {"stream": None}},
        {"ph": "X", "cat": "kernel", "name": "0/0", "pid": 1, "tid": 7, "ts": 0, "dur": 0, "args": {}},
        {"ph": "X", "cat": "kernel", "name": "no dur", "pid": 1, "tid": 7, "ts": 40, "args": {}},
        "not an object",
        {"ph": "X", "cat": "kernel", "name": "last", "pid": 1, "tid": 7, "ts": 50, "dur": 1,
         "args": {"External id": 2**64 - 1, "correlation": 2**70}},
    ]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    trace = Trace.load(tmp_path / "t.json")
    found = {row["name"]: row for row in trace.activities.iter_rows(named=True)}
    assert (found["k"]["device"], found["k"]["stream"], found["k"]["launch"]) == (0, 7, 0)
    assert found["k"]["size_bytes"] is None
    assert found["Memcpy HtoD (Pinned -> Device)"]["size_bytes"] == 64
    assert found["Memcpy HtoD (Pinned -> Device)"]["correlation"] is None
    assert (found["Memset (Device)"]["start_ns"], found["Memset (Device)"]["dur_ns"]) == (25_500, 1_250)
    assert found["17"]["dur_ns"] == 0
    assert not found["0/0"]["timed"]
    assert not found["no dur"]["timed"]
    assert found["last"]["external_id"] == -1, "unsigned ids keep their bits"
    assert found["last"]["correlation"] is None
    assert trace.runtime["external_id"].to_list() == [12]
    assert [(n.id, n.count) for n in trace.notices] == [("events-lost", 1), ("odd-values", 2)]
    assert "correlation (1, such as a number of 71 bits), dur below 0 (1, such as -4.0)" in trace.notices[1].text


def test_absolute_times_with_fractions_are_exact(tmp_path: Path) -> None:
    """16 digits before the point: float64 keeps quarters of a microsecond only."""
    rows = [
        f'{{"ph":"X","cat":"kernel","name":"k{i}","pid":0,"tid":7,"ts":1712195495406752.{i:03d},"dur":0.001,"args":{{}}}}'
        for i in range(0, 1000, 7)
    ]
    (tmp_path / "t.json").write_text('{"traceEvents":[' + ",".join(rows) + "]}")
    starts = Trace.load(tmp_path / "t.json").activities["start_ns"].to_list()
    assert starts == [1712195495406752_000 + i for i in range(0, 1000, 7)]


def test_frames_have_their_declared_schemas(tmp_path: Path) -> None:
    b = TraceBuilder().step(1, 0, 100).op("aten::mm", 1, 20).run("k", (5, 3), (12, 4)).frame("f.py(1): g", 0, 50)
    trace = Trace.load(b.write(tmp_path / "t.json"))
    declared = {
        "threads": schema.THREADS, "ops": schema.OPS, "runtime": schema.RUNTIME, "activities": schema.LINKED,
        "launches": schema.LAUNCHES, "ranges": schema.RANGES, "frames": schema.FRAMES, "overhead": schema.OVERHEAD,
        "spans": schema.SPANS, "memory": schema.MEMORY, "steps": schema.STEPS,
    }  # fmt: skip
    for name, columns in declared.items():
        frame = getattr(trace, name)
        assert frame.schema == pl.DataFrame(schema=schema.dtypes(columns)).schema, name


def test_credentials_in_metadata_go_nowhere(tmp_path: Path) -> None:
    from analyze.report import build_report, render

    b = TraceBuilder().run("k", (5, 3), (12, 4))
    b.metadata |= {"env": {"HF_TOKEN": "hf_secret"}, "host_name": "secret-host", "username": "secret-user"}
    report = build_report(Trace.load(b.write(tmp_path / "t.json")))
    for name in ("terminal", "md", "json"):
        assert "secret" not in render(report, name)


def test_what_a_process_group_wrote_on_its_kernels(tmp_path: Path) -> None:
    """Name, elements and type of a collective; text as a number, and a list where a name should stand, harm nothing."""
    b = TraceBuilder()
    told = {"Collective name": "allreduce", "In msg nelems": 57, "Out msg nelems": "57", "dtype": "Float"}
    b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 5, **told)
    b.kernel("k", 10, 5).kernel("no_collective", 20, 5, **{"In msg nelems": 3, "dtype": "Float"})
    b.kernel("odd", 30, 5, **{"Collective name": ["x"], "In msg nelems": [], "dtype": {}})
    columns = ("collective", "in_elements", "out_elements", "element_type")
    rows = Trace.load(b.write(tmp_path / "t.json")).activities.select(columns).rows()
    assert rows == [("allreduce", 57, 57, "Float"), (None,) * 4, (None,) * 4, (None,) * 4]
