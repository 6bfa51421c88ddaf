"""What a job's report says first: who is late, only where the records prove it (ranks.md, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyze.ranks import Job, Joined, Standing
from analyze.report.ranks.reasons import reason
from analyze.units import duration, percent, plural

NAMED_SHARE = 0.01  # of the common window: less own lateness names nobody
NAMED_TIMES = 2  # a rank that was last once may have had bad luck
_NAMED = 3


@dataclass(frozen=True, slots=True)
class RanksVerdict:
    """The judgement on a job.

    Attributes:
        id: straggler, no-straggler, not-judged or no-gpu-activity.
        headline: the same in a word or two.
        sentences: what it says.
        named: ranks that are named as late, latest first.
    """

    id: str
    headline: str
    sentences: tuple[str, ...]
    named: tuple[int, ...] = ()


def judge_job(job: Job) -> RanksVerdict:
    """The verdict on a job."""
    joined = job.joined
    if joined is None:
        count = sum(one.reason == "no device activity" for one in job.left_out)
        what = f"{plural(count, 'file has', 'files have')} no device activity: host collectives are not measured."
        first = what if count else "No file could be used; the reasons are listed below."
        return RanksVerdict("no-gpu-activity", "No GPU activity", (first,))
    doubt = _doubt(joined)
    if doubt:
        return RanksVerdict("not-judged", "Not judged", tuple(doubt))
    named = named_ranks(job)
    if not named:
        return RanksVerdict("no-straggler", "No straggler", tuple(_nobody(job, joined)))
    sentences = [line for at, one in enumerate(named[:_NAMED]) for line in _late(joined, one, first=at == 0)]
    return RanksVerdict("straggler", "Straggler", tuple(sentences), tuple(one.rank for one in named))


def named_ranks(job: Job) -> list[Standing]:
    """Ranks whose own lateness is worth naming: not by one bad moment, and not where ranks or proofs are missing."""
    joined = job.joined
    if joined is None or not joined.whole or _doubt(joined):
        return []
    least = NAMED_SHARE * joined.window_ns
    return [one for one in job.stragglers if one.own_ns >= least and one.times_last_decided >= NAMED_TIMES]


def _doubt(joined: Joined) -> list[str]:
    """Why nobody may be blamed; empty where somebody may."""
    if len(joined.files) == 1:
        return ["One rank was recorded: waiting cannot be told from transfer."]
    if not joined.window_ns:
        return ["The recordings have no time in common, so no waits are reported; the table per rank still holds."]
    if not joined.waits.fits:
        return ["Clocks or matches do not fit: collectives end before their last rank arrives. No wait is reported."]
    if not joined.waits.split.any():
        return ["No collective could be matched across ranks in a way that tells waiting from transfer."]
    if joined.whole:
        return []
    exposed = sum(owned.wait_ns for owned in joined.owned)
    share = exposed / sum(one.file.window_ns for one in joined.files)
    if joined.ranks_missing is None:
        there = f"{len(joined.files)} ranks were recorded, of how many is not known"
    else:
        there = f"{len(joined.files)} of {joined.world} ranks were recorded"
    return [
        f"{there}. These wait at least {duration(exposed)} without computation, added up over ranks: "
        f"{percent(share)} of their windows.",
        "Who makes them wait cannot be said: a rank that was not recorded may have come later than all of these.",
    ]


def _nobody(job: Job, joined: Joined) -> Iterator[str]:
    latest = job.stragglers[0]
    exposed = sum(owned.wait_ns for owned in joined.owned)
    share = exposed / sum(one.file.window_ns for one in joined.files)
    yield f"No rank is late often and long enough to be named; exposed wait is {percent(share)} of all ranks' windows."
    if latest.own_ns:
        bound = percent(latest.own_ns / joined.window_ns)
        yield (
            f"The latest is rank {latest.rank}: it comes last in {latest.times_last_decided} collectives, and being on "
            f"time would save at most {duration(latest.own_ns)} ({bound}) of the time in common."
        )


def _late(joined: Joined, one: Standing, *, first: bool) -> Iterator[str]:
    total = int(joined.waits.split.sum())
    why = reason(joined, one)
    before = f"; before them {why}" if why else ""
    yield f"Rank {one.rank} comes last in {one.times_last_decided:,} of {total:,} collectives{before}."
    if first:
        exposed = sum(owned.wait_ns for at, owned in enumerate(joined.owned) if joined.ranks[at] != one.rank)
        caused = one.caused_exposed_wait_ns
        of_all = f" of their {duration(exposed)} of exposed wait" if caused <= exposed else ""
        yield f"Where it is last, the others wait {duration(caused)}{of_all} for it, added up over ranks."
    share = percent(one.own_ns / joined.window_ns)
    common = duration(joined.window_ns)
    yield f"On time, it would save at most {duration(one.own_ns)} of the {common} in common ({share})."
