"""A job in, one report out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyze.blocks import Advice, Page, Section, Suggestion
from analyze.notes import Notice
from analyze.ranks import Job, Joined
from analyze.ranks.imbalance import computation_spread
from analyze.ranks.merged import MergedFinding, merge_findings, other_rules
from analyze.ranks.traffic import measure_traffic
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.notebook import Shown
from analyze.report.plain import frame, plain
from analyze.report.ranks import blocks
from analyze.report.ranks.reasons import reason
from analyze.report.ranks.verdict import RanksVerdict, judge_job, named_ranks
from analyze.settings import Definitions
from analyze.units import duration, percent, plural

_DRIFT_NS = 20_000
_COUNTED = ("device", "runtime", "nccl")
_WHAT = {"device": "GPUs", "runtime": "CUDA or ROCm versions", "nccl": "NCCL versions"}


@dataclass(frozen=True, repr=False)
class RanksReport(Shown):
    """One report on a job, independent of any format.

    Attributes:
        version: version of the program.
        name: of the folder.
        document: every figure, see `ranks.document`.
        verdict: the judgement.
        metrics: the figures that gates can name.
        findings: of single ranks, together.
        page: what text formats draw.
        definitions: limits and list lengths.
    """

    version: str
    name: str
    document: dict[str, Any]
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
            "job": self.document,
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
    verdict = judge_job(job)
    findings = merge_findings(joined) if joined else ()
    page = Page(
        subject="Job",
        name=job.name,
        about=_about(job),
        verdict=verdict.id,
        headline=verdict.headline,
        sentences=verdict.sentences,
        whole=blocks.whole(joined) if joined else None,
        sections=tuple(_sections(job, findings, command)),
        notices=tuple(_notices(job)),
        not_measured=(),
        next_steps=tuple(_next(job, verdict, command)),
        footer=f"{TOOL} {program}, report schema {SCHEMA_VERSION}; definitions: analyze/docs/ranks.md",
    )
    return RanksReport(program, job.name, job.document(), verdict, _metrics(job), findings, page, definitions)


def _about(job: Job) -> str:
    joined = job.joined
    if joined is None:
        return f"no rank, {plural(len(job.left_out), 'file')} left out"
    size = f"{len(joined.files)} of {joined.world} ranks" if joined.world else plural(len(joined.files), "rank")
    names = sorted({one.file.device for one in joined.files if one.file.device})
    steps = max((one.frames["step"].height for one in joined.files), default=0)
    counted = f", {plural(steps, 'step')}" if steps else ""
    device = f", {names[0]}{', ...' if len(names) > 1 else ''}" if names else ""
    return f"{size}{device}{counted}, {duration(joined.window_ns)} in common"


def _sections(job: Job, findings: tuple[MergedFinding, ...], command: str) -> Iterator[Section]:
    joined = job.joined
    if joined is not None:
        made = (
            blocks.ranks_section(job, joined),
            blocks.traffic_section(joined),
            blocks.trust_section(joined),
            _advice(job, joined, findings, command),
            blocks.balance_section(joined),
            blocks.pipeline_section(joined),
        )
        yield from (section for section in made if section is not None)
    left_out = blocks.files_section(job)
    if left_out is not None:
        yield left_out


def _advice(job: Job, joined: Joined, findings: tuple[MergedFinding, ...], command: str) -> Section | None:
    """Late ranks first, each with its bound; then what single ranks suffer from."""
    suggestions = [*_late(job, joined, command), *(_merged(one) for one in findings)]
    if not suggestions:
        return None
    note = "Savings of a late rank are of the time in common; those of findings are of each rank's own window."
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


def _late(job: Job, joined: Joined, command: str) -> Iterator[Suggestion]:
    for one in named_ranks(job):
        share = one.own_ns / joined.window_ns
        why = reason(joined, one)
        how = f"analyze {command} --rank {one.rank}" if command else f"read the full report of rank {one.rank}"
        seen = f"It comes last in {plural(one.times_last_decided, 'collective')}"
        seen += f"; before them {why}." if why else "."

        yield Suggestion(
            id="late-rank",
            title=f"Rank {one.rank} is late",
            severity="high" if share >= 0.10 else "medium" if share >= 0.03 else "low",  # as for findings of one trace
            saved_ns=one.own_ns,
            saved_share=share,
            bound=True,
            change=how,
            paragraphs=(
                ("Seen", seen),
                (
                    "How it is measured",
                    "By how much it arrives after the second-last rank, without what it had itself waited for others, "
                    "added up over collectives. Being on time ends no more than that.",
                ),
            ),
            evidence=(),
            link="",
        )


def _merged(one: MergedFinding) -> Suggestion:
    shown = ", ".join(map(str, one.ranks[:16])) + (", ..." if len(one.ranks) > 16 else "")
    saves = (
        f"Alone it would save {percent(one.saved_share)} of the rank's own window (lower median of these ranks)."
        if one.saved_share is not None
        else "The records of these ranks support no number."
    )
    return Suggestion(
        id=one.id,
        title=f"{len(one.ranks)} of {one.of_ranks} ranks: {one.title}",
        severity=one.severity,
        saved_ns=None,
        saved_share=None,
        bound=False,
        change=one.change,
        paragraphs=(("Ranks", shown), ("Saving", saves)),
        evidence=(),
        link="",
    )


def _notices(job: Job) -> Iterator[Notice]:
    joined = job.joined
    if job.foreign:
        shown = ", ".join(job.foreign[:5]) + (", ..." if len(job.foreign) > 5 else "")
        yield Notice("foreign-files", f"Not traces: {shown}.", len(job.foreign))
    if job.unstored:
        yield Notice("not-stored", f"Summaries could not be stored: {job.unstored}. The next run reads them again.", 1)
    if job.rounds[0] > 1:
        text = f"The job was recorded {job.rounds[0]} times; this is round {job.rounds[1]}. --round N shows another."
        yield Notice("rounds", text, job.rounds[0])
    if joined is not None:
        yield from _differences(joined)
        yield from _doubts(joined)


def _differences(joined: Joined) -> Iterator[Notice]:
    """Ranks that run on something else than the others."""
    for name in _COUNTED:
        users: dict[str, list[int]] = {}
        for one in joined.files:
            value = str(getattr(one.file, name))
            if value:
                users.setdefault(value, []).append(int(one.file.rank or 0))
        if len(users) > 1:
            most = max(users, key=lambda value: len(users[value]))
            others = [f"rank {ranks[0]} {value}" for value, ranks in sorted(users.items()) if value != most]
            text = f"{_WHAT[name]} differ: {', '.join(others[:3])}, {len(users[most])} ranks {most}."
            yield Notice(f"mixed-{name}", text, len(users))


def _doubts(joined: Joined) -> Iterator[Notice]:
    entries = joined.entries
    disagree = np.flatnonzero(entries.mismatch)
    if len(disagree):
        at = int(disagree[0])
        rows = entries.rows.slice(int(entries.begin[at]), int(entries.count[at]))
        said = ", ".join(f"rank {rank} {kind}" for rank, kind in rows.select("rank", "kind").head(3).iter_rows())
        group = joined.groups[entries.group[at]].key
        text = f"Ranks issued different collectives as one, such as {said} ({group}, number {entries.index[at]})."
        yield Notice("collective-mismatch", text, len(disagree))
    alone = int((entries.count == 1).sum())
    if alone and len(joined.files) > 1:
        text = f"{plural(alone, 'collective was', 'collectives were')} found on one rank only: "
        text += "recordings begin, end or lose events at different places."
        yield Notice("unmatched", text, alone)
    drift = joined.clocks.drift_ns
    worst = int(np.abs(drift).max(initial=0))
    if worst > max(_DRIFT_NS, joined.clocks.uncertainty_ns):
        rank = joined.ranks[int(np.abs(drift).argmax())]
        yield Notice("clock-drift", f"The clock of rank {rank} drifts by {duration(worst)} during the recording.", 1)
    for one in joined.files:
        if one.file.incomplete:
            yield Notice("incomplete-rank", f"Rank {one.file.rank}: {one.file.incomplete}.", 1)
        if one.file.dropped_steps:
            dropped = ", ".join(one.file.dropped_steps[:3])
            text = f"Rank {one.file.rank} has more collectives than a summary keeps: without those of {dropped}."
            yield Notice("steps-dropped", text, len(one.file.dropped_steps))


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
        "straggler_own_share": job.stragglers[0].own_ns / joined.window_ns if blame else None,
        "rank_spread": computation_spread(joined) if len(joined.files) > 1 else None,
        "missing_ranks": joined.ranks_missing,
    }
    rates: dict[str, list[int]] = {}
    for one in measure_traffic(joined):
        if one.busbw_p50 is not None:
            rates.setdefault(one.kind, []).append(one.busbw_p50)
    return {**found, **{f"min_busbw:{kind}": min(values) for kind, values in sorted(rates.items())}}


__all__ = ["RanksReport", "build_ranks_report"]
