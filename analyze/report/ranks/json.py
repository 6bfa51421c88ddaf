"""The JSON document of kind `ranks`."""

from __future__ import annotations

from typing import Any

from analyze.report.plain import plain, plain_section
from analyze.report.ranks.build import RanksReport
from analyze.report.report import SCHEMA_VERSION, TOOL


def ranks_document(report: RanksReport) -> dict[str, Any]:
    """A report on a job as plain dictionaries, lists and numbers: under `job` every figure, times in ns."""
    page = report.page
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "ranks",
        "tool": {"name": TOOL, "version": report.version},
        "name": report.name,
        "job": report.document,
        "verdict": plain(report.verdict),
        "metrics": report.metrics,
        "findings": plain(report.findings),
        "gates": plain(report.gates),
        "ledger": plain(page.whole),
        "sections": [plain_section(section) for section in page.sections],
        "notices": plain(page.notices),
        "definitions": plain(report.definitions),
    }
