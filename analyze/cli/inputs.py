"""Files to documents: traces, and reports that an earlier run wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyze.errors import NotATraceError, SelectionError
from analyze.report import Report, build_report
from analyze.report.about import TOOL
from analyze.report.stored import read_stored
from analyze.trace import Trace
from analyze.trace.stream import is_stream, name_of

if TYPE_CHECKING:
    from analyze.compare import Subject
    from analyze.report.redact import Redaction
    from analyze.snapshot import Snapshot


def load_report(path: str, choices: dict[str, Any], reading: dict[str, Any], redaction: Redaction | None) -> Report:
    """The report on a trace.

    Args:
        path: the trace, "-" for standard input.
        choices: arguments of `build_report`.
        reading: arguments of `Trace.load`.
        redaction: what to take out of it, None where it may be shown as it is.

    Raises:
        NotATraceError: the file is a report already, or no trace for other reasons.
    """
    if read_stored(path) is not None:
        from analyze.compare import read_subject
        from analyze.report.commands import quoted_path

        read_subject(path)  # reports that cannot be read say why
        file = quoted_path(path) or "FILE"
        hint = f"Compare it: analyze compare {file} OTHER; or pass the trace that it was made from."
        name = name_of(path) if is_stream(path) else path
        raise NotATraceError(f"{name} is a report of {TOOL}, not a trace.", hint)
    return _built(path, choices, reading, redaction)


def _built(path: str, choices: dict[str, Any], reading: dict[str, Any], redaction: Redaction | None) -> Report:
    trace = Trace.load(path, **reading)
    if redaction is None:
        return build_report(trace, **choices)
    from analyze.report.redact.traces import redacted_trace

    name = choices.get("range")
    choices = choices if name is None else {**choices, "range": redaction.range(name)}
    return build_report(redacted_trace(trace, redaction), **choices)


def load_side(
    path: str, choices: dict[str, Any], reading: dict[str, Any], redaction: Redaction | None
) -> Subject | Report:
    """One side of a comparison: the report on a trace, or what the JSON report of one holds.

    Args:
        path: the file.
        choices: arguments of `build_report`; a JSON report has been selected already.
        reading: arguments of `Trace.load`.
        redaction: what to take out of it, None where it may be shown as it is.

    Raises:
        SelectionError: a memory snapshot among traces.
    """
    from analyze.compare import read_subject
    from analyze.snapshot import is_snapshot

    found = read_subject(path)
    if found is not None:
        if redaction is None:
            return found
        from analyze.compare.redacted import redacted_subject

        return redacted_subject(found, redaction)
    if is_snapshot(path):
        raise SelectionError(
            f"{name_of(path)} is a memory snapshot, the other input is a trace.",
            "Compare snapshots with snapshots and traces with traces.",
        )
    return _built(path, choices, reading, redaction)


def load_subject(path: str, choices: dict[str, Any], reading: dict[str, Any], redaction: Redaction | None) -> Subject:
    """One side of a comparison by its figures; arguments as for `load_side`."""
    from analyze.compare import subject_of

    side = load_side(path, choices, reading, redaction)
    return subject_of(side) if isinstance(side, Report) else side


def load_snapshot(path: str, redaction: Redaction | None) -> Snapshot:
    """A memory snapshot.

    Args:
        path: the file, "-" for standard input.
        redaction: what to take out of it, None where it may be shown as it is.
    """
    from analyze.snapshot import Snapshot

    snapshot = Snapshot.load(path)
    if redaction is None:
        return snapshot
    from analyze.report.redact.snapshots import redacted_snapshot

    return redacted_snapshot(snapshot, redaction)
