"""The contract of the JSON report as a JSON Schema, derived from the types that the report is made of."""

from __future__ import annotations

from typing import Any, TypedDict

from analyze.blocks import Breakdown
from analyze.compare.gates import GateResult
from analyze.findings import Finding, Hidden, Saving, Unmeasured, Verdict
from analyze.metrics import Category, DeviceTime, Gap, HostSide, Launches, Stalls, Step
from analyze.metrics.fusion import Fusion
from analyze.metrics.lead import Lead
from analyze.metrics.memory import Memory
from analyze.metrics.modules import Module
from analyze.metrics.op_categories import Purpose
from analyze.metrics.overlap import Overlap
from analyze.metrics.precision import PrecisionAudit
from analyze.metrics.quality.trust import Trust
from analyze.metrics.roofline import Roofline
from analyze.metrics.step_ledgers import StepLedger
from analyze.metrics.work import Kernel
from analyze.notices import Notice, NotMeasured
from analyze.report.measured import MEASURED
from analyze.report.plain import contract
from analyze.report.report import Metric, TraceInfo
from analyze.settings import Definitions


class ActivityTime(TypedDict):
    """One activity name: how often and how long, in the window and of it launched in steps."""

    name: str
    category: str
    count: int
    sum_ns: int
    step_count: int
    step_sum_ns: int


_KEYS: dict[str, Any] = {
    "trace": TraceInfo,
    "definitions": Definitions,
    "verdict": Verdict,
    "metrics": dict[str, Metric],
    "devices": list[DeviceTime],
    "overlap": list[Overlap],
    "launches": Launches,
    "blocking_calls": Stalls,
    "categories": list[Category],
    "kernels": list[Kernel],
    "activity_times": list[ActivityTime],
    "op_categories": Purpose,
    "modules": list[Module],
    "precision": PrecisionAudit,
    "roofline": Roofline,
    "fusion": Fusion,
    "ops": HostSide,
    "memory": Memory,
    "gaps": list[Gap],
    "steps": list[Step],
    "trust": Trust | None,
    "step_ledgers": list[StepLedger],
    "lead": Lead | None,
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
    return contract("report", _KEYS, MEASURED)
