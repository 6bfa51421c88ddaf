"""What a job's report says first: who is late, only where the records prove it (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from analyze.ranks import Job, Joined, Standing
from analyze.units import duration, percent, plural

NAMED_SHARE = 0.01  # of the common window: less own lateness names nobody
_MOSTLY = 0.5
NAMED_TIMES = 2  # a rank that was last once may have had bad luck
EXPLAINED = 3  # late ranks in the verdict, and with a reason


class RanksVerdict(Struct, frozen=True):
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
    named: tuple[int, ...]


def judge_job(job: Job, named: list[Standing], reasons: Mapping[int, str]) -> RanksVerdict:
    """The verdict on a job.

    Args:
        job: the job.
        named: its `named_ranks`.
        reasons: by rank why the first of them are late, see `reasons.reason`.
    """
    joined = job.joined
    if joined is None:
        count = sum(one.reason == "no device activity" for one in job.left_out)
        what = f"{plural(count, 'file holds', 'files hold')} no device activity, and host collectives are not measured."
        first = what if count else "No file could be used. The reasons are listed below."
        return RanksVerdict("no-gpu-activity", "No GPU activity", (first,), ())
    doubt = _doubt(joined)
    if doubt:
        return RanksVerdict("not-judged", "Not judged", tuple(doubt), ())
    if not named:
        return RanksVerdict("no-straggler", "No straggler", tuple(_nobody(job, joined)), ())
    sentences = [
        line
        for at, one in enumerate(named[:EXPLAINED])
        for line in _late(joined, one, reasons.get(one.rank, ""), first=at == 0)
    ]
    return RanksVerdict("straggler", "Straggler", tuple(sentences), tuple(one.rank for one in named))


def named_ranks(job: Job) -> list[Standing]:
    """Ranks whose own lateness is worth naming: not by one bad moment, and not where ranks or proofs are missing."""
    joined = job.joined
    if joined is None or not joined.whole or _doubt(joined):
        return []
    least = NAMED_SHARE * joined.window_ns
    return [one for one in job.stragglers if one.own_common_ns >= least and one.times_last_decided >= NAMED_TIMES]


def _doubt(joined: Joined) -> list[str]:
    """Why nobody may be blamed; empty where somebody may."""
    if len(joined.files) == 1:
        return ["Only one rank was recorded, so its waiting cannot be separated from transfer."]
    if not joined.window_ns:
        return ["The recordings have no time in common, so no waits are reported. Other figures of each rank hold."]
    if not joined.waits.fits:
        return [
            "Too many collectives seem to end before their last rank arrives: clocks or matches are wrong. So no waits "
            "are reported, and no rank is blamed."
        ]
    if not joined.waits.split.any():
        return ["No collective could be matched across ranks and split into waiting and transfer."]
    if joined.whole:
        return []
    exposed = sum(owned.wait_ns for owned in joined.owned)
    share = exposed / sum(one.file.window_ns for one in joined.files)
    if joined.ranks_missing is None:
        there = f"{len(joined.files)} ranks were recorded, and the files do not say of how many"
    else:
        there = f"Only {len(joined.files)} of {joined.world} ranks were recorded"
    return [
        f"{there}. Added up, these spend at least {duration(exposed)} waiting while nothing computes, "
        f"{percent(share)} of their windows.",
        "The records cannot show which rank they wait for: one that was not recorded may have arrived even later.",
    ]


def _nobody(job: Job, joined: Joined) -> Iterator[str]:
    latest = job.stragglers[0]
    exposed = sum(owned.wait_ns for owned in joined.owned)
    share = exposed / sum(one.file.window_ns for one in joined.files)
    yield "No rank is late often enough, and by enough, to be named."
    yield f"Exposed wait is {percent(share)} of all ranks' windows."
    if latest.own_common_ns:
        bound = percent(latest.own_common_ns / joined.window_ns)
        yield (
            f"The latest is rank {latest.rank}. It arrives last in {plural(latest.times_last_decided, 'collective')}; "
            f"arriving on time, it would save at most {duration(latest.own_common_ns)}, {bound} of the time in common."
        )


def _late(joined: Joined, one: Standing, why: str, *, first: bool) -> Iterator[str]:
    total = int(joined.waits.split.sum())
    before = f"; before these {why}" if why else ""
    yield f"Rank {one.rank} arrives last in {one.times_last_decided:,} of {total:,} collectives{before}."
    if first:
        exposed = sum(owned.wait_ns for at, owned in enumerate(joined.owned) if joined.ranks[at] != one.rank)
        caused = one.caused_exposed_wait_ns
        of_all = f" of their {duration(exposed)} of exposed wait" if caused <= exposed else ""
        yield f"Added up over the other ranks, they wait {duration(caused)}{of_all} for it."
    share = percent(one.own_common_ns / joined.window_ns)
    common = duration(joined.window_ns)
    yield f"Arriving on time, it would save at most {duration(one.own_common_ns)} of the {common} in common ({share})."
    mine = joined.waits.decided & (joined.waits.last == one.rank)
    between_stages = int(joined.lateness.own_ns[mine & joined.entries.pair].sum())
    if between_stages >= _MOSTLY * one.own_ns:
        yield "Most of that is between stages of a pipeline, where part of the waiting belongs to the schedule."
