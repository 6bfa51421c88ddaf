"""A job in, one report out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from analyze.blocks import Advice, Page, Section, Suggestion
from analyze.notices import Notice
from analyze.ranks import Job, Joined, Standing
from analyze.ranks.imbalance import computation_spread
from analyze.ranks.kinds import KINDS
from analyze.ranks.merged import MergedFinding, merge_findings, other_rules
from analyze.ranks.traffic import measure_traffic
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.notebook import Shown
from analyze.report.plain import frame, plain
from analyze.report.ranks import blocks
from analyze.report.ranks.reasons import reason
from analyze.report.ranks.verdict import EXPLAINED, RanksVerdict, judge_job, named_ranks
from analyze.settings import Definitions
from analyze.units import duration, percent, plural

_DRIFT_NS = 20_000
_FEW, _LATE = 4, 20
_COMMUNICATION, _MOSTLY = "exposed-communication", 0.5
_COUNTED = ("device", "runtime", "nccl")
_WHAT = {"device": "GPUs", "runtime": "CUDA or ROCm versions", "nccl": "NCCL versions"}


class RanksReport(Shown, Struct, frozen=True):
    """One report on a job, independent of any format.

    Attributes:
        version: version of the program.
        name: of the folder.
        job: whose figures the document holds.
        verdict: the judgement.
        metrics: the figures that gates can name.
        findings: of single ranks, together.
        page: what text formats draw.
        definitions: limits and list lengths.
    """

    version: str
    name: str
    job: Job
    verdict: RanksVerdict
    metrics: dict[str, float | int | None]
    findings: tuple[MergedFinding, ...]
    page: Page
    definitions: Definitions

    def as_json(self) -> dict[str, Any]:
        """The document of kind `ranks`: under `job` every figure, times in ns."""
        return {
            **frame(self.version, self.page),
            "kind": "ranks",
            "name": self.name,
            "job": self.job.document(),
            "verdict": plain(self.verdict),
            "metrics": self.metrics,
            "findings": plain(self.findings),
            "gates": [],
            "ledger": plain(self.page.whole),
            "notices": plain(self.page.notices),
            "definitions": plain(self.definitions),
        }


def build_ranks_report(job: Job, *, command: str = "", definitions: Definitions | None = None) -> RanksReport:
    """Judge a job.

    Args:
        job: the job.
        command: how the folder is given on a command line, for what to run next; empty for none.
        definitions: list lengths; the defaults where None.
    """
    definitions, program, joined = definitions or Definitions(), program_version(), job.joined
    named = named_ranks(job)
    reasons = {one.rank: reason(joined, one) for one in named[:EXPLAINED]} if joined else {}
    verdict = judge_job(job, named, reasons)
    findings = merge_findings(joined) if joined else ()
    page = Page(
        subject="Job",
        name=job.name,
        about=_about(job),
        verdict=verdict.id,
        headline=verdict.headline,
        sentences=verdict.sentences,
        whole=blocks.whole(joined) if joined else None,
        sections=tuple(_sections(job, findings, list(_late(job, named, reasons, command)))),
        notices=tuple(_notices(job)),
        not_measured=(),
        next_steps=tuple(_next(job, verdict, command)),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}; definitions: analyze/docs/ranks.md",
    )
    return RanksReport(program, job.name, job, verdict, _metrics(job), findings, page, definitions)


def _about(job: Job) -> str:
    joined = job.joined
    if joined is None:
        return f"no rank analysed, {plural(len(job.left_out), 'file')} left out"
    size = f"{len(joined.files)} of {joined.world} ranks" if joined.world else plural(len(joined.files), "rank")
    names = sorted({one.file.device for one in joined.files if one.file.device})
    steps = max((one.frames["step"].height for one in joined.files), default=0)
    counted = f", {plural(steps, 'step')}" if steps else ""
    device = f", {names[0]}{', ...' if len(names) > 1 else ''}" if names else ""
    return f"{size}{device}{counted}, {duration(joined.window_ns)} in common"


def _sections(job: Job, findings: tuple[MergedFinding, ...], late: list[Suggestion]) -> Iterator[Section]:
    joined = job.joined
    if joined is not None:
        made = (
            blocks.ranks_section(job, joined),
            blocks.traffic_section(joined),
            blocks.trust_section(joined),
            _advice(joined, findings, late),
            blocks.balance_section(joined),
            blocks.pipeline_section(joined),
        )
        yield from (section for section in made if section is not None)
    left_out = blocks.files_section(job)
    if left_out is not None:
        yield left_out


def _advice(joined: Joined, findings: tuple[MergedFinding, ...], late: list[Suggestion]) -> Section | None:
    """Late ranks first, each with its bound; then what single ranks suffer from."""
    of = "ranks" if joined.whole else "recorded ranks"
    suggestions = [*late, *(_merged(one, of, _waiting(joined, one)) for one in findings)]
    if not suggestions:
        return None
    note = "The saving of a late rank is a share of the time in common; that of any other finding is a share of each "
    note += "rank's own window, and stands with the finding."
    passed, unmeasured = other_rules(joined)
    advice = Advice(
        title="What to do first",
        of="of the time in common",
        suggestions=tuple(suggestions),
        note=note,
        passed=tuple(passed.items()),
        unmeasured=tuple(unmeasured.items()),
    )
    return Section("findings", "What to do first", (advice,))


def _late(job: Job, named: list[Standing], reasons: dict[int, str], command: str) -> Iterator[Suggestion]:
    for one in named[:_LATE]:
        assert job.joined is not None
        share = one.own_common_ns / job.joined.window_ns
        why = reasons.get(one.rank, "")
        how = f"analyze {command} --rank {one.rank}" if command else f"read the full report of rank {one.rank}"
        seen = f"It arrives last in {plural(one.times_last_decided, 'collective')}"
        seen += f"; before these {why}." if why else "."
        yield Suggestion(
            id=f"late-rank-{one.rank}",
            title=f"Rank {one.rank} is late",
            severity="high" if share >= 0.10 else "medium" if share >= 0.03 else "low",  # as for findings of one trace
            saved_ns=one.own_common_ns,
            saved_share=share,
            bound=True,
            change=how,
            paragraphs=(
                ("Seen", seen),
                (
                    "How it is measured",
                    "How much later than the second-last rank it arrives, without the time that it had itself waited "
                    "for others, added up over collectives. Arriving on time cannot save more than that.",
                ),
            ),
            evidence=(),
            link="",
        )


def _waiting(joined: Joined, one: MergedFinding) -> str:
    """How much of what a finding on communication is about is waiting for other ranks; empty where it is little."""
    if one.id != _COMMUNICATION or not joined.waits.fits:
        return ""
    these = [at for at, rank in enumerate(joined.ranks) if rank in set(one.ranks)]
    wait = sum(joined.owned[at].wait_ns for at in these)
    whole = sum(joined.files[at].file.exposed_communication_ns for at in these)
    if not whole or wait < _MOSTLY * whole:
        return ""
    least = "" if joined.whole else "At least "
    return f"{least}{percent(wait / whole)} of their exposed communication is waiting for ranks that arrive later."


def _merged(one: MergedFinding, of: str, waiting: str) -> Suggestion:
    shown = ", ".join(map(str, one.ranks[:16])) + (", ..." if len(one.ranks) > 16 else "")
    saves = (
        f"By itself, the change saves {percent(one.saved_share)} of a rank's window (lower median of these ranks)."
        if one.saved_share is not None
        else "The records of these ranks do not support a number."
    )
    return Suggestion(
        id=one.id,
        title=f"{len(one.ranks)} of {one.of_ranks} {of}: {one.title}"
        + ("" if one.alike else f" (rank {one.ranks[0]})"),
        severity=one.severity,
        saved_ns=None,
        saved_share=None,
        bound=False,
        change=one.change,
        paragraphs=(("Ranks", shown), ("Saving", saves), *([("Waiting", waiting)] if waiting else [])),
        evidence=(),
        link="",
    )


def _notices(job: Job) -> Iterator[Notice]:
    joined = job.joined
    if job.foreign:
        shown = ", ".join(job.foreign[:5]) + (", ..." if len(job.foreign) > 5 else "")
        yield Notice("foreign-files", f"These files are not traces: {shown}.", len(job.foreign))
    if job.unstored:
        yield Notice(
            "not-stored", f"Summaries could not be stored: {job.unstored}. The next run reads the files again.", 1
        )
    if job.rounds[0] > 1:
        times, this = job.rounds
        text = f"The job was recorded {times} times, as rounds 0 to {times - 1}; this is round {this}. "
        text += "--round N shows another."
        yield Notice("rounds", text, job.rounds[0])
    if joined is not None:
        yield from _differences(joined)
        yield from _doubts(joined)
        yield from _of_files(joined)


def _differences(joined: Joined) -> Iterator[Notice]:
    """Ranks that run on something else than the others."""
    for name in _COUNTED:
        users: dict[str, list[int]] = {}
        for one in joined.files:
            value = str(getattr(one.file, name))
            if value:
                users.setdefault(value, []).append(int(one.file.rank or 0))
        if len(users) > 1:
            order = sorted(users, key=lambda value: (len(users[value]), value))
            text = "; ".join(f"{value} on {_counted(users[value])}" for value in order[:_FEW])
            yield Notice(f"mixed-{name}", f"{_WHAT[name]} differ: {text}.", len(users))


def _counted(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"


def _doubts(joined: Joined) -> Iterator[Notice]:
    entries = joined.entries
    disagree = np.flatnonzero(entries.mismatch)
    if len(disagree):
        at = int(disagree[0])
        rows = range(int(entries.begin[at]), int(entries.begin[at] + min(entries.count[at], 3)))
        said = ", ".join(f"rank {entries.rank[row]} issued {KINDS[entries.row_kind[row]]}" for row in rows)
        group = joined.groups[entries.group[at]].key
        text = f"Ranks disagree about what a collective is: as number {entries.index[at]} of group {group}, {said}."
        yield Notice("collective-mismatch", text, len(disagree))
    alone = int((entries.count == 1).sum())
    if alone and len(joined.files) > 1:
        text = f"{plural(alone, 'collective was', 'collectives were')} found on one rank only: "
        text += "recordings begin or end at different places, or have lost events."
        yield Notice("unmatched", text, alone)
    drift = joined.clocks.drift_ns
    worst = int(np.abs(drift).max(initial=0))
    if worst > max(_DRIFT_NS, joined.clocks.uncertainty_ns):
        rank = joined.ranks[int(np.abs(drift).argmax())]
        yield Notice("clock-drift", f"The clock of rank {rank} drifts by {duration(worst)} during the recording.", 1)
    for one in joined.files:
        if one.file.incomplete and not one.file.notices:  # else these say it
            yield Notice("incomplete-rank", f"Rank {one.file.rank}: {one.file.incomplete}.", 1)
        if one.file.dropped_steps:
            dropped = ", ".join(one.file.dropped_steps[:3])
            text = f"Rank {one.file.rank} has more collectives than a summary keeps; those of {dropped} are left out."
            yield Notice("steps-dropped", text, len(one.file.dropped_steps))


def _of_files(joined: Joined) -> Iterator[Notice]:
    """What was odd in single files, once for all ranks with a notice of that kind."""
    found: dict[str, list[tuple[int, Notice]]] = {}
    for one in joined.files:
        for notice in one.file.notices:
            found.setdefault(notice.id, []).append((int(one.file.rank or 0), notice))
    for name, mine in found.items():
        rank, first = mine[0]
        others = f" (and {plural(len(mine) - 1, 'other rank')})" if len(mine) > 1 else ""
        yield Notice(name, f"Rank {rank}{others}: {first.text}", sum(notice.count for _, notice in mine))


def _next(job: Job, verdict: RanksVerdict, command: str) -> Iterator[str]:
    if not command or job.joined is None:
        return
    rank = verdict.named[0] if verdict.named else job.joined.ranks[0]
    yield f"analyze {command} --rank {rank}"
    yield f"analyze {command} -o job.json"


def _metrics(job: Job) -> dict[str, float | int | None]:
    """What gates can name; None where it cannot be stated."""
    joined = job.joined
    if joined is None:
        names = ("exposed_wait_share", "straggler_own_share", "rank_spread", "missing_ranks")
        return dict.fromkeys(names)
    windows = sum(one.file.window_ns for one in joined.files)
    waits = bool(joined.waits.split.any()) and joined.waits.fits
    blame = joined.whole and waits and joined.window_ns and job.stragglers
    found: dict[str, float | int | None] = {
        "exposed_wait_share": sum(owned.wait_ns for owned in joined.owned) / windows if waits else None,
        "straggler_own_share": job.stragglers[0].own_common_ns / joined.window_ns if blame else None,
        "rank_spread": computation_spread(joined) if len(joined.files) > 1 else None,
        "missing_ranks": joined.ranks_missing,
    }
    rates: dict[str, list[int]] = {}
    for one in measure_traffic(joined):
        if one.busbw_p50 is not None:
            rates.setdefault(one.kind, []).append(one.busbw_p50)
    return {**found, **{f"min_busbw:{kind}": min(values) for kind, values in sorted(rates.items())}}


__all__ = ["RanksReport", "build_ranks_report"]
