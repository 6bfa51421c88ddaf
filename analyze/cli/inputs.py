"""Files to documents: traces, and reports that an earlier run wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from analyze.errors import NotATraceError, SelectionError
from analyze.report import Report, build_report
from analyze.report.about import TOOL
from analyze.report.stored import read_stored
from analyze.trace import Trace
from analyze.trace.stream import is_stream, name_of

if TYPE_CHECKING:
    from analyze.cli.choices import Measuring, Reading
    from analyze.compare import Comparable
    from analyze.report.redact import Redaction
    from analyze.snapshot import Snapshot


def load_report(path: str, measuring: Measuring, reading: Reading, redaction: Redaction | None) -> Report:
    """The report on a trace.

    Args:
        path: the trace, "-" for standard input.
        measuring: what of it is measured.
        reading: how it is read.
        redaction: what to take out of it, None where it may be shown as it is.

    Raises:
        NotATraceError: the file is a report already, or no trace for other reasons.
    """
    if read_stored(path) is not None:
        from analyze.compare.run_json import NO_TRACE, read_side
        from analyze.report.commands import quoted_path

        side = read_side(path)  # reports that cannot be read say why
        file = quoted_path(path) or "FILE"
        hint = f"Compare it: analyze compare {file} OTHER; or pass the trace that it was made from."
        name = name_of(path) if is_stream(path) else path
        if side is not None and side.verdict.id == NO_TRACE:
            hint = f"Pass the trace beside it, or compare it: analyze compare {file} OTHER"
            raise NotATraceError(f"{name} is what capture noted of a recording, without its trace.", hint)
        raise NotATraceError(f"{name} is a report of {TOOL}, not a trace.", hint)
    return _built(path, measuring, reading, redaction)


def _built(path: str, measuring: Measuring, reading: Reading, redaction: Redaction | None) -> Report:
    trace = Trace.load(path, jobs=reading.jobs, trusted=reading.trusted, on_progress=reading.on_progress)
    name = measuring.range
    if redaction is None:
        return _report(trace, measuring)
    from analyze.report.redact.traces import redacted_trace

    safe = measuring if name is None else replace(measuring, range=redaction.range(name))
    return _report(redacted_trace(trace, redaction), safe)


def _report(trace: Trace, measuring: Measuring) -> Report:
    return build_report(
        trace,
        steps=measuring.steps,
        range=measuring.range,
        definitions=measuring.definitions,
        limits=measuring.limits,
        ops=measuring.ops,
        one_screen=measuring.one_screen,
    )


def load_side(path: str, measuring: Measuring, reading: Reading, redaction: Redaction | None) -> Comparable | Report:
    """One side of a comparison: the report on a trace, or what a JSON report or the run.json of a recording holds.

    Args:
        path: the file.
        measuring: what of it is measured; of a JSON report that is decided already.
        reading: how it is read.
        redaction: what to take out of it, None where it may be shown as it is.

    Raises:
        SelectionError: a memory snapshot among traces.
    """
    from analyze.compare.run_json import read_side
    from analyze.snapshot import is_snapshot

    found = read_side(path)
    if found is not None:
        if redaction is None:
            return found
        from analyze.compare.redacted import redacted_comparable

        return redacted_comparable(found, redaction)
    if is_snapshot(path):
        raise SelectionError(
            f"{name_of(path)} is a memory snapshot, the other input is a trace.",
            "Compare snapshots with snapshots and traces with traces.",
        )
    return _built(path, measuring, reading, redaction)


def load_comparable(path: str, measuring: Measuring, reading: Reading, redaction: Redaction | None) -> Comparable:
    """One side of a comparison by its figures; arguments as for `load_side`."""
    from analyze.compare import comparable_of

    side = load_side(path, measuring, reading, redaction)
    return comparable_of(side) if isinstance(side, Report) else side


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
