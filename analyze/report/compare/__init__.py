"""Reports side by side: what is compared, by which rule a change counts, and how it is told."""

from analyze.report.compare.pair import Comparison, beside, compare
from analyze.report.compare.several import Lineup, labels_of, line_up
from analyze.report.compare.subject import Subject, read_subject, subject_of

__all__ = ["Comparison", "Lineup", "Subject", "beside", "compare", "labels_of", "line_up", "read_subject", "subject_of"]
