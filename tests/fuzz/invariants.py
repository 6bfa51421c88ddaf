"""What must hold of every report, whatever file it is on: section by section, and row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema

from analyze.compare.json_schema import json_schema
from analyze.guard import INTERNAL
from analyze.report import build_report, render
from analyze.trace import Trace

_MAY_EXCEED = ("flops_share", "bytes_share", "stretch")  # a share of a data sheet's peak
_SIGNED = (  # instants, and what an op frees more than it allocates
    "worst_skew_ns",
    "start_ns",
    "time_ns",
    "_points",
    "window_start_ns",
    "device",
    "base_ns",
    "delta",
    "skew",
    "device_memory_bytes",
    "cpu_memory_bytes",
)
_VALIDATOR: list[Any] = []
LOSS_NOTICES = (
    "events-lost",
    "further-lists",
    "odd-rows",
    "rows-without-time",
    "device-unknown",
    "untimed-activities",
    "memory-rows",
    "stray-rows",
)


def rows_hold(trace: Trace, expected: int | None) -> None:
    """Every row of the file is used, of a kind that no figure needs, or counted as lost and said."""
    account = trace.recording.account
    parts = [sum(counts.values()) for counts in (account.used, account.unused, account.lost)]
    assert account.total == sum(parts), f"{account.total} rows, but {parts} are used, unused and lost"
    assert all(n >= 0 for counts in (account.used, account.unused, account.lost) for n in counts.values())
    if expected is not None:
        assert account.total == expected, f"{account.total} rows of {expected} in the file are accounted for"
    said = sum(n.count for n in trace.recording.notices if n.id in LOSS_NOTICES)
    lost = parts[2]
    untimed = trace.activities.filter(~trace.activities["timed"]).height
    assert lost <= said + untimed, f"{lost} rows are lost, {said} are said: {dict(account.lost)}"


def report_holds(trace: Trace, *, again: Trace | None) -> None:
    """The report can be drawn, keeps its schema, and holds no figure that cannot be; a second run gives the same."""
    report = build_report(trace)
    internal = [missing.id for missing in report.page.not_measured if missing.reason == INTERNAL]
    internal += [rule.id for rule in report.diagnosis.unmeasured if rule.reason == INTERNAL]
    assert not internal, f"internal error in {internal}"
    texts = {form: render(report, form) for form in ("terminal", "md", "json")}
    for text in texts.values():
        text.encode()
    document = json.loads(texts["json"])
    if not _VALIDATOR:
        schema = json_schema()
        _VALIDATOR.append(jsonschema.validators.validator_for(schema)(schema))
    error = jsonschema.exceptions.best_match(_VALIDATOR[0].iter_errors(document))
    assert error is None, f"schema: {error.message[:200]} at {list(error.absolute_path)}" if error else ""
    for device in document["devices"]:
        _ledger_holds(device)
    impossible = list(_impossible(document, ""))
    assert not impossible, f"impossible figures: {impossible[:4]}"
    if again is not None:
        assert render(build_report(again), "json") == texts["json"], "two runs differ"


def _ledger_holds(device: dict[str, Any]) -> None:
    parts = ("computation_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    assert sum(device[part] for part in parts) == device["window_ns"], "the ledger does not sum to its window"
    assert sum(device["idle"].values()) == device["idle_ns"], "the parts of idle do not sum to it"
    assert device["busy_ns"] + device["idle_ns"] == device["window_ns"], "busy and idle do not sum to the window"
    assert device["busy_ns"] <= device["activity_sum_ns"], "more busy than there is activity"


def _impossible(value: Any, path: str) -> Iterator[str]:
    """Negative figures, and shares above their whole."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _impossible(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value[:200]:
            yield from _impossible(inner, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        key = path.rpartition(".")[2]
        if (
            value < 0
            and (key.endswith(("_ns", "_bytes", "_share", "share", "count", "_s")))
            and not key.endswith(_SIGNED)
        ):
            yield f"{path} = {value}"
        if "share" in key and value > 1 + 1e-9 and not path.endswith(_MAY_EXCEED):
            yield f"{path} = {value}"
        if value != value or abs(value) >= 2**63:
            yield f"{path} = {value}"
