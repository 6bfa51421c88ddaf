"""Files that are not ours: each is named in one sentence, says where the trace would be, and gets no verdict."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.cli.main import cli, main
from analyze.errors import GpuledgerError, NotATraceError, UnreadableError
from analyze.trace import Trace
from analyze.trace.foreign_formats import tar_members
from tests.builder import TraceBuilder

Row = dict[str, Any]
STACKS = (
    "train.py(3):_<module> 12\n"
    "train.py(3):_<module>;torch/profiler/profiler.py(1204):___enter__ 2\n"
    "train.py(3):_<module>;model.py(77):_forward;torch/nn/modules/linear.py(134):_forward 5021\n"
)
RULE = "-" * 22 + "  " + "  ".join(["-" * 12] * 4)
TABLE = f"""{RULE}
                  Name    Self CPU %      Self CPU   CPU total %    # of Calls
{RULE}
           aten::randn         1.11%     306.195us        28.62%             1
{RULE}
Self CPU time total: 27.514ms
"""
LOG = 'V0401 12:00:00.123000 4127 torch/_logging/structured.py:28] {"str": ["train.py", 0]}\n'
NSYS_CSV = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n41.2,123456,10,12345.6,gemm\n"
AVERAGES_CSV = ",Name,Self CPU %,Self CPU,# of Calls\n0,aten::mm,1.1%,306.2us,1\n"
TIMES = [1796075025625550, 1796075025625640, 1796075025625730]


def onnx_runtime(*, session: bool) -> list[Row]:
    """Rows of ONNX Runtime's profiler; its Kernel rows have neither a device nor a correlation."""
    node = {"cat": "Node", "pid": 4, "tid": 4, "dur": 8, "ts": 93, "ph": "X", "name": "Conv_0_kernel_time", "args": {}}
    kernel = {**node, "cat": "Kernel", "name": "sgemm", "args": {"stream": "7", "grid_x": "8", "block_x": "256"}}
    return [*([{**node, "cat": "Session", "name": "model_run"}] if session else []), node, kernel]


def proton(*, kernels_only: bool) -> str:
    """Triton Proton's data="trace": kernels with a call stack; newer versions add scopes, lanes and a pid."""
    kernel = {"name": "matmul", "cat": "kernel", "ph": "X", "ts": 1.5, "dur": 8.2, "tid": 7}
    kernel |= {"args": {"call_stack": ["ROOT", "matmul"]}}
    scope = {"name": "forward", "cat": "scope", "ph": "X", "ts": 0.5, "dur": 9, "tid": 1, "pid": 0}
    scope |= {"args": {"call_stack": ["ROOT", "forward"]}}
    name = {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "Trace"}}
    rows = [kernel] if kernels_only else [name, scope, {**kernel, "pid": 0}]
    return json.dumps({"displayTimeUnit": "us", "traceEvents": rows}, separators=(",", ":")) + "\n"


def hatchet() -> str:
    leaf = {"children": [], "frame": {"name": "matmul", "type": "function"}, "metrics": {"count": 3, "time (ns)": 9322}}
    root = {"children": [leaf], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}}
    return json.dumps([root, {"CUDA": {"0": {"arch": "90"}}}])


def dynamo_events() -> str:
    """What tlparse writes as chromium_events.json: begin and end rows of compilation phases."""
    row = {"name": "entire_frame_compile", "ts": 1.5, "args": {}, "cat": "dynamo_timed", "tid": 0, "pid": 0}
    return json.dumps([{**row, "ph": "B"}, {**row, "ph": "E"}], indent=2)


def viztracer() -> str:
    row = {"pid": 17, "tid": 17, "ts": 20.06, "dur": 1.1, "name": "time.sleep", "ph": "X", "cat": "FEE"}
    return json.dumps({"traceEvents": [row], "viztracer_metadata": {"version": "1.0.4"}})


def tar(*names: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            data = b'{"traceEvents": []}' * 100
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return out.getvalue()


def sqlite(tmp_path: Path, table: str) -> bytes:
    path = tmp_path / "made.sqlite"
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE {table} (start INT, end INT)")
    base.close()
    return path.read_bytes()


def tfevents() -> bytes:
    """A TFRecord: length, its checksum, an Event with wall time and version, the checksum of that."""
    event = b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2"
    return struct.pack("<QI", len(event), 7) + event + struct.pack("<I", 7)


def xplane() -> bytes:
    """XSpace: field 1 is a plane with an id and a name."""
    plane = b"\x08\x02\x12\x0d/device:GPU:0" + b"\x00" * 20
    return b"\x0a" + bytes([len(plane)]) + plane


PERFETTO = b"\x0a\x0e\x52\x0c\x08\x01\x10\x02\x1a\x02\x08\x00\x50\x01\x58\x01"
SAME = "export_chrome_trace"

FILES: dict[str, tuple[str, str | bytes, str, str]] = {
    # what it is: name, content, words of the sentence, words of the hint
    "ONNX Runtime": ("ort.json", json.dumps(onnx_runtime(session=True)), "ONNX Runtime", SAME),
    "ONNX Runtime, cut in front": ("ort.json", json.dumps(onnx_runtime(session=False)), "ONNX Runtime", SAME),
    "Proton, sums": ("proton.hatchet", hatchet(), "Triton Proton (hatchet", SAME),
    "Proton, kernels": ("proton.chrome_trace", proton(kernels_only=True), "Triton Proton", SAME),
    "Proton, scopes": ("proton.chrome_trace", proton(kernels_only=False), "Triton Proton", SAME),
    "tlparse, events": ("chromium_events.json", dynamo_events(), "tlparse", SAME),
    "tlparse, log": ("raw.jsonl", '{"string_table": ["train.py"]}\n{"dynamo_start": {}}\n', "tlparse", SAME),
    "tlparse, pages": ("compile_directory.json", '{"0/0": {"artifacts": [{"url": "a.txt"}]}}', "tlparse", SAME),
    "tlparse, index": ("index.html", "<html><body><h1>Stack trie</h1></body></html>", "tlparse", SAME),
    "torch.compile's log": ("dedicated_log_torch_trace.log", LOG * 3, "log of torch.compile", SAME),
    "VizTracer": ("result.json", viztracer(), "VizTracer", SAME),
    "memory timeline": ("a.json", json.dumps([TIMES, [[0, 0, 4096, 0]] * 3]), "memory timeline", "profile_memory"),
    "its raw form": ("a.raw.json", json.dumps([[TIMES[0], 0, 4096, 3]]), "memory timeline", "_dump_snapshot"),
    "its raw form, before": ("a.json", "[[-1, 0, 4096, 3], [17, 1, -4096, 3]]", "memory timeline", "profile_memory"),
    "its empty form": ("a.json", "[[], []]", "memory timeline", "profile_memory"),
    "its page": ("a.html", "<html><head><title>GPU Memory Timeline HTML</title>", "memory timeline", "_dump_snapshot"),
    "stacks": ("stacks.txt", STACKS, "stacks as text (export_stacks", SAME),
    "one stack": ("stacks.txt", "train.py(3):_<module> 12\n", "stacks as text", SAME),
    "table": ("table.txt", TABLE, "key_averages().table()", SAME),
    "CSV of nsys": ("kernels.csv", NSYS_CSV, "a table in CSV", SAME),
    "CSV of averages": ("averages.csv", AVERAGES_CSV, "a table in CSV", SAME),
    "tar": ("run.tar", tar("run/notes.txt", "run/trace.json"), "a tar archive", "pass run/trace.json then"),
    "packed tar": ("run.tar.gz", gzip.compress(tar("t.json")), "a tar archive", "`tar xf run.tar.gz`; pass t.json"),
    "tar without a trace": ("run.tar", tar("run/notes.txt"), "a tar archive", "pass one trace"),
    "zip of two": ("run.zip", zipped("a.json", "b.json"), "zip archive with 2 traces", "pass a.json then"),
    "zip of none": ("run.zip", zipped("notes.txt"), "zip archive with no trace", "pass one trace"),
    "weights": ("model.pt", zipped("model/data.pkl", "model/data/0"), "torch.save", SAME),
    "TensorBoard": ("events.out.tfevents.17", tfevents(), "TensorBoard event file", "*.pt.trace.json"),
    "XPlane": ("host.xplane.pb", xplane(), "JAX or TensorFlow", SAME),
    "Perfetto": ("trace.pftrace", PERFETTO, "a Perfetto protobuf trace", "Chrome JSON"),
    "Nsight Systems": ("report1.nsys-rep", b"\x00\x01\x02\x03" * 9, "a report of Nsight Systems", "nsys stats"),
    "Nsight Compute": ("report1.ncu-rep", b"NVR\x00\x10\x00", "a report of Nsight Compute", "ncu --import"),
    "speedscope": ("p.json", '{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "speedscope", SAME),
    "a log": ("train.log", "[INFO] step 1, loss 3.2\n[INFO] step 2\n", "text, not JSON", SAME),
    "prose": ("notes.md", "# Notes\n\nThe run; it took 12\n", "text, not JSON", SAME),
    "text after a blank line": ("notes.txt", "\nhello there, all of you\n", "text, not JSON", SAME),
}  # fmt: skip


def refused(path: Path) -> tuple[str, str]:
    """Run `analyze` on a file: the sentence and the hint that it ends with."""
    with pytest.raises(GpuledgerError) as caught:
        cli.main([str(path)], standalone_mode=False)
    return caught.value.message, caught.value.hint or ""


def test_the_exit_code_is_2_and_nothing_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ort.json"
    path.write_text(json.dumps(onnx_runtime(session=True)))
    monkeypatch.setattr("sys.argv", ["analyze", str(path)])
    monkeypatch.setattr("gc.disable", lambda: None)
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    assert "ONNX Runtime" in err


@pytest.mark.parametrize("kind", FILES)
def test_each_is_named_and_says_what_to_pass(kind: str, tmp_path: Path) -> None:
    name, content, what, hint = FILES[kind]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    sentence, advice = refused(path)
    assert what in sentence
    assert sentence.startswith(name)
    assert sentence.endswith(".")
    assert hint in advice


@pytest.mark.parametrize("kind", ["Proton, sums", "memory timeline", "ONNX Runtime", "stacks", "VizTracer"])
def test_packed_and_under_another_name_they_are_named_alike(kind: str, tmp_path: Path) -> None:
    _, content, what, _ = FILES[kind]
    assert isinstance(content, str)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(content.encode()))
    with pytest.raises(NotATraceError) as caught:
        Trace.load(path)
    assert what in caught.value.message


def test_sqlite_exports(tmp_path: Path) -> None:
    for table, what in (("CUPTI_ACTIVITY_KIND_KERNEL", "Nsight Systems"), ("rocpd_op", "rocpd"), ("other", "SQLite")):
        path = tmp_path / f"{table}.sqlite"
        path.write_bytes(sqlite(tmp_path, table))
        (tmp_path / "made.sqlite").unlink()
        with pytest.raises(NotATraceError, match=what):
            Trace.load(path)


@pytest.mark.parametrize("address", ["https://example.com/trace.json.gz", "s3://bucket/trace.json"])
def test_an_address_is_no_missing_file(address: str) -> None:
    with pytest.raises(UnreadableError, match="is a URL") as caught:
        Trace.load(address)
    assert "Download" in str(caught.value.hint)


def test_a_folder_names_the_trace_below_it(tmp_path: Path) -> None:
    """Sniffed by content: the other JSON files of a run are not offered."""
    below = tmp_path / "runs" / "fp32"
    below.mkdir(parents=True)
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    (below / "run.json").write_text('{"latency": 1}')
    TraceBuilder().run("k", (5, 3), (12, 4)).write(below / "trace.json.gz")
    (below / "snapshot.pickle").write_bytes(b"\x80\x04")
    with pytest.raises(GpuledgerError) as caught:
        Trace.load(tmp_path)
    assert str(below / "trace.json.gz") in str(caught.value)
    assert "run.json" not in str(caught.value)
    assert "config.json" not in str(caught.value)


def test_a_folder_without_a_trace_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match=r"without \.json"):
        Trace.load(tmp_path)
    for name in ("compile_directory.json", "raw.jsonl"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "chromium_events.json").write_text(dynamo_events())
    with pytest.raises(NotATraceError, match="folder of tlparse"):
        Trace.load(tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        lambda b: b,
        lambda b: b.row("Node", "mine", 90, 5),
        lambda b: b.row("FEE", "time.sleep", 90, 5),
        lambda b: b.frame("call_stack.py(3): dynamo_timed", 80, 5),
    ],
    ids=["plain", "a Node row", "VizTracer with log_torch", "names like marks"],
)
def test_our_own_traces_stay_ours(make: Callable[[TraceBuilder], TraceBuilder], tmp_path: Path) -> None:
    b = make(TraceBuilder().op("aten::mm", 0, 20).run("k", (5, 3), (12, 4)))
    assert Trace.load(b.write(tmp_path / "trace.json")).activities.height == 1


def test_the_original_memory_timelines_and_the_one_of_onnx_runtime(shared: Path) -> None:
    (folder,) = shared.glob("cases/23-*")
    files = sorted(path for path in folder.iterdir() if path.suffix != ".md")
    assert len(files) == 4
    for path in files:
        sentence, hint = refused(path)
        assert "memory timeline of torch.profiler" in sentence
        assert "profile_memory=True" in hint
    (path,) = shared.glob("cases/27-*/*.json")
    assert "ONNX Runtime" in refused(path)[0]


def test_members_of_an_archive_are_read_from_its_first_bytes_only() -> None:
    assert tar_members(tar("a.txt", "b/c.json")) == ["a.txt", "b/c.json"]
    assert tar_members(tar("a.txt", "b/c.json")[:2048]) == ["a.txt"]
    assert tar_members(b"") == []


def test_what_is_sniffed_is_bounded(tmp_path: Path) -> None:
    """Hostile beginnings cost no more than others: long lines, a member of negative size, endless brackets."""
    evil = bytearray(tar("a.txt"))
    evil[124:136] = b"-0000001000\0"
    for content in (b"a;" * (1 << 20) + b" 1\n", b"(1):" * (1 << 19), bytes(evil), b"[" * (1 << 20), b"\x0a" * 99):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(GpuledgerError):
            Trace.load(tmp_path / "file")
