"""Whether the recorded events are the whole history: ring overflow, restarted recording, missing frees."""

from __future__ import annotations

from collections.abc import Iterator

from analyze.notices import Notice
from analyze.snapshot.outside import RecordedBeside
from analyze.snapshot.replay import NEVER, AllocatorReplay
from analyze.snapshot.tables import Events, Snapshot
from analyze.units import memory, plural

_USUAL_RINGS = frozenset((10_000, 50_000, 65_536, 100_000, 200_000, 500_000, 1_000_000, 10_000_000))
OVERFLOWED, POSSIBLE, NONE_SEEN = "yes", "possible", "none seen"


def overflow(snapshot: Snapshot, events: Events, replay: AllocatorReplay, noted: RecordedBeside | None) -> str:
    """Whether older events were pushed out of the ring: "yes", "possible" or "none seen".

    Certain when the file or the run's notes say how many events are kept. Without that, a usual ring size met exactly,
    a free whose request is missing, or a live block that has a stack but no allocation are signs of it.
    """
    count, settings = len(events), snapshot.settings
    most = settings.get("trace_alloc_max_entries")
    noted_most = noted.max_entries if noted is not None and noted.events == count else None
    if settings.get("trace_alloc_overflowed") is True or (count and count in (most, noted_most)):
        return OVERFLOWED
    if most is not None or noted_most is not None:
        return NONE_SEEN
    begun = next((action for action in events.action if action.startswith("free")), "")
    cut = begun == "free_completed" and events.action[0] == "free_completed"
    return POSSIBLE if count in _USUAL_RINGS or cut or _with_stack(replay) else NONE_SEEN


def _with_stack(replay: AllocatorReplay) -> int:
    """Blocks from before the first event whose stack is known: they were made while a recording was on."""
    return sum(one.stack != 0 for one in replay.early)


def history_notices(label: str, events: Events, replay: AllocatorReplay, state: str) -> Iterator[Notice]:
    """What the reader must know about the history of one device."""
    if state == OVERFLOWED:
        nameless = sum(one.size_bytes for one in replay.early if one.freed_at == NEVER and not one.stack)
        yield Notice(
            "history-overflow",
            f"{label}: the ring of {plural(len(events), 'event')} overflowed: older events are lost. What they "
            f"allocated has no known place ({memory(nameless)} of what is alive at the end), and a higher peak before "
            "them is not seen. Raise max_entries for the whole story.",
            len(events),
        )
    known = _with_stack(replay)
    if state == POSSIBLE:
        size = sum(one.size_bytes for one in replay.early if one.stack)
        why = (
            f"{plural(known, 'live block')} ({memory(size)}) with a known stack have no recorded allocation"
            if known
            else "the number of events, or the first of them, looks cut"
        )
        yield Notice(
            "history-maybe-cut",
            f"{label}: {why}: the recording was restarted, or its ring overflowed. They count as allocated "
            "before recording.",
            known or len(events),
        )
    yield from _mismatch(label, events, replay)
    if replay.missing_frees:
        yield Notice(
            "missing-frees",
            f"{label}: {plural(replay.missing_frees, 'address', 'addresses')} allocated twice without a free in "
            "between: frees are missing.",
            replay.missing_frees,
        )
    if not replay.end_known and len(events):
        yield Notice(
            "level-unknown",
            f"{label}: the file has events and no segments: the level at the start is unknown, and the lowest "
            "possible one is shown.",
            1,
        )


def _mismatch(label: str, events: Events, replay: AllocatorReplay) -> Iterator[Notice]:
    """Whether events and state contradict each other."""
    gap = replay.mismatch_bytes
    if gap > 0:
        yield Notice(
            "history-mismatch",
            f"{label}: the state at the end holds {memory(gap)} more than the events explain: events are missing in "
            "the middle, or the recording was switched off and on. Curves before the gap are off by that much.",
            1,
        )
    elif gap < 0:
        gone = int(replay.gone.sum())
        what = (
            f"{plural(gone, 'recorded allocation is', 'recorded allocations are')} not there any more" if gone else ""
        )
        yield Notice(
            "history-mismatch",
            f"{label}: the events leave {memory(-gap)} more than the state at the end holds: frees were not recorded"
            f"{f' ({what})' if what else ''}. Peak and curves are those of the events alone, and may be too high by "
            "up to that much.",
            1,
        )
    over = replay.requested.peak_bytes - replay.reserved.peak_bytes
    if replay.end_known and len(events) and over > 0:
        yield Notice(
            "requested-above-reserved",
            f"{label}: the events ask for up to {memory(replay.requested.peak_bytes)} where never more than "
            f"{memory(replay.reserved.peak_bytes)} were reserved. Both cannot be true of one run: events of segments "
            "are missing, or the file was put together.",
            1,
        )


def peak_notices(label: str, replay: AllocatorReplay, noted: RecordedBeside | None) -> Iterator[Notice]:
    """Whether the allocator's own statistic of the same run knows another peak."""
    own = noted.peak_requested_bytes if noted is not None else None
    if own is not None and own != replay.requested.peak_bytes:
        text = (
            f"{label}: the allocator itself counted a peak of {own:,} bytes, the events give "
            f"{replay.requested.peak_bytes:,}: some events are missing."
        )
        yield Notice("peak-disagrees", text, 1)


def unknown_actions(label: str, events: Events) -> Iterator[Notice]:
    """Actions that no figure uses."""
    odd = sorted(set(events.action) - KNOWN_ACTIONS)
    if odd:
        count = sum(action in odd for action in events.action)
        named = ", ".join(repr(action[:40]) for action in odd[:3])
        yield Notice("unknown-actions", f"{label}: {plural(count, 'event')} of unknown kind ({named}) left out.", count)


KNOWN_ACTIONS = frozenset(
    (
        "alloc", "free_requested", "free_completed", "free", "segment_alloc", "segment_free", "segment_map",
        "segment_unmap", "snapshot", "oom", "annotate", "workspace_snapshot",
    )
)  # fmt: skip
