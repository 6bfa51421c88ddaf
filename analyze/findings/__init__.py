"""Measures become judgements: pure functions of measures, no frames."""

from typing import TYPE_CHECKING

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.findings.diagnosis import diagnose
    from analyze.findings.finding import (
        SEVERITIES,
        Diagnosis,
        Finding,
        Hidden,
        Outcome,
        Passed,
        Saving,
        Severity,
        Unmeasured,
    )
    from analyze.findings.rule import Rule
    from analyze.findings.rules import RULES
    from analyze.findings.states import STATES, State, window_states
    from analyze.findings.verdict import Verdict, judge

__all__ = [
    "RULES",
    "SEVERITIES",
    "STATES",
    "Diagnosis",
    "Finding",
    "Hidden",
    "Outcome",
    "Passed",
    "Rule",
    "Saving",
    "Severity",
    "State",
    "Unmeasured",
    "Verdict",
    "diagnose",
    "judge",
    "window_states",
]

_PLACES = {
    "Diagnosis": "analyze.findings.finding",
    "Finding": "analyze.findings.finding",
    "Hidden": "analyze.findings.finding",
    "Outcome": "analyze.findings.finding",
    "Passed": "analyze.findings.finding",
    "RULES": "analyze.findings.rules",
    "Rule": "analyze.findings.rule",
    "SEVERITIES": "analyze.findings.finding",
    "STATES": "analyze.findings.states",
    "Saving": "analyze.findings.finding",
    "Severity": "analyze.findings.finding",
    "State": "analyze.findings.states",
    "Unmeasured": "analyze.findings.finding",
    "Verdict": "analyze.findings.verdict",
    "diagnose": "analyze.findings.diagnosis",
    "judge": "analyze.findings.verdict",
    "window_states": "analyze.findings.states",
}

__getattr__ = lazy_names(__name__, _PLACES)
