"""Reports side by side: what is compared, by which rule a change counts, and how it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyze.late import late_names

if TYPE_CHECKING:
    from analyze.report.compare.pair import Comparison, beside, compare
    from analyze.report.compare.several import Lineup, labels_of, line_up
    from analyze.report.compare.subject import Subject, read_subject, subject_of

__all__ = ["Comparison", "Lineup", "Subject", "beside", "compare", "labels_of", "line_up", "read_subject", "subject_of"]

_LATE = {  # a report on one trace compares nothing
    "Comparison": "analyze.report.compare.pair",
    "Lineup": "analyze.report.compare.several",
    "Subject": "analyze.report.compare.subject",
    "beside": "analyze.report.compare.pair",
    "compare": "analyze.report.compare.pair",
    "labels_of": "analyze.report.compare.several",
    "line_up": "analyze.report.compare.several",
    "read_subject": "analyze.report.compare.subject",
    "subject_of": "analyze.report.compare.subject",
}
__getattr__ = late_names(__name__, _LATE)
