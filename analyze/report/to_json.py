"""The report as JSON for scripts: sorted keys, SI base units in the names, the same bytes for the same trace."""

from __future__ import annotations

from typing import Any

import orjson

from analyze.report.comparison import SnapshotComparison
from analyze.report.plain import plain, plain_section
from analyze.report.report import SCHEMA_VERSION, TOOL, Report
from analyze.report.snapshot import SnapshotReport
from analyze.report.snapshot_json import comparison_document, snapshot_document

AnyReport = Report | SnapshotReport | SnapshotComparison


def render(report: AnyReport) -> str:
    """The report as indented JSON with a final newline. Contract: `tests/golden/report.schema.json`."""
    return orjson.dumps(document(report), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode() + "\n"


def document(report: AnyReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists and numbers."""
    if isinstance(report, SnapshotReport):
        return snapshot_document(report)
    if isinstance(report, SnapshotComparison):
        return comparison_document(report)
    measures = report.measures
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": TOOL, "version": report.version},
        "trace": plain(report.trace),
        "definitions": plain(report.definitions),
        "verdict": plain(report.verdict),
        "metrics": plain(report.metrics),
        "devices": plain(measures.devices),
        "overlap": plain(measures.overlaps),
        "launches": plain(measures.launches),
        "blocking_calls": plain(measures.stalls),
        "categories": plain(measures.categories),
        "kernels": plain(measures.kernels[: report.definitions.top]),
        "op_categories": plain(measures.purpose),
        "modules": plain(measures.modules),
        "precision": plain(measures.precision),
        "roofline": plain(measures.roofline),
        "fusion": plain(measures.fusion),
        "ops": plain(measures.host),
        "memory": plain(measures.memory),
        "gaps": plain(measures.gaps),
        "steps": plain(measures.steps),
        "trust": plain(measures.trust),
        "lead": plain(measures.lead),
        "findings": plain(report.diagnosis.findings),
        "checks_passed": [passed.id for passed in report.diagnosis.passed],
        "checks_not_measured": plain(report.diagnosis.unmeasured),
        "savings_together": plain(report.diagnosis.together),
        "sections": [plain_section(section) for section in report.page.sections],
        "ledger": plain(report.page.whole),
        "notices": plain(measures.notices),
        "not_measured": plain(report.page.not_measured),
    }
