"""The diagnosis as a block."""

from __future__ import annotations

from analyze.blocks import Advice, Section, Suggestion
from analyze.findings import Diagnosis, Finding
from analyze.units import duration, percent

TITLE = "What to do first"


def section(diagnosis: Diagnosis) -> Section:
    """Findings by saving, and the rules that found nothing or could not be asked."""
    return Section(
        "findings",
        TITLE,
        (
            Advice(
                TITLE,
                "of window",
                tuple(_suggestion(finding) for finding in diagnosis.findings),
                _note(diagnosis),
                tuple((passed.id, passed.reason) for passed in diagnosis.passed),
                tuple((missing.id, missing.reason) for missing in diagnosis.unmeasured),
            ),
        ),
    )


def _note(diagnosis: Diagnosis) -> str:
    together = diagnosis.together
    set_here = ", ".join(f"{rule} {percent(share)}" for rule, share in diagnosis.limits.items())
    limits = f"Limits set: {set_here}." if set_here else ""
    if together is None:
        return limits
    return f"All together ≤ {duration(together.ns)}, {percent(together.share)}, by replay. {limits}".strip()


def _suggestion(finding: Finding) -> Suggestion:
    saving = finding.saving
    basis = saving.basis if saving else "No saving is stated: the records do not support a number."
    return Suggestion(
        finding.id,
        finding.title,
        finding.severity,
        saving.ns if saving else None,
        saving.share if saving else None,
        saving.bound if saving else False,
        finding.change,
        (
            ("Seen", finding.seen),
            ("Why it costs", finding.why),
            ("Estimate", basis),
            ("Does not apply when", finding.unless),
        ),
        finding.evidence,
        finding.link,
    )
