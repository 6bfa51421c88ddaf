"""What the findings say of the public reference traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyze.findings import Diagnosis
from analyze.metrics.whatif.savings import Savings
from analyze.report import build_report
from analyze.report.report import Report
from analyze.trace import Trace


def report(shared: Path, name: str) -> Report:
    return build_report(Trace.load(shared / "traces" / f"{name}.json.gz"))


def reasons(diagnosis: Diagnosis) -> dict[str, str]:
    return {outcome.id: outcome.reason for outcome in (*diagnosis.passed, *diagnosis.unmeasured)}


def test_object_detector_preprocesses_images_on_the_launching_thread(shared: Path) -> None:
    diagnosis = report(shared, "h100_owlv2_large").diagnosis
    first = diagnosis.findings[0]
    assert (first.id, first.severity) == ("input-wait", "high")
    assert first.title == "DataLoader work on the launching thread: zoom"
    assert "image_processing_owlv2.py(301): resize" in first.observed
    assert first.saving is not None
    assert first.saving.bound
    assert 0.45 <= first.saving.share <= 0.48  # idle time inside DataLoader work is 45.5% of the window
    assert reasons(diagnosis)["sync-stall"] == "would save 0.4% of the window"  # the blocking call is not blamed


def test_small_bert_is_launch_bound(shared: Path) -> None:
    first = report(shared, "h100_bert_small").diagnosis.findings[0]
    assert (first.id, first.severity) == ("launch-bound", "high")
    assert "reduce-overhead" in first.change
    assert "CUDAGraph" in first.change
    assert first.saving is not None
    assert first.saving.bound


def test_blocking_calls_of_a_training_run(shared: Path) -> None:
    """Between what the calls expose themselves and all idle time; the gaps that it comes from are told."""
    found = report(shared, "a100_training_control")
    device = found.measures.devices[0]
    stall = next(finding for finding in found.diagnosis.findings if finding.id == "sync-stall")
    assert stall.saving is not None
    assert device.exposed_sync_ns < stall.saving.ns < device.idle_ns
    gaps = next(table for table in stall.evidence if table.title == "Gaps that it shortens")
    assert gaps.rows
    assert all(0 < int(row[2] or 0) <= int(row[1] or 0) for row in gaps.rows)


def test_savings_are_withheld_where_other_ranks_are_waited_for(shared: Path) -> None:
    diagnosis = report(shared, "a100_training_rank0").diagnosis
    assert diagnosis.findings[0].id == "incomplete-records"
    assert not any(finding.saving for finding in diagnosis.findings)


@pytest.mark.slow
def test_deviation_of_the_replays(shared: Path) -> None:
    """At most 1% in the median where records are complete, and the record itself wherever delays are explained."""
    deviations = []
    for path in sorted((shared / "traces").glob("*.json.gz")):
        found = build_report(Trace.load(path))
        savings: Savings = found.measures.savings
        if savings.window_ns and not any(f.id == "incomplete-records" for f in found.diagnosis.findings):
            deviations.append((savings.deviation, path.name))
    assert len(deviations) >= 18
    assert sorted(deviations)[len(deviations) // 2][0] <= 0.01
    assert max(deviations)[0] <= 0.05
