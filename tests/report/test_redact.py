"""`--redact` keeps its word: no secret in any output, and the figures stay what they were."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from msgspec.structs import replace

from analyze import schema
from analyze.compare import comparable_of, compare, line_up, read_comparable
from analyze.compare.gates import parse_gate
from analyze.compare.judged import JudgedReport, judged_report
from analyze.compare.junit import render as junit
from analyze.compare.redacted import redacted_comparable
from analyze.report import build_report, render
from analyze.report.brief import brief
from analyze.report.redact import Redaction, redacted
from analyze.report.redact.paths import cut_paths
from analyze.report.redact.snapshots import redacted_snapshot
from analyze.report.redact.traces import columns, redacted_trace
from analyze.report.snapshot import build_snapshot_report
from analyze.snapshot import Snapshot
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.secrets import MARK, SECRETS, leaves, planted
from tests.snapshot.conftest import write_pickle
from tests.synthetic.allocator import MIB, Allocator, snapshot
from tests.test_cli import run

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "sample_traces").glob("*.json.gz"))
DOCS = ROOT / "analyze" / "docs" / "redaction.md"
FORMATS = ("terminal", "md", "json")


def secret_trace(secret: str, function: str = "run") -> TraceBuilder:
    """A trace with a secret in every text that is no name of an op, a kernel, an API call, a range or a function."""
    b = TraceBuilder()
    b.metadata |= {"hostname": secret, "trace_id": secret, secret: secret, "distributedInfo": {"backend": secret}}
    b.metadata["deviceProperties"][0] |= {"name": secret, "uuid": secret}
    b.metadata["gpuledger"] = {
        **dict.fromkeys(("model", "model_source", "precision", "dtype", "recorded_at"), secret),
        "tool": {"name": secret}, "versions": {"torch": secret}, "environment": {"USER": secret},
        "warmup": {"steady": False, "reason": secret}, "gpu_state": {"unstable": [secret]}, "batch_size": 8,
    }  # fmt: skip
    b.row(None, "process_name", 0, 0, ph="M", name_=secret).row(secret, "odd", 1, 2).row(
        "cpu_op", "odd", 1, 2, ph=secret
    )
    b.overhead(secret, 3, 1).row("Trace", secret, 0, 900, pid=secret, tid=secret)
    for i, tid in enumerate((secret, f"{secret} 2")):
        at = 100 * i
        dims = {"Input_Dims": [[2, 3], secret], "Input_type": ["float", secret], "Concrete_Inputs": [secret, "[1, 1]"]}
        b.row(
            "cpu_op", "aten::conv2d", at, 90, pid=secret, tid=tid, **{k.replace("_", " "): v for k, v in dims.items()}
        )
        b.row("python_function", f"/{secret}/m.py(12): run", at, 80, pid=secret, tid=tid)
        b.row("python_function", f"{secret}(12): {function}", at + 1, 70, pid=secret, tid=tid)
        b.row("python_function", f"{secret} is no frame", at + 2, 60, pid=secret, tid=tid)
        b.row("python_function", f"nn.Module: {function}_0", at + 3, 50, pid=secret, tid=tid)
        b.row("cuda_runtime", "cudaLaunchKernel", at + 10, 5, pid=secret, tid=tid, correlation=7 + i)
        b.kernel(
            "gemm",
            at + 20,
            40,
            correlation=7 + i,
            grid=secret,
            block=[secret, 1],
            stuff=secret,
            **{"Collective name": secret, "dtype": secret, "In msg nelems": 4},
        )
    b.kernel("stray", 300, 5, stream=9).rows[-1]["pid"] = f"[{secret}] 0"
    return b


def outputs(report: Any) -> dict[str, str]:
    found = {form: render(report, form) for form in FORMATS}
    found["brief"] = brief(report)
    if isinstance(report, JudgedReport):
        found["junit"] = junit(report)
    return found


def check(found: dict[str, str], secret: str) -> None:
    for form, text in found.items():
        at = text.lower().find(MARK)
        assert at < 0, (form, secret, text[max(at - 120, 0) : at + 60])


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_of_a_trace_is_in_any_output(secret: str, names: bool, tmp_path: Path) -> None:
    trace = Trace.load(secret_trace(secret, secret if names else "run").write(tmp_path / "trace.json"))
    plain = build_report(trace)
    assert MARK in render(plain, "json").lower(), "the secret was planted where a report would show it"
    report = build_report(redacted_trace(trace, Redaction(names=names)))
    check(outputs(judged_report(report, None, (parse_gate("idle_share > 1%"),), top=10)), secret)


FOLDERS = [secret for secret in SECRETS if re.search(r"[\\/]x$", secret)]


@pytest.mark.parametrize("secret", [*FOLDERS, "ann@qzx.example.com"])
def test_no_folder_or_host_of_a_kept_name_is_in_any_output(secret: str, tmp_path: Path) -> None:
    b = TraceBuilder().step(1, 0, 900).annotation(f"load {secret}.pt", 5, 400).op(f"read {secret}.bin", 30, 100)
    b.run(f"kernel of {secret}.cu", (10, 5), (20, 10), api=f"{secret}.launch").run("gemm", (200, 5), (300, 10))
    report = build_report(redacted_trace(Trace.load(b.write(tmp_path / "trace.json")), Redaction()))
    check(outputs(report), secret)
    assert "x.bin" in render(report, "json") or "@" in secret


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("aten::div", "aten::div"),
        ("forward/backward", "forward/backward"),
        ("void cutlass::f<a/b>(int)", "void cutlass::f<a/b>(int)"),
        ("a/b c", "a/b c"),
        ("operator/", "operator/"),
        ("load /home/ann/my files/w.pt now", "load w.pt now"),
        ("src/private/model.py", "model.py"),
    ],
)
def test_a_kept_name_loses_its_folders_and_nothing_else(name: str, left: str) -> None:
    assert cut_paths(name) == left


def test_pseudonyms_are_stable_and_say_nothing(tmp_path: Path) -> None:
    b = TraceBuilder().annotation("my model", 0, 90).annotation("my loss", 100, 90).annotation("my model", 200, 90)
    b.annotation("ProfilerStep#1", 0, 300).frame("/home/ann/m.py(3): train_secretly", 5, 80)
    b.run("gemm", (10, 5), (20, 10)).run("gemm", (210, 5), (220, 10))
    trace = redacted_trace(Trace.load(b.write(tmp_path / "gpu7.example.com_4127.1766000000000.pt.trace.json")),
                           Redaction(names=True))  # fmt: skip
    assert trace.ranges["name"].cast(pl.String).to_list() == ["range-1", "range-2", "range-1", "ProfilerStep#1"]
    assert trace.frames["name"].cast(pl.String).to_list() == ["m.py(3): function-1"]
    assert trace.name == trace.path == "host-1_process-1.pt.trace.json"


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name[:24])
def test_figures_stay(path: Path, names: bool) -> None:
    trace = Trace.load(path)
    before, after = (build_report(one) for one in (trace, redacted_trace(trace, Redaction(names=names))))
    assert before.metrics == after.metrics
    assert before.verdict.id == after.verdict.id
    assert [f.id for f in before.diagnosis.findings] == [f.id for f in after.diagnosis.findings]
    assert [device.idle for device in before.measures.devices] == [device.idle for device in after.measures.devices]


def secret_snapshot(secret: str, function: str) -> dict[str, Any]:
    allocator = Allocator()
    frames = [
        {"name": function, "filename": f"/{secret}/m.py", "line": 3},
        {"name": "forward", "filename": f"{secret}", "line": 4},
        {"name": f"/{secret}/m.py(12): run", "filename": "", "line": 0},
    ]
    allocator.annotate("step" if function == "run" else secret, start=True)
    allocator.allocate(3 * MIB, frames, label=secret)
    document = snapshot(allocator, settings={secret: secret, "PYTORCH_CUDA_ALLOC_CONF": secret, "max_split_size": 1})
    events = document["device_traces"][0]
    events.append({**events[-1], "action": secret})
    for event in events:
        event["compile_context"] = secret
    document[secret] = secret
    for segment in document["segments"]:
        segment["segment_type"] = secret
    return document


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_of_a_snapshot_is_in_any_output(secret: str, names: bool, tmp_path: Path) -> None:
    document = secret_snapshot(secret, secret if names else "run")
    loaded = Snapshot.load(write_pickle(document, tmp_path / "s.pickle"))
    assert MARK in render(build_snapshot_report(loaded), "json").lower()
    check(outputs(build_snapshot_report(redacted_snapshot(loaded, Redaction(names=names)))), secret)


KEPT = ("name", "op")  # of activities, ops and products; a step's name is not kept


def is_kept(path: tuple[Any, ...], names: bool) -> bool:
    if path in (("trace", "name"), ("tool", "name"), ("schema_version",)):
        return True  # the file's own name; without the others it is no report of ours
    if path == ("trace", "selection"):
        return not names
    return path[0] in ("activity_times", "ops", "roofline") and path[-1] in KEPT


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_of_a_stored_report_is_in_any_output(secret: str, names: bool, tmp_path: Path) -> None:
    report = build_report(Trace.load(SAMPLES[1]))
    document = json.loads(render(report, "json"))
    stored = tmp_path / "report.json"
    changed = planted(document, secret, lambda path: not is_kept(path, names))
    changed["metrics"][secret] = {"value": 1, "unit": secret, "better": secret, "of": secret}
    changed["definitions"][secret] = 1
    for ledger in changed["step_ledgers"]:
        ledger["categories"][secret] = 5
    stored.write_text(json.dumps(changed))
    subject = read_comparable(stored)
    assert subject is not None
    assert MARK in str(msgspec.to_builtins(subject)).lower()
    safe = redacted_comparable(subject, Redaction(names=names))
    assert MARK not in str(msgspec.to_builtins(safe)).lower()
    fresh = redacted_comparable(comparable_of(report), Redaction(names=names))
    safe = replace(safe, definitions=fresh.definitions)  # with another definition they cannot be compared
    check(outputs(compare(safe, fresh)), secret)
    check(outputs(line_up([safe, fresh, fresh], ["a", "b", "c"])), secret)


def test_the_docs_name_every_field() -> None:
    """The table in the docs is the contract: a column of text that it does not name has no rule."""
    docs = DOCS.read_text(encoding="utf-8")
    rules = columns(Redaction())
    tables = {"ops": schema.OPS, "runtime": schema.RUNTIME, "activities": schema.ACTIVITIES, "ranges": schema.RANGES,
              "frames": schema.FRAMES, "overhead": schema.OVERHEAD, "spans": schema.SPANS, "memory": schema.MEMORY,
              "threads": schema.THREADS}  # fmt: skip
    for table, fields in tables.items():
        for column in fields:
            if column.dtype in (pl.String, pl.Categorical):
                assert (table, column.name) in rules, f"{table}.{column.name} has no rule"
                assert f"`{table}.{column.name}`" in docs, f"{table}.{column.name} is not in the docs"


def test_the_command_line_redacts(tmp_path: Path) -> None:
    folder = tmp_path / "qzx place"
    folder.mkdir()
    path = secret_trace(SECRETS[1]).annotation("my range", 0, 95).write(folder / "trace.json")
    base = folder / "base.json"
    assert run(path, "-o", base).returncode == 0
    for args in (("--redact",), ("--redact-names", "--range", "my range"), ("--redact", "--baseline", base)):
        for form in FORMATS:
            done = run(path, *args, "--report", form)
            assert done.returncode == 0, done.stderr
            assert MARK not in (done.stdout + done.stderr).lower()
            assert ("my range" in done.stdout) <= ("--redact-names" not in args)
    done = run("compare", path, base, "--redact")
    assert (done.returncode, MARK in (done.stdout + done.stderr).lower()) == (0, False)


def test_redacting_twice_changes_nothing(tmp_path: Path) -> None:
    report = build_report(redacted_trace(Trace.load(SAMPLES[0]), Redaction()))
    assert render(redacted(report), "json") == render(redacted(redacted(report)), "json")
    assert list(leaves({"a": ["b"]})) == [(("a", 0), "b")]
