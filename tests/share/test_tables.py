"""`--tables`: files that hold what the report and the trace hold, with columns that say what they are."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from analyze import Trace, build_report, schema
from analyze.errors import OutputError
from analyze.report.share.tables import write_tables
from tests.builder import TraceBuilder
from tests.test_cli import run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Kernels of 40 and 20 us with a gap of 10 us; the second one is called like a formula."""
    b = TraceBuilder().run("gemm", (10, 5), (20, 40)).run("=HYPERLINK(1)", (62, 5), (70, 20))
    return b.write(tmp_path / "trace.json")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_files_hold_what_the_trace_holds(trace: Path, tmp_path: Path, form: str) -> None:
    done = run(trace, "--tables", tmp_path / "out", "--as", form)
    assert done.returncode == 0, done.stderr
    listed = json.loads((tmp_path / "out" / "tables.json").read_text())["files"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"tables.json", *listed}
    read = pl.read_parquet if form == "parquet" else pl.read_csv
    for name, about in listed.items():
        if about["rows"]:
            frame = read(tmp_path / "out" / name)
            assert (frame.height, frame.columns) == (about["rows"], [column["name"] for column in about["columns"]])
            assert all(column["meaning"] for column in about["columns"])
    ledger = read(tmp_path / "out" / f"report_ledger.{form}")
    assert (ledger["ns"].sum(), ledger.filter("idle")["ns"].sum()) == (70_000, 10_000)
    activities = read(tmp_path / "out" / f"trace_activities.{form}").sort("start_ns")
    assert activities["dur_ns"].to_list() == [40_000, 20_000]
    formula = "=HYPERLINK(1)" if form == "parquet" else "'=HYPERLINK(1)"
    assert activities["name"].cast(pl.String).to_list() == ["gemm", formula]


def test_columns_of_frames_are_those_of_their_schemas(trace: Path, tmp_path: Path) -> None:
    count = write_tables(build_report(Trace.load(trace)), tmp_path / "out", "parquet")
    assert count == len(list((tmp_path / "out").glob("*.parquet"))) > 15
    found = pl.read_parquet_schema(tmp_path / "out" / "trace_launches.parquet")
    assert list(found) == schema.names(schema.LAUNCHES)


def test_files_of_others_stay(trace: Path, tmp_path: Path) -> None:
    report = build_report(Trace.load(trace))
    out = tmp_path / "out"
    out.mkdir()
    (out / "trace_ops.csv").write_text("mine")
    with pytest.raises(OutputError, match="trace_ops"):
        write_tables(report, out, "csv")
    assert [path.name for path in out.iterdir()] == ["trace_ops.csv"]
    write_tables(report, out, "csv", force=True)
    write_tables(report, out, "csv")
    with pytest.raises(OutputError, match="no folder"):
        write_tables(report, trace, "csv")
