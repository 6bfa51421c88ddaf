"""How far the records can be trusted, and between what bounds that leaves the idle share."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from analyze.blocks import Section, Stat
from analyze.metrics.device_time import HEADLINE, DeviceTime
from analyze.metrics.launches import QUESTION as LAUNCHES
from analyze.metrics.launches import Launches
from analyze.metrics.quality.file_notices import QUESTION as FILE_NOTICES
from analyze.metrics.question import Answers, Question
from analyze.notices import Notice
from analyze.units import duration, percent, plural

_NEWS = 0.005  # of the window: closer bounds are one figure


class Trust(Struct, frozen=True):
    """What the figures of the headline device stand on.

    Attributes:
        linked_share: activities with a recorded launch, of all.
        complete_share: launch calls with a recorded activity, of all.
        skewed: activities that start before their launch call.
        worst_skew_ns: by how much at most.
        cut: the file ends early.
        flags: profiler options that slow the host.
        idle_low_share: idle share of the window in the reading with least idle time.
        idle_high_share: in the one with most.
        readings: what else than idleness the difference may be.
    """

    linked_share: float
    complete_share: float
    skewed: int
    worst_skew_ns: int
    cut: bool
    flags: tuple[str, ...]
    idle_low_share: float
    idle_high_share: float
    readings: tuple[str, ...]


def measure_trust(
    device: DeviceTime | None, launches: Launches, notices: tuple[Notice, ...], flags: tuple[str, ...], *, cut: bool
) -> Trust | None:
    """The trust in one device's figures, None without a device."""
    if device is None or not device.window_ns:
        return None
    shares, readings = [device.idle_ns / device.window_ns], []
    for share, reading in _readings(device, launches, {notice.id for notice in notices}, cut=cut):
        shares.append(share)
        readings.append(reading)
    linked = launches.linked + launches.unlinked
    return Trust(
        linked_share=launches.linked / linked if linked else 1.0,
        complete_share=launches.complete_share,
        skewed=launches.skewed,
        worst_skew_ns=launches.worst_skew_ns,
        cut=cut,
        flags=flags,
        idle_low_share=min(shares),
        idle_high_share=max(shares),
        readings=tuple(readings),
    )


def _readings(device: DeviceTime, launches: Launches, odd: set[str], *, cut: bool) -> Iterator[tuple[float, str]]:
    """Other idle shares that the records allow, and why."""
    rest = device.window_ns - device.head_ns
    if device.head_ns and rest:
        after = 1 - (device.busy_ns - device.head_busy_ns) / rest
        yield after, f"work from before the recording fills the first {duration(device.head_ns)}"
    if device.queued_long_ns:
        share = (device.idle_ns - device.queued_long_ns) / device.window_ns
        yield share, f"work was queued and not started for {duration(device.queued_long_ns)}"
    missing = launches.launch_calls - launches.complete_calls
    if missing and not launches.capture:
        yield 0.0, f"{plural(missing, 'launch call')} without a recorded activity may have filled gaps"
    if cut or "graph-kernels-missing" in odd:
        yield 0.0, "activities are missing, and may have filled gaps"


def section(trust: Trust) -> Section:
    """What the figures stand on; on one screen only where it changes the headline."""
    facts = [
        f"{percent(trust.linked_share)} of activities have a recorded launch",
        f"{percent(trust.complete_share)} of launch calls have a recorded activity",
    ]
    if trust.skewed:
        facts.append(f"{trust.skewed:,} start before their launch, by up to {duration(trust.worst_skew_ns)}")
    if trust.cut:
        facts.append("the file ends early")
    if trust.flags:
        facts.append(f"recorded with {', '.join(trust.flags)}")
    doubtful = trust.idle_high_share - trust.idle_low_share > _NEWS
    stats = [Stat("Records", "; ".join(facts), brief=doubtful)]
    if doubtful:
        between = f"idle between {percent(trust.idle_low_share)} and {percent(trust.idle_high_share)} of the window"
        stats.append(Stat("Trust", f"{between}: {'; '.join(trust.readings)}"))
    return Section("trust", "What the figures stand on", tuple(stats))


def _measure(answers: Answers) -> Trust | None:
    notices = answers.ask(FILE_NOTICES)
    flags, cut = answers.trace.metadata.flags, answers.trace.recording.cut
    return measure_trust(answers.ask(HEADLINE), answers.ask(LAUNCHES), notices, flags, cut=cut)


def _section(answers: Answers) -> Section | None:
    trust = answers.ask(QUESTION)
    return section(trust) if trust is not None else None


QUESTION = Question("trust", _measure, answer=Trust | None, section=_section)
