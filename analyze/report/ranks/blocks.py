"""The blocks of a job's report: one question each."""

from __future__ import annotations

from collections.abc import Iterator

from analyze.blocks import Breakdown, Column, Kind, Part, Section, Stat, Table
from analyze.ranks import Job, Joined
from analyze.ranks.bandwidth import LATENCY_NS
from analyze.ranks.document import straggler_order
from analyze.ranks.imbalance import measure_categories, measure_steps
from analyze.ranks.pipeline import Stage, StageStep, measure_pipeline
from analyze.ranks.traffic import Traffic, measure_traffic
from analyze.ranks.waits import Owned
from analyze.units import TRANSFER_UNITS, duration, memory, plural, scaled

_BRIEF_RANKS, _BRIEF_TRAFFIC, _LISTED = 4, 3, 200


def exposed(joined: Joined, owned: Owned) -> tuple[int, int, int]:
    """Exposed wait and transfer of a rank, and what is either; all is where clocks or matches do not fit."""
    if joined.waits.fits:
        return owned.wait_ns, owned.transfer_ns, owned.unsplit_ns
    return 0, 0, owned.wait_ns + owned.transfer_ns + owned.unsplit_ns


def whole(joined: Joined) -> Breakdown:
    """Where the windows of all ranks go; with ranks missing a wait can be longer than what is known of it."""
    files = [one.file for one in joined.files]
    wait, transfer, either = (sum(column) for column in zip(*(exposed(joined, o) for o in joined.owned), strict=True))
    least, most = ("", "") if joined.whole else (", at least", ", at most")
    parts = (
        Part("Computation", sum(one.computation_ns for one in files), idle=False),
        Part(f"Exposed wait{least}", wait, idle=True),
        Part(f"Exposed transfer{most}", transfer, idle=False),
        Part("Exposed wait or transfer", either, idle=False),
        Part("Exposed copies", sum(one.exposed_copy_ns for one in files), idle=False),
        Part("Idle", sum(one.idle_ns for one in files), idle=True),
    )
    return Breakdown("All ranks added up", "of windows", parts)


def ranks_section(job: Job, joined: Joined) -> Section:
    """What each rank does, and for whom it waits."""
    blame = joined.whole and joined.waits.fits
    largest = job.waits.unique("rank", keep="first", maintain_order=True)  # they are in order of exposed wait
    cells = largest.select("rank", "last", "exposed_wait_ns").iter_rows()
    most = {rank: (last, ns) for rank, last, ns in cells} if blame else {}
    at = {rank: place for place, rank in enumerate(joined.ranks)}
    rows = []
    order = straggler_order(job.standings) if blame else list(job.standings)
    for one in order[:_LISTED]:
        file, owned = joined.files[at[one.rank]].file, joined.owned[at[one.rank]]
        last, ns = most.get(one.rank, (None, 0))
        wait, transfer, either = exposed(joined, owned)
        known = joined.waits.fits
        rows.append(
            (
                str(one.rank),
                file.computation_ns,
                wait if known else None,
                transfer if known else None,
                file.idle_ns,
                one.times_last_decided if blame else None,
                one.own_ns if blame else None,
                f"{last} ({duration(ns)})" if last is not None and ns else "–",
                either,
                file.window_ns,
                int(joined.clocks.offset_ns[at[one.rank]]),
                file.path,
            )
        )
    missing = "" if joined.whole else " Ranks are missing: each wait may be longer than shown, and no rank is blamed."
    table = Table(
        title="Ranks",
        columns=_RANK_COLUMNS,
        rows=tuple(rows),
        brief=_BRIEF_RANKS,
        note="Exposed wait and transfer are times in which nothing computes. Last: collectives in which the rank "
        "arrives last, by more than the uncertainty of the clocks. Own lead: how much later than the second-last rank "
        "it arrives in these, without the time that it had itself waited for other ranks." + missing,
        total=len(order),
    )
    return Section("ranks", "Ranks", (table, *_matrix(job)))


_RANK_COLUMNS = (
    Column("rank", Kind.TEXT),
    Column("computing", Kind.TIME),
    Column("exp. wait", Kind.TIME),
    Column("transfer", Kind.TIME),
    Column("idle", Kind.TIME),
    Column("last", Kind.COUNT),
    Column("own lead", Kind.TIME),
    Column("waits most for", Kind.FIGURE),
    Column("wait or transfer", Kind.TIME),
    Column("window", Kind.TIME),
    Column("clock ahead", Kind.TIME),
    Column("file", Kind.CODE),
)


def _matrix(job: Job) -> Iterator[Table]:
    rows = job.waits.head(_LISTED).rows()
    if rows and job.joined is not None and job.joined.waits.fits:
        yield Table(
            title="Who waits for whom" if job.joined.whole else "Who arrives last among the recorded ranks",
            columns=(
                Column("rank", Kind.TEXT),
                Column("waits for", Kind.TEXT),
                Column("collectives", Kind.COUNT),
                Column("wait", Kind.TIME),
                Column("exposed wait", Kind.TIME),
            ),
            rows=tuple((str(rank), str(last), count, wait, exposed) for rank, last, count, wait, exposed in rows),
            note="A wait on two streams at once counts twice here.",
            total=job.waits.height,
        )


def traffic_section(joined: Joined) -> Section | None:
    """Collectives by kind, group and size."""
    found = measure_traffic(joined)
    if not found:
        return None
    known = joined.waits.fits
    rows = tuple(
        (_named(one), one.count, one.exposed_wait_ns, one.data_p50_ns, _rate(one))
        if known
        else (_named(one), one.count, None, None, "–")
        for one in found
    )
    table = Table(
        title="Collectives",
        columns=(
            Column("collectives", Kind.TEXT),
            Column("n", Kind.COUNT),
            Column("exp. wait", Kind.TIME),
            Column("data p50", Kind.TIME),
            Column("busbw p50", Kind.FIGURE),
        ),
        rows=rows,
        brief=_BRIEF_TRAFFIC,
        note="Waits are added up over ranks. Data time runs from the arrival of the last rank to the last end. "
        "Bus bandwidth is of the data time alone, where the size and all ranks of the group are recorded and the data "
        f"time is at least {duration(LATENCY_NS)}: a shorter one measures latency.",
    )
    return Section("collectives", "Collectives", (table, _kernels(found)) if known else (table,))


def _kernels(found: tuple[Traffic, ...]) -> Table:
    """The kernels of all ranks, as far as they can be split into waiting and data."""
    return Table(
        title="Kernels of all ranks",
        columns=(
            Column("collectives", Kind.TEXT),
            Column("ranks", Kind.COUNT),
            Column("n", Kind.COUNT),
            Column("split", Kind.COUNT),
            Column("wait", Kind.TIME),
            Column("wait or transfer", Kind.TIME),
        ),
        rows=tuple((_named(one), one.ranks, one.count, one.split, one.wait_ns, one.unsplit_ns) for one in found),
        note="A collective can be split into waiting and data if no rank can leave it before the last one arrives, "
        "and two or more of its ranks were recorded.",
    )


def _named(one: Traffic) -> str:
    size = f" {memory(one.bucket_bytes)}" if one.bucket_bytes is not None else ""
    uneven = f", uneven {one.uneven:.1f}x" if one.uneven else ""
    kind = "different kinds" if one.kind == "mismatch" else one.kind
    return f"{kind} {one.dimension}{size}{uneven}"


def _rate(one: Traffic) -> str:
    if one.busbw_p50 is None:
        return "latency" if one.data_p50_ns is not None and one.data_p50_ns < LATENCY_NS else "–"
    return f"{scaled(one.busbw_p50, TRANSFER_UNITS)}/s"


def trust_section(joined: Joined) -> Section:
    """What the figures stand on."""
    how: dict[str, int] = {}
    for name in joined.how.values():
        how[name] = how.get(name, 0) + 1
    matched = ", ".join(f"{plural(count, 'group')} by {_HOW[name]}" for name, count in sorted(how.items()))
    stats = [Stat("Matched", matched or "no collectives"), Stat("Clocks", _clocks(joined))]
    missing = joined.ranks_missing
    if missing:
        listed = sorted(set(range(joined.world or 0)) - set(joined.ranks))
        shown = ", ".join(map(str, listed[:8])) + (", ..." if len(listed) > 8 else "")
        stats.append(Stat("Missing", f"{plural(missing, 'rank')}: {shown}; each wait may be longer than printed"))
    sources: dict[str, int] = {}
    for one in joined.files:
        sources[one.file.rank_from] = sources.get(one.file.rank_from, 0) + 1
    ranks = ", ".join(f"{count} from {_SOURCES.get(name, name)}" for name, count in sorted(sources.items()))
    stats.append(Stat("Numbers of ranks", ranks, brief=False))
    return Section("trust", "Trust", tuple(stats))


_HOW = {"seq": "sequence number (Seq)", "order": "order", "ends": "time of their ends"}
_SOURCES = {"distributedInfo": "distributedInfo in the file", "file name": "the name of the file"}


def _clocks(joined: Joined) -> str:
    clocks = joined.clocks
    if len(joined.files) == 1:
        return "one rank, nothing to compare"
    text = f"agree to within {duration(clocks.uncertainty_ns)}"
    parts = []
    ahead: dict[int, list[int]] = {}
    for at in range(len(joined.ranks)):
        if clocks.offset_ns[at]:
            ahead.setdefault(round(int(clocks.offset_ns[at]) / 10_000), []).append(at)
    for places in list(ahead.values())[:2]:
        offset = sorted(int(clocks.offset_ns[at]) for at in places)[(len(places) - 1) // 2]
        read = max(int(clocks.found_from[at]) for at in places)
        side = "ahead" if offset > 0 else "behind"
        verb = "is" if len(places) == 1 else "are"
        named = (
            f"that of rank {joined.ranks[places[0]]}"
            if len(places) == 1
            else f"those of ranks {_spans(joined, places)}"
        )
        parts.append(f"{named} {verb} {duration(abs(offset))} {side} (found from up to {read} collectives each)")
    if not parts:
        parts.append("no offset between ranks")
    components = int(clocks.component.max(initial=0)) + 1
    if components > 1:
        parts.append(f"the ranks form {components} sets that share no collective, so their clocks cannot be compared")
    return "; ".join((text, *parts))


def _spans(joined: Joined, places: list[int]) -> str:
    """Ranks as few spans: 0-3, 8-15."""
    ranks = [joined.ranks[at] for at in places]
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in spans]
    return ", ".join(shown[:6]) + (", ..." if len(shown) > 6 else "")


def balance_section(joined: Joined) -> Section | None:
    """Whether ranks do the same work."""
    steps, categories = measure_steps(joined), measure_categories(joined)
    blocks: list[Table] = []
    if categories:
        blocks.append(
            Table(
                title="Work by kind",
                columns=(
                    Column("kind of work", Kind.TEXT),
                    Column("most", Kind.TIME),
                    Column("median", Kind.TIME),
                    Column("above median", Kind.SHARE),
                    Column("rank", Kind.TEXT),
                    Column("uneven", Kind.TEXT),
                ),
                rows=tuple(
                    (c.category, c.most_ns, c.median_ns, c.spread, str(c.rank), "yes" if c.flagged else "no")
                    for c in categories
                ),
                note="Time in which only this kind of work runs. Uneven: at least 5% above the lower median, "
                "and highest on the same rank in more than half of the steps.",
            )
        )
    if steps:
        blocks.append(
            Table(
                title="Steps on the hosts",
                columns=(
                    Column("step", Kind.TEXT),
                    Column("shortest", Kind.TIME),
                    Column("median", Kind.TIME),
                    Column("longest", Kind.TIME),
                    Column("longest on", Kind.TEXT),
                    Column("starts apart", Kind.TIME),
                ),
                rows=tuple((s.name, s.least_ns, s.median_ns, s.most_ns, str(s.longest), s.skew_ns) for s in steps),
            )
        )
    return Section("balance", "Balance", tuple(blocks)) if blocks else None


def pipeline_section(joined: Joined) -> Section | None:
    """Pipeline stages and their bubbles, all steps together and step by step."""
    stages = measure_pipeline(joined)
    if not stages:
        return None
    note = "Bubble: exposed wait for neighbours and idle time, of the time of the steps. Ideal bubble: (p-1)/(m+p-1), "
    note += "with p equal stages and m microbatches per step, counted by the receives of the last stage."
    if any(one.all_steps.wait_ns is None for one in stages):
        note += " Sends and receives that do not say their two ranks cannot be split into waiting and data."
    whole = Table(
        title="Pipeline stages",
        columns=(Column("stage", Kind.TEXT), *_STAGE_COLUMNS, Column("ideal bubble", Kind.SHARE)),
        rows=tuple((f"{one.stage} of {one.stages}", *_stage(one, one.all_steps), one.ideal_share) for one in stages),
        note=note,
    )
    steps = Table(
        title="Pipeline stages step by step",
        columns=(Column("step", Kind.TEXT), Column("stage", Kind.TEXT), *_STAGE_COLUMNS),
        rows=tuple(
            (step.name, f"{one.stage} of {one.stages}", *_stage(one, step)) for one in stages for step in one.steps
        )[:_LISTED],
        total=sum(len(one.steps) for one in stages),
    )
    return Section("pipeline", "Pipeline", (whole, steps))


_STAGE_COLUMNS = (
    Column("rank", Kind.TEXT),
    Column("step time", Kind.TIME),
    Column("computing", Kind.TIME),
    Column("wait for neighbours", Kind.TIME),
    Column("idle", Kind.TIME),
    Column("bubble", Kind.SHARE),
)


def _stage(one: Stage, step: StageStep) -> tuple[str, int, int, int | None, int, float | None]:
    share = step.bubble_ns / step.length_ns if step.bubble_ns is not None and step.length_ns else None
    return str(one.rank), step.length_ns, step.busy_ns, step.wait_ns, step.idle_ns, share


def files_section(job: Job) -> Section | None:
    """Files that are in no figure."""
    if not job.left_out:
        return None
    table = Table(
        title="Files left out",
        columns=(Column("file", Kind.CODE), Column("why", Kind.TEXT)),
        rows=tuple((one.path, one.reason) for one in job.left_out[:_LISTED]),
        brief=3,
        total=len(job.left_out),
    )
    return Section("files", "Files left out", (table,))
