"""Measures become judgements: pure functions of measures, no frames."""

from analyze.findings.finding import (
    SEVERITIES,
    Diagnosis,
    Finding,
    Outcome,
    Passed,
    Saving,
    Severity,
    Unmeasured,
)
from analyze.findings.states import State, window_states
from analyze.findings.verdict import Verdict, judge

__all__ = [
    "SEVERITIES",
    "Diagnosis",
    "Finding",
    "Outcome",
    "Passed",
    "Saving",
    "Severity",
    "State",
    "Unmeasured",
    "Verdict",
    "judge",
    "window_states",
]
