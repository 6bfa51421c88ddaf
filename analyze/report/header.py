"""The first lines of every text report: what was measured, and the verdict's word."""

from __future__ import annotations

from analyze.findings import Verdict
from analyze.report.report import TraceInfo
from analyze.units import duration, plural

_WORDS = {"no-gpu-activity": "No GPU activity in this file", "not-judged": "Not judged", "first-use": "First use"}


def measured_line(trace: TraceInfo) -> str:
    """What was measured, in one line: window, steps, GPU, versions, rank, recorded options."""
    parts = [f"{duration(trace.window_ns)} window"] if trace.window_ns else []
    if trace.selection:
        parts.append(trace.selection)
    if trace.steps:
        parts.append(plural(trace.steps, "step"))
    parts += trace.device_names
    if trace.runtime:
        parts.append(trace.runtime)
    if trace.rank is not None and (trace.world_size or 0) > 1:
        parts.append(f"rank {trace.rank} of {trace.world_size}")
    return ", ".join(parts) or trace.writer


def verdict_word(verdict: Verdict) -> str:
    """The verdict as a headline: Launch-bound."""
    return _WORDS.get(verdict.id) or verdict.id.capitalize()
