"""The contract of the JSON report as a JSON Schema, derived from the types that the report is made of."""

from __future__ import annotations

from typing import Any

from analyze.blocks import Breakdown
from analyze.compare.gates import GateResult
from analyze.findings import Finding, Hidden, Saving, Unmeasured, Verdict
from analyze.metrics import QUESTIONS
from analyze.notices import Notice, NotMeasured
from analyze.report.plain import contract
from analyze.report.report import Metric, TraceInfo
from analyze.settings import Definitions

_ANSWERS: dict[str, Any] = {one.key: one.answer for one in QUESTIONS if one.answer is not None}
_KEYS: dict[str, Any] = {
    "trace": TraceInfo,
    "definitions": Definitions,
    "verdict": Verdict,
    "metrics": dict[str, Metric],
    **_ANSWERS,
    "ledger": Breakdown | None,
    "notices": list[Notice],
    "not_measured": list[NotMeasured],
    "findings": list[Finding],
    "checks_passed": list[str],
    "checks_not_measured": list[Unmeasured],
    "limits": dict[str, float],
    "hidden_costs": list[Hidden],
    "savings_together": Saving | None,
    "comparison": dict[str, Any] | None,
    "gates": list[GateResult],
    "sections": list[dict[str, Any]],
    "tool": dict[str, str],
}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the report that `to_json` writes; what an internal error cost has no key."""
    return contract("report", _KEYS, _ANSWERS)
