"""Files to documents: traces, and reports that an earlier run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyze.errors import NotATraceError, SelectionError
from analyze.report import Report, build_report
from analyze.report.compare.stored import read_stored
from analyze.report.report import TOOL
from analyze.trace import Trace

if TYPE_CHECKING:
    from analyze.report.compare import Subject


def load_report(path: str, wish: dict[str, Any], reading: dict[str, Any]) -> Report:
    """The report on a trace.

    Args:
        path: the trace, "-" for standard input.
        wish: arguments of `build_report`.
        reading: arguments of `Trace.load`.

    Raises:
        NotATraceError: the file is a report already, or no trace for other reasons.
    """
    if path != "-" and read_stored(path) is not None:
        from analyze.report.commands import quoted_path
        from analyze.report.compare import read_subject

        read_subject(path)  # reports that cannot be read say why
        file = quoted_path(path) or "FILE"
        hint = f"Compare it: analyze compare {file} OTHER; or pass the trace that it was made from."
        raise NotATraceError(f"{path} is a report of {TOOL}, not a trace.", hint)
    return build_report(Trace.load(path, **reading), **wish)


def load_subject(path: str, wish: dict[str, Any], reading: dict[str, Any]) -> Subject:
    """One side of a comparison, from a trace or from the JSON report of one.

    Args:
        path: the file.
        wish: arguments of `build_report`; a JSON report has been selected already.
        reading: arguments of `Trace.load`.

    Raises:
        SelectionError: a memory snapshot among traces.
    """
    from analyze.report.compare import read_subject, subject_of
    from analyze.snapshot import is_snapshot

    found = None if path == "-" else read_subject(path)
    if found is not None:
        return found
    if path != "-" and is_snapshot(path):
        raise SelectionError(
            f"{Path(path).name} is a memory snapshot, the other input is a trace.",
            "Compare snapshots with snapshots and traces with traces.",
        )
    return subject_of(build_report(Trace.load(path, **reading), **wish))
