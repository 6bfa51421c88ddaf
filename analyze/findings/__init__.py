"""Measures become judgements: pure functions of measures, no frames."""

from analyze.findings.states import State, window_states
from analyze.findings.verdict import Verdict, judge

__all__ = ["State", "Verdict", "judge", "window_states"]
