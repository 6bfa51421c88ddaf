"""Golden reports: what the program prints for the files of sample_traces/. `python -m tests.golden` rewrites them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from analyze.compare.json_schema import json_schema
from analyze.compare.ranks_schemas import ranks_comparison_schema, ranks_schema
from analyze.report import Report, build_report
from analyze.report.sweep import sweep_schema
from analyze.trace import Trace

GOLDEN = Path(__file__).parent
ROOT = GOLDEN.parents[1]
FINDINGS = ROOT / "analyze" / "docs" / "findings.md"
SAMPLES = sorted((ROOT / "sample_traces").glob("*.json.gz"))
SCHEMAS = {
    "report.schema.json": json_schema,
    "ranks.schema.json": ranks_schema,
    "ranks-comparison.schema.json": ranks_comparison_schema,
    "sweep.schema.json": sweep_schema,
}
EXTENSIONS = {"terminal": ".txt", "md": ".md", "json": ".json"}


def golden_report(path: Path) -> Report:
    """The report of a sample, with the program's version left out: it changes without any meaning for the figures."""
    recording = Trace.load(path).recording
    report = build_report(Trace(replace(recording, path=path.name)))  # as typed in its folder
    footer = report.page.footer.replace(f"gpuledger {report.version},", "gpuledger,")
    return replace(report, version="", page=replace(report.page, footer=footer))
