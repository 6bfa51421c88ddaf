"""The report as JSON for scripts: sorted keys, SI base units in the names, the same bytes for the same trace."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any

import orjson

from analyze.report.report import SCHEMA_VERSION, TOOL, Report


def render(report: Report) -> str:
    """The report as indented JSON with a final newline. Contract: `tests/golden/report.schema.json`."""
    return orjson.dumps(document(report), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode() + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain dictionaries, lists and numbers."""
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
        "gaps": plain(measures.gaps),
        "steps": plain(measures.steps),
        "lead": plain(measures.lead),
        "findings": [],
        "checks_passed": [],
        "sections": [_section(section) for section in report.page.sections],
        "ledger": plain(report.page.whole),
        "notices": plain(measures.notices),
        "not_measured": plain(report.page.not_measured),
    }


def plain(value: Any) -> Any:
    """Dataclasses, tuples and enumerations as what JSON knows."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _section(section: Any) -> dict[str, Any]:
    blocks = [{"type": type(block).__name__.lower(), **plain(block)} for block in section.blocks]
    return {"id": section.id, "title": section.title, "blocks": blocks}
