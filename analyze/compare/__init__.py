"""Reports side by side: what is compared, by which rule a change counts, and how it is worded."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from analyze.late import late_names

if TYPE_CHECKING:
    from analyze.compare.pair import Comparison, beside, compare
    from analyze.compare.several import Lineup, labels_of, line_up
    from analyze.compare.subject import Subject, read_subject, subject_of

__all__ = ["Comparison", "Lineup", "Subject", "beside", "compare", "labels_of", "line_up", "read_subject", "subject_of"]

_LATE = {  # a report on one trace compares nothing
    "Comparison": "analyze.compare.pair",
    "Lineup": "analyze.compare.several",
    "Subject": "analyze.compare.subject",
    "beside": "analyze.compare.pair",
    "compare": "analyze.compare.pair",
    "labels_of": "analyze.compare.several",
    "line_up": "analyze.compare.several",
    "read_subject": "analyze.compare.subject",
    "subject_of": "analyze.compare.subject",
}
__getattr__ = late_names(__name__, _LATE)


class _Package(ModuleType):
    """`from analyze import compare` finds this package where it finds the function: both can be called."""

    def __call__(self, *args: Any, **options: Any) -> Comparison:
        """Compare two reports, as `compare.compare` does."""
        from analyze.compare.pair import compare

        return compare(*args, **options)


sys.modules[__name__].__class__ = _Package
