"""Reports side by side: what is compared, by which rule a change counts, and how it is worded."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.compare.comparable import Comparable, comparable_of, read_comparable
    from analyze.compare.lineup import Lineup, labels_of, line_up
    from analyze.compare.pair import Comparison, compare, with_comparison

__all__ = [
    "Comparable",
    "Comparison",
    "Lineup",
    "comparable_of",
    "compare",
    "labels_of",
    "line_up",
    "read_comparable",
    "with_comparison",
]

_LATE = {  # a report on one trace compares nothing
    "Comparison": "analyze.compare.pair",
    "Lineup": "analyze.compare.lineup",
    "Comparable": "analyze.compare.comparable",
    "with_comparison": "analyze.compare.pair",
    "compare": "analyze.compare.pair",
    "labels_of": "analyze.compare.lineup",
    "line_up": "analyze.compare.lineup",
    "read_comparable": "analyze.compare.comparable",
    "comparable_of": "analyze.compare.comparable",
}
__getattr__ = lazy_names(__name__, _LATE)


class _Package(ModuleType):
    """`from analyze import compare` finds this package where it finds the function: both can be called."""

    def __call__(self, *args: Any, **options: Any) -> Comparison:
        """Compare two reports, as `compare.compare` does."""
        from analyze.compare.pair import compare

        return compare(*args, **options)


sys.modules[__name__].__class__ = _Package
