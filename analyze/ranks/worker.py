"""One file to one summary: the only function that engines run."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from msgspec.structs import replace

from analyze import schema
from analyze.findings import diagnose
from analyze.guard import Guard, present
from analyze.metrics import Measures
from analyze.metrics.foundations import GAPS, TIMELINES
from analyze.ranks.events import collect, stretches
from analyze.ranks.evidence import pauses, work
from analyze.ranks.files import Candidate
from analyze.ranks.summary import FileInfo, Summary
from analyze.ranks.tables import CATEGORIES, FINDINGS, LEDGERS, PARTS, PASSED, STEPS, UNMEASURED
from analyze.settings import Definitions
from analyze.timeline import DeviceTimeline, Scope
from analyze.trace import Trace
from analyze.trace.read import read

_RANK_IN_NAME = re.compile(r"(?:rank|worker|^r)[-_\[]?(\d+)", re.IGNORECASE)
_MOST_RANKS = 2**31 - 1
_STEPS = 100
_COPIED_BYTES = 1 << 20


def summarise(candidate: Candidate) -> Summary:
    """Read one file and keep what a job needs of it.

    Args:
        candidate: the file.

    Raises:
        GpuledgerError: it cannot be read, or is no trace.
    """
    with local_copy(candidate) as path:
        trace = Trace(read(path, jobs=1, key=True))
    measures = Measures(trace, Definitions(), Scope())
    summary = joinable(measures, candidate)
    if summary.file.window_start_ns is None:
        return summary
    return _judged(measures, summary)


def joinable(measures: Measures, candidate: Candidate) -> Summary:
    """What a job's figures need of one trace, without the ledgers and findings of the rank by itself."""
    trace, lines = measures.trace, measures.ask(TIMELINES)
    at = max(range(len(lines)), key=lambda i: lines[i].window_ns, default=None)
    empty = {name: schema.empty(columns) for name, columns in PARTS.items()}
    info = _identity(trace, candidate)
    if at is None or not lines[at].window_ns:
        return Summary(info, empty)
    guard, line = Guard(), lines[at]
    partitioned = measures.ask(GAPS)
    gaps = partitioned[at] if present(partitioned) else None
    events, groups, dropped = collect(trace, line)
    owned, lost = stretches(trace, line, gaps)
    frames = {
        "event": events,
        "group": groups,
        "stretch": owned,
        "pause": guard.make_or("pauses", lambda: pauses(trace, gaps), empty["pause"]),
        "work": work(line),
        "step": _steps(trace),
    }
    return Summary(_with_times(info, trace, line, dropped, lost), {**empty, **frames})


def _judged(measures: Measures, summary: Summary) -> Summary:
    """The summary with the rank's own ledgers, work by category, and findings."""
    guard, info, trace = Guard(), summary.file, measures.trace
    if not info.incomplete and present(measures.launches) and measures.launches.complete_share < _complete():
        info = replace(info, incomplete="device records are incomplete")
    found = guard.make_or("findings", lambda: _findings(trace, measures), summary.frames["finding"])
    frames = {"ledger": _ledgers(measures), "category": _categories(measures), "finding": found}
    return Summary(info, {**summary.frames, **frames})


def rank_of(trace: Trace, name: str) -> tuple[int | None, str]:
    """The rank of a file and what says it: its metadata, else its name."""
    rank = trace.metadata.job.rank
    if rank is not None:
        return rank, "distributedInfo"
    found = _RANK_IN_NAME.search(Path(name).name)
    if found and int(found[1]) <= _MOST_RANKS:
        return int(found[1]), "file name"
    return None, ""


@contextmanager
def local_copy(candidate: Candidate) -> Iterator[str]:
    """A path of this machine with a file's bytes: the file itself, or a copy that is removed afterwards."""
    if not candidate.remote:
        yield candidate.path
        return
    import fsspec

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(candidate.shown).name)
        with fsspec.open(candidate.path, "rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target, _COPIED_BYTES)
        yield str(path)


def _identity(trace: Trace, candidate: Candidate) -> FileInfo:
    job, (rank, rank_from) = trace.metadata.job, rank_of(trace, candidate.shown)
    return FileInfo(
        path=candidate.shown,
        key=trace.recording.content_key,
        size_bytes=candidate.size_bytes,
        modified_ns=candidate.modified_ns,
        etag=candidate.etag,
        rank=rank,
        rank_from=rank_from,
        world=job.world,
        trace_group=job.trace_group,
        runtime=trace.metadata.runtime,
        nccl=job.nccl,
        incomplete="the file is cut" if trace.recording.cut else "",
        notices=tuple(trace.notices),
    )


def _with_times(info: FileInfo, trace: Trace, line: DeviceTimeline, dropped: tuple[str, ...], lost_ns: int) -> FileInfo:
    (start, end), base = line.window, trace.metadata.base_ns
    computation, communication, copy = line.exposed_ns
    return replace(
        info,
        device=trace.metadata.device_name(line.device),
        window_start_ns=start + base,
        window_end_ns=end + base,
        computation_ns=computation,
        exposed_communication_ns=communication,
        exposed_copy_ns=copy,
        idle_ns=line.window_ns - computation - communication - copy,
        communication_ns=line.by_class[1].total_ns,
        dropped_steps=dropped,
        dropped_ns=lost_ns,
    )


def _complete() -> float:
    return Definitions().complete_share


def _steps(trace: Trace) -> pl.DataFrame:
    ranges = trace.ranges.join(trace.steps.select("name", "thread", "start_ns"), on=["name", "thread", "start_ns"])
    frame = ranges.select(
        pl.col("name").cast(pl.String), pl.col("start_ns") + trace.metadata.base_ns, pl.col("dur_ns").fill_null(0)
    )
    return frame.unique("name", keep="first", maintain_order=True).sort("start_ns").cast(schema.dtypes(STEPS))  # type: ignore[arg-type]


def _ledgers(measures: Measures) -> pl.DataFrame:
    rows: list[tuple[str | None, str, int]] = []
    if present(measures.devices):
        mine = measures.headline
        if mine is not None:
            parts = (
                ("computation_ns", mine.computation_ns),
                ("exposed_communication_ns", mine.exposed_communication_ns),
                ("exposed_copy_ns", mine.exposed_copy_ns),
            )
            rows += [(None, part, ns) for part, ns in (*parts, *mine.idle.items())]
    if present(measures.step_ledgers):
        for ledger in measures.step_ledgers[:_STEPS]:
            parts = (
                ("computation_ns", ledger.computation_ns),
                ("exposed_communication_ns", ledger.exposed_communication_ns),
                ("exposed_copy_ns", ledger.exposed_copy_ns),
            )
            rows += [(ledger.name, part, ns) for part, ns in (*parts, *ledger.idle.items())]
    return pl.DataFrame(rows, schema=schema.dtypes(LEDGERS), orient="row")


def _categories(measures: Measures) -> pl.DataFrame:
    rows: list[tuple[str | None, str, int | None, int, int | None]] = []
    if present(measures.categories):
        rows += [(None, c.category, c.count, c.sum_ns, c.exclusive_ns) for c in measures.categories]
    if present(measures.step_ledgers):
        for ledger in measures.step_ledgers[:_STEPS]:
            rows += [(ledger.name, category, None, ns, None) for category, ns in ledger.categories.items()]
    return pl.DataFrame(rows, schema=schema.dtypes(CATEGORIES), orient="row")


def _findings(trace: Trace, measures: Measures) -> pl.DataFrame:
    return pl.DataFrame(list(_found(trace, measures)), schema=schema.dtypes(FINDINGS), orient="row")


def _found(trace: Trace, measures: Measures) -> Iterator[tuple[str, str, str, int | None, float | None, str]]:
    diagnosis = diagnose(measures, Definitions(), cut=trace.recording.cut)
    for passed in diagnosis.passed:
        yield passed.id, passed.reason, PASSED, None, None, ""
    for missing in diagnosis.unmeasured:
        yield missing.id, missing.reason, UNMEASURED, None, None, ""
    for finding in diagnosis.findings:
        saving = finding.saving
        ns, share = (saving.ns, saving.share) if saving else (None, None)
        yield finding.id, finding.title, finding.severity, ns, share, finding.change
