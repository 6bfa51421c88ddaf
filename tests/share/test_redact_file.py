"""`analyze redact`: no secret in the bytes, every figure as it was, nothing written where that cannot be shown."""

from __future__ import annotations

import gzip
import json
import os
import weakref
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from analyze import Trace, build_report
from analyze.errors import DamagedTraceError, OutputError, SelectionError
from analyze.report.share.proof import figures_of, prove_equal
from analyze.report.share.redact_file import redact_file
from analyze.report.share.shared import Sharing
from tests.builder import TraceBuilder
from tests.report.test_redact import secret_trace
from tests.secrets import MARK, SECRETS
from tests.test_cli import run

SHARED = Path(os.environ.get("GPULEDGER_SHARED", "../shared")) / "traces"
SMALL = ("a100_alexnet_sync_events", "first_schema_inference", "h100_bert_small", "mi250_toy_training")
FIGURES = ("h100_qwen_0_5b", "h100_vit_base_bf16", "mi300_sglang_decode", "mi300_vllm_decode_graph", "a100_triton")
SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.json.gz"))


def bytes_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_in_the_bytes(secret: str, tmp_path: Path) -> None:
    trace = secret_trace(secret).write(tmp_path / "trace.json")
    assert json.dumps(MARK).strip('"') in trace.read_text(encoding="utf-8").lower()
    done = redact_file(trace, tmp_path / "shared.json", names=True)
    text = (tmp_path / "shared.json").read_text(encoding="utf-8").lower()
    assert MARK not in text
    assert json.loads(text)["traceevents"], "it is a JSON document"
    assert MARK not in "\n".join(done.lines()).lower()
    assert done.taken.dropped["top-level key"] == 3, "hostname, trace_id and the one whose name is the secret"


@pytest.mark.parametrize("name", SMALL)
def test_real_traces_keep_their_figures_and_lose_twenty_secrets(name: str, tmp_path: Path) -> None:
    path = SHARED / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("the shared traces are not here")
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    document["environment"] = dict(enumerate(SECRETS))
    for i, row in enumerate(document["traceEvents"]):
        row.setdefault("args", {})["note"] = SECRETS[i % len(SECRETS)]
        row[SECRETS[i % len(SECRETS)]] = i
    planted = tmp_path / "trace.json.gz"
    planted.write_bytes(gzip.compress(json.dumps(document).encode()))
    done = redact_file(planted, tmp_path / "shared.json.gz", names=True)
    assert MARK.encode() not in bytes_of(tmp_path / "shared.json.gz").lower()
    assert done.rows == len(document["traceEvents"])
    before, after = (build_report(Trace.load(one)) for one in (path, tmp_path / "shared.json.gz"))
    assert before.ledger.equals(after.ledger)
    assert {k: m.value for k, m in before.metrics.items()} == {k: m.value for k, m in after.metrics.items()}
    assert done.taken.dropped["unknown row key"] == done.rows


@pytest.mark.parametrize("path", [*SAMPLES, *(SHARED / f"{name}.json.gz" for name in FIGURES)], ids=lambda p: p.name)
@pytest.mark.parametrize("names", [False, True])
def test_real_traces_can_be_shared(path: Path, names: bool, tmp_path: Path) -> None:
    if not path.exists():
        pytest.skip("the shared traces are not here")
    assert redact_file(path, tmp_path / "shared.json", names=names).figures > 300


def test_the_proof_fails_at_one_nanosecond(tmp_path: Path) -> None:
    one = Trace.load(TraceBuilder().run("gemm", (10, 5), (20, 40)).write(tmp_path / "one.json"))
    other = Trace.load(TraceBuilder().run("gemm", (10, 5), (20, 40.001)).write(tmp_path / "other.json"))
    assert prove_equal(*map(figures_of, (one, one))) > 50
    with pytest.raises(OutputError, match="other figures"):
        prove_equal(figures_of(one), figures_of(other))


def test_a_figure_that_changes_costs_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = TraceBuilder().run("gemm", (10, 5), (20, 40)).write(tmp_path / "trace.json")
    kept = Sharing.row
    monkeypatch.setattr(Sharing, "row", lambda self, row: {**kept(self, row), "dur": Raw(b"5.001")})
    with pytest.raises(OutputError, match="other figures"):
        redact_file(trace, tmp_path / "shared.json")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_times_keep_their_digits(tmp_path: Path) -> None:
    trace = TraceBuilder(offset_us=1_767_189_312_000_001).run("gemm", (10.001, 5), (20.007, 40.013))
    redact_file(trace.write(tmp_path / "trace.json"), tmp_path / "shared.json")
    shared = (tmp_path / "shared.json").read_text()
    assert '"ts":1767189312000021.007' in shared, "float64 cannot hold it"
    assert '"dur":40.013' in shared


def test_what_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    trace = TraceBuilder().run("gemm", (10, 5), (20, 40)).write(tmp_path / "trace.json")
    cut = tmp_path / "cut.json"
    cut.write_bytes(trace.read_bytes()[:-90])
    with pytest.raises(DamagedTraceError, match="cut"):
        redact_file(cut, tmp_path / "shared.json")
    with pytest.raises(SelectionError, match="read twice"):
        redact_file("-", tmp_path / "shared.json")
    with pytest.raises(OutputError, match=r"\.json\.gz"):
        redact_file(trace, tmp_path / "shared.html")
    assert not (tmp_path / "shared.json").exists()
    device = tmp_path / "device.json"
    device.symlink_to(os.devnull)
    with pytest.raises(OutputError, match="no plain file"):
        redact_file(trace, device, force=True)
    assert Path(os.devnull).is_char_device(), "nothing took its place"


def test_the_error_names_the_figures_and_no_text(tmp_path: Path) -> None:
    one = Trace.load(TraceBuilder().run("secret gemm", (10, 5), (20, 40)).write(tmp_path / "one.json"))
    other = Trace.load(TraceBuilder().run("secret gemm", (10, 5), (20, 41)).write(tmp_path / "other.json"))
    with pytest.raises(OutputError, match=r"activity_times: sum_ns 40000 became 41000; .*more places") as error:
        prove_equal(figures_of(one), figures_of(other))
    assert "secret" not in str(error.value)


def test_a_name_that_an_op_has_too_stays_one_name(tmp_path: Path) -> None:
    """A range inside an op of its name is that op seen twice: apart they would be two calls."""
    b = TraceBuilder().op("mylib::fused", 5, 50).annotation("mylib::fused", 6, 40).annotation("my range", 100, 5)
    trace = b.run("gemm", (10, 5), (20, 40)).write(tmp_path / "trace.json")
    redact_file(trace, tmp_path / "shared.json", names=True)
    names = [row["name"] for row in json.loads((tmp_path / "shared.json").read_text())["traceEvents"]]
    assert names.count("mylib::fused") == 2
    assert "my range" not in names


def test_the_original_is_let_go_before_the_copy_is_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, loaded = TraceBuilder().run("gemm", (10, 5), (20, 40)).write(tmp_path / "trace.json"), []
    load = Trace.load

    def watched(path: Path, **options: Any) -> Trace:
        assert all(one() is None for one in loaded), "two traces are alive at once"
        found = load(path, **options)
        loaded.append(weakref.ref(found))
        return found

    monkeypatch.setattr("analyze.report.share.redact_file.Trace.load", watched)
    redact_file(trace, tmp_path / "shared.json")
    assert len(loaded) == 2


def test_the_command(tmp_path: Path) -> None:
    trace = TraceBuilder().run("gemm", (10, 5), (20, 40)).write(tmp_path / "trace.json")
    done = run("redact", trace, "-o", tmp_path / "shared.json.gz", "--redact-names")
    assert (done.returncode, done.stderr) == (0, f"wrote {tmp_path / 'shared.json.gz'}\n")
    assert "2 rows; all " in done.stdout
    assert run("redact", trace, "-o", tmp_path / "shared.json.gz").returncode == 0, "one of ours may be replaced"
    (tmp_path / "mine.json").write_text('{"mine": 1}')
    refused = run("redact", trace, "-o", tmp_path / "mine.json")
    assert (refused.returncode, (tmp_path / "mine.json").read_text()) == (2, '{"mine": 1}')
    assert "--force" in refused.stderr
    itself = run("redact", trace, "-o", trace, "--force")
    assert itself.returncode == 2
