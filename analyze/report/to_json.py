"""The report as JSON for scripts: sorted keys, SI base units in the names, the same bytes for the same trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import orjson

from analyze.guard import AbsentError, present
from analyze.inert import json_text, whole_characters
from analyze.metrics import Measures
from analyze.metrics.step_ledgers import StepWork
from analyze.report.plain import plain, plain_section
from analyze.report.report import SCHEMA_VERSION, TOOL, Report
from analyze.report.walk import map_texts

if TYPE_CHECKING:
    from analyze.report.compare import Comparison, Lineup
    from analyze.report.comparison import SnapshotComparison
    from analyze.report.ranks import RanksReport
    from analyze.report.ranks.compare import RanksComparison
    from analyze.report.snapshot import SnapshotReport

    AnyReport = Report | RanksReport | RanksComparison | SnapshotReport | SnapshotComparison | Comparison | Lineup


def render(report: AnyReport) -> str:
    """The report as indented JSON with a final newline. Contract: `tests/golden/report.schema.json`."""
    found, options = document(report), orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    try:
        data = orjson.dumps(found, option=options)
    except TypeError:  # half a surrogate pair, from a file or from a file's name
        data = orjson.dumps(map_texts(found, whole_characters), option=options)
    return json_text(data.decode()) + "\n"


def document(report: AnyReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists and numbers."""
    return _of_trace(report) if isinstance(report, Report) else _of_other(report)


def _of_other(
    report: RanksReport | RanksComparison | SnapshotReport | SnapshotComparison | Comparison | Lineup,
) -> dict[str, Any]:
    from analyze.report.compare import Comparison, Lineup  # a report on a trace does not wait for these
    from analyze.report.compare.documents import lineup_document, pair_document
    from analyze.report.snapshot import SnapshotReport
    from analyze.report.snapshot_json import comparison_document, snapshot_document

    if isinstance(report, Comparison):
        return pair_document(report)
    if isinstance(report, Lineup):
        return lineup_document(report)
    if type(report).__name__ == "RanksComparison":
        from analyze.report.ranks.compare import comparison_of_jobs_document

        return comparison_of_jobs_document(report)  # type: ignore[arg-type]
    if type(report).__name__ == "RanksReport":
        from analyze.report.ranks.json import ranks_document

        return ranks_document(report)  # type: ignore[arg-type]
    return snapshot_document(report) if isinstance(report, SnapshotReport) else comparison_document(report)  # type: ignore[arg-type]


def _of_trace(report: Report) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": TOOL, "version": report.version},
        "trace": plain(report.trace),
        "definitions": plain(report.definitions),
        "verdict": plain(report.verdict),
        "metrics": plain(report.metrics),
        "findings": plain(report.diagnosis.findings),
        "checks_passed": [passed.id for passed in report.diagnosis.passed],
        "checks_not_measured": plain(report.diagnosis.unmeasured),
        "limits": plain(report.diagnosis.limits),
        "hidden_costs": plain(report.diagnosis.hidden),
        "savings_together": plain(report.diagnosis.together),
        "comparison": _of_other(report.comparison) if report.comparison else None,
        "gates": plain(report.gates),
        "sections": [plain_section(section) for section in report.page.sections],
        "ledger": plain(report.page.whole),
        "notices": plain(report.page.notices),
        "not_measured": plain(report.page.not_measured),
        **dict(_measured(report.measures, report.definitions.top)),
    }


MEASURED: dict[str, Callable[[Measures, int], Any]] = {
    "devices": lambda m, _: m.devices,
    "overlap": lambda m, _: m.overlaps,
    "launches": lambda m, _: m.launches,
    "blocking_calls": lambda m, _: m.stalls,
    "categories": lambda m, _: m.categories,
    "kernels": lambda m, top: m.kernels[:top],
    "activity_times": lambda m, _: _activity_times(m),
    "op_categories": lambda m, _: m.purpose,
    "modules": lambda m, _: m.modules,
    "precision": lambda m, _: m.precision,
    "roofline": lambda m, _: m.roofline,
    "fusion": lambda m, _: m.fusion,
    "ops": lambda m, _: m.host,
    "memory": lambda m, _: m.memory,
    "gaps": lambda m, _: m.gaps,
    "steps": lambda m, _: m.steps,
    "trust": lambda m, _: m.trust,
    "step_ledgers": lambda m, _: m.by_step.ledgers,
    "lead": lambda m, _: m.lead,
}


def _measured(measures: Measures, top: int) -> Iterator[tuple[str, Any]]:
    """Every measure under its key; one that could not be made for an internal error has no key."""
    for key, read in MEASURED.items():
        try:
            value = read(measures, top)
        except AbsentError:
            continue
        if present(value):
            yield key, plain(value)


def _activity_times(measures: Measures) -> list[dict[str, Any]]:
    """Every activity name in short: a later comparison has to know that a kernel is not there."""
    in_steps = {(work.name, work.category): work for work in measures.by_step.work}
    found = []
    for kernel in measures.kernels:
        inside = in_steps.get((kernel.name, kernel.category), StepWork(kernel.name, kernel.category, 0, 0))
        found.append(
            {
                "name": kernel.name,
                "category": kernel.category,
                "count": kernel.count,
                "sum_ns": kernel.sum_ns,
                "step_count": inside.count,
                "step_sum_ns": inside.sum_ns,
            }
        )
    return found
