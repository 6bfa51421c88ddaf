"""`analyze FOLDER`: the traces of one job of many ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from analyze.cli.deliver import Delivery
from analyze.errors import NotATraceError, SelectionError

if TYPE_CHECKING:
    from analyze.compare.gates import Gate
    from analyze.compare.ranks import RanksComparison
    from analyze.ranks import Job
    from analyze.ranks.engine import Outcome

_Command = TypeVar("_Command", bound=Callable[..., Any])
_LISTED = 8


class ShardType(click.ParamType):  # type: ignore[type-arg]
    """One of N parts as I/N, counted from 0."""

    name = "I/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """The part and how many there are."""
        if isinstance(value, tuple):
            return value[0], value[1]
        part, _, parts = str(value).partition("/")
        if part.isdecimal() and parts.isdecimal() and int(part) < int(parts):
            return int(part), int(parts)
        raise click.BadParameter(f"{value!r} is not I/N with I from 0 to N-1, as in 0/64.", ctx, param)


class RanksOptions(Struct, frozen=True):
    """The options of `rank_options`.

    Attributes:
        rank: the rank to report on alone.
        job: which of several jobs.
        round: which of several recordings.
        store: folder of summaries, None for the user's cache.
        workers: local processes.
        cluster: address of a Dask scheduler.
        shard: the part of the files to summarise, and no report.
        from_store: folder of summaries to join without looking at traces.
    """

    rank: int | None
    job: str | None
    round: int | None
    store: str | None
    workers: int | None
    cluster: str | None
    shard: tuple[int, int] | None
    from_store: str | None


_NO_OPTIONS = RanksOptions(None, None, None, None, None, None, None, None)


def rank_options(command: _Command) -> _Command:
    """What concerns folders of many ranks."""
    for decorate in reversed(
        (
            click.option("--rank", type=click.IntRange(0), help="Of a folder: the full report of rank N."),
            click.option("--job", "job", metavar="N", help="Of a folder of several jobs: the one of N ranks."),
            click.option("--round", "round_", type=click.IntRange(0), help="Of a job recorded again: round N, from 0."),
            click.option("--store", metavar="DIR", help="Keep summaries of ranks in DIR. Default: the user's cache."),
            click.option("--workers", type=click.IntRange(1, 1024), help="Processes for a folder. Default: all cores."),
            click.option("--cluster", metavar="ADDRESS", help="Read a folder with Dask: tcp://HOST:PORT."),
            click.option("--shard", type=ShardType(), help="Only put part I of N of a folder into the store."),
            click.option("--from-store", metavar="DIR", help="Join the summaries in DIR without reading traces."),
        )
    ):
        command = decorate(command)
    return command


def is_job(trace: str | None, others: Sequence[str], options: RanksOptions) -> bool:
    """Whether the inputs are of many ranks."""
    if others or options.from_store is not None:
        return True
    return trace is not None and (os.path.isdir(trace) or _in_store(trace))


def _in_store(path: str) -> bool:
    """Whether a path is of an object store; web pages are not."""
    return "://" in path and not path.startswith(("http://", "https://", "file://"))


def only_trace(trace: str, others: Sequence[str]) -> str | None:
    """The trace of a folder that holds no other; None where there are several, or none."""
    if others or _in_store(trace):
        return None
    from analyze.ranks.files import candidates, is_candidate

    found = [one for one in candidates([trace]) if not one.problem and is_candidate(one)]
    if len(found) != 1:
        return None
    click.echo(f"{trace} holds one trace: {found[0].shown}", err=True)
    return found[0].path


def report_on_ranks(
    paths: Sequence[str],
    options: RanksOptions,
    gates: tuple[Gate, ...],
    delivery: Delivery,
    *,
    top: int,
    junit: str | None = None,
) -> int:
    """Read a job, report on it, and give the exit code.

    Raises:
        NotATraceError: there is no trace.
        SelectionError: the traces are of no one job, or there is no such job or round.
    """
    from analyze.compare.ranks_gates import judged_ranks
    from analyze.ranks import Job
    from analyze.report.ranks import build_ranks_report
    from analyze.settings import Definitions

    delivery.check(list(paths), junit)
    outcome, foreign = _read(paths, options)
    if options.shard is not None:
        _report_shard(outcome, options)
        return 0
    name = Path(options.from_store).name if options.from_store and not paths else _name(paths)
    redaction = delivery.redaction()
    if redaction is not None:
        from analyze.report.ranks.redact import redact_outcome

        outcome, foreign = redact_outcome(outcome, redaction), [redaction.file(one) for one in foreign]
        name = "job"
    job = Job.of(name, outcome, foreign, job=options.job, round=options.round)
    _check(job, outcome, paths)
    command = _command(paths) if not options.from_store and redaction is None else ""
    report = build_ranks_report(job, command=command, definitions=Definitions(top=top))
    judged = judged_ranks(report, gates)
    if junit is not None:
        from analyze.compare.junit import write_junit

        write_junit(judged, junit, force=delivery.force)
    delivery.deliver(judged)
    return int(judged.failed)


def path_of_rank(paths: Sequence[str], options: RanksOptions) -> str:
    """The file of one rank.

    Raises:
        SelectionError: there is no such rank in the job.
    """
    from analyze.ranks import Job
    from analyze.ranks.files import candidates

    outcome, foreign = _read(paths, options)
    job = Job.of(_name(paths), outcome, foreign, job=options.job, round=options.round)
    ranks = {one.file.rank: one.file.path for one in job.joined.files} if job.joined else {}
    if options.rank not in ranks:
        shown = ", ".join(map(str, list(ranks)[:_LISTED])) + (", ..." if len(ranks) > _LISTED else "")
        raise SelectionError(f"There is no rank {options.rank} in {_name(paths)}.", f"Ranks: {shown or 'none'}.")
    return next(one.path for one in candidates(paths) if one.shown == ranks[options.rank])


def compare_folders(paths: Sequence[str]) -> RanksComparison:
    """Two folders of ranks beside each other.

    Raises:
        SelectionError: there are more than two, or one of them holds no rank with device activity.
    """
    from analyze.compare.ranks import compare_jobs
    from analyze.ranks import Job

    if len(paths) > 2:
        raise SelectionError(f"{len(paths)} folders of ranks cannot be compared at once.", "Pass two.")
    jobs = []
    for path in paths:
        outcome, foreign = _read([path], _NO_OPTIONS)
        jobs.append(Job.of(_name([path]), outcome, foreign))
        if jobs[-1].joined is None:
            raise SelectionError(
                f"{path} holds no rank with device activity.", "Pass folders of traces of one job each."
            )
    return compare_jobs(*jobs)


def _read(paths: Sequence[str], options: RanksOptions) -> tuple[Outcome, list[str]]:
    from analyze.ranks import from_store, read_all
    from analyze.ranks.store import default_folder

    if options.from_store is not None:
        return from_store(options.from_store), []
    with _progress() as report_progress:
        return read_all(
            paths,
            workers=options.workers,
            store=options.store or default_folder(),
            cluster=options.cluster,
            shard=options.shard,
            progress=report_progress,
        )


def _check(job: Job, outcome: Outcome, paths: Sequence[str]) -> None:
    """Refuse files that are no job: nothing could be read, or each is of a job of its own."""
    if not outcome.summaries and outcome.failures:
        first = outcome.failures[0]
        raise NotATraceError(f"No file could be read; the first, {first.path}: {first.reason.rstrip('.')}.", None)
    alone = job.joined is None or len(job.joined.files) == 1
    used = [one for one in outcome.summaries if one.file.window_start_ns is not None]
    if not alone or len(used) < 2 or len({one.file.key for one in used}) < 2:
        return
    from analyze.ranks.rounds import job_label, jobs_of

    jobs = jobs_of(used)
    lines = [f"\n  {job_label(key)}: {', '.join(one.file.path for one in mine[:3])}" for key, mine in jobs.items()]
    more = f"\n  and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
    listed = "".join(lines[:_LISTED]) + more
    text = (
        f"{paths[0]} holds {len(used)} traces, but no two" if len(paths) == 1 else f"No two of the {len(used)} traces"
    )
    raise SelectionError(
        f"{text} are ranks of one job.", f"Pass one of the files, or compare them: analyze compare A B. Jobs:{listed}"
    )


def _report_shard(outcome: Outcome, options: RanksOptions) -> None:
    assert options.shard is not None
    done, (part, parts) = len(outcome.summaries), options.shard
    click.echo(f"part {part} of {parts}: {done} files summarised, {outcome.stored} of them were in the store", err=True)
    for failure in outcome.failures:
        click.echo(f"{failure.path}: {failure.reason}", err=True)
    if outcome.unstored:
        hint = "Pass --store DIR with room for them."
        raise SelectionError(f"Summaries could not be stored: {outcome.unstored}.", hint)


def _name(paths: Sequence[str]) -> str:
    if len(paths) > 1:
        return f"{len(paths)} inputs"
    return Path(paths[0]).absolute().name if "://" not in paths[0] else paths[0]


def _command(paths: Sequence[str]) -> str:
    from analyze.report.commands import quoted_path

    quoted = [quoted_path(path) for path in paths]
    return " ".join(path for path in quoted if path) if all(quoted) else ""


@contextmanager
def _progress() -> Iterator[Callable[[int, int, int], None] | None]:
    """Files done so far, on a terminal's stderr; erased at the end."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(done: int, files: int, stored: int) -> None:
        sys.stderr.write(f"\r\x1b[K{done} of {files} files, {stored} from the store")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
