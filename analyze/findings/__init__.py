"""Measures become judgements: pure functions of measures, no frames."""

from analyze.findings.diagnose import diagnose
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
