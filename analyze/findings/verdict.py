"""The verdict: the class of the largest state, or why there is none, with the rule that chose it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from analyze.findings.states import State, window_states
from analyze.findings.step_verdict import lead_sentence, lead_state
from analyze.findings.words import in_steps
from analyze.metrics.vocabulary import ZERO_TOO_MANY
from analyze.settings import Definitions
from analyze.units import duration, nested_tenths, percent, plural, tenths_text

if TYPE_CHECKING:
    from analyze.metrics import DeviceTime, Gap, Measures

_ALIKE = 0.8  # gaps of at least this part of the longest one are named together
_WORTH_TELLING = 0.1  # of the idle time: below it the longest gaps explain little
_LAUNCHING = re.compile("(?i)launch|enqueue")  # in any runtime: urEnqueueKernelLaunch, zeCommandListAppendLaunchKernel
_WORKERS, _AWAITED = "_MultiProcessingDataLoaderIter", "the host was waiting for the DataLoader's workers"
_IDLE_WORTH_TELLING = 0.01  # of the window: below it the cause of idle time is no news


class Verdict(Struct, frozen=True):
    """The judgement in one word and a few sentences.

    Attributes:
        id: compute-bound, communication-bound, copy-bound, input-bound, sync-bound, launch-bound, allocator-bound,
            compilation-bound, first-use, host-bound, mixed, not-judged or no-gpu-activity.
        share: of the window in the state that names the verdict, of the step where the window is a small part of a
            lone step; 0 where no state does.
        sentences: the first is the verdict itself.
        rule: the rule that chose it.
    """

    id: str
    share: float
    sentences: tuple[str, ...]
    rule: str


def judge(measures: Measures, definitions: Definitions, *, cut: bool) -> Verdict:
    """The verdict on the headline device.

    Args:
        measures: what was measured.
        definitions: limits.
        cut: the file ends early.
    """
    device = measures.headline
    if device is None or device.window_ns == 0:
        return _without_device(measures)
    states = window_states(device)
    doubted = doubt(measures, device, definitions, cut=cut)
    lead = measures.lead if measures.lead and measures.lead.speaks else None
    whole, whole_ns = ("step", lead.step_ns) if lead else ("window", device.window_ns)
    candidates = (*states, lead_state(lead)) if lead else states
    judged = sorted((s for s in candidates if s.verdict and not (doubted and s.idle)), key=lambda s: -s.ns)
    first, second = judged[0], judged[1]
    share = first.ns / whole_ns
    printed = state_percents(states)
    of_whole = {s.id: percent(s.ns / whole_ns) for s in candidates} if lead else printed
    sentences = (
        *((lead_sentence(lead),) if lead and not doubted else ()),
        _busy_sentence(device, printed, len(measures.devices)),
        *_idle_sentences(
            device, states, printed, () if doubted else measures.gaps, len(measures.steps), definitions.long_gap_ns
        ),
    )
    if share >= definitions.headline_share:
        rule = f"{first.name} has {of_whole[first.id]} of the {whole}; a headline needs "
        return Verdict(first.verdict, share, sentences, rule + percent(definitions.headline_share))
    if doubted:
        return Verdict(
            "not-judged", 0.0, (*sentences, doubted), "no judgement on idle time: the records do not support it"
        )
    both = f"{first.name} {of_whole[first.id]} and {second.name} {of_whole[second.id]} of the {whole}"
    rule = f"no state has {percent(definitions.headline_share)} of the {whole}; the largest two are named"
    return Verdict("mixed", share, (f"{both[0].upper()}{both[1:]}. {sentences[0]}", *sentences[1:]), rule)


def state_percents(states: tuple[State, ...]) -> dict[str, str]:
    """Percent of the window per state, rounded as the table of states prints them."""
    groups = [[state for state in states if state.idle is idle] for idle in (False, True)]
    rounded = nested_tenths([[state.ns for state in group] for group in groups])
    return {
        state.id: tenths_text(value, state.ns)
        for group, values in zip(groups, rounded, strict=True)
        for state, value in zip(group, values, strict=True)
    }


def _without_device(measures: Measures) -> Verdict:
    """What a file without device work holds instead."""
    api = measures.launches.api_calls
    calls = sum(call.count for call in api)
    missing = measures.launches.launch_calls or sum(call.count for call in api if _LAUNCHING.search(call.name))
    counters = any(notice.id == "counter-ranges" for notice in measures.notices)
    if missing:
        text = f"Device records are missing: {plural(missing, 'launch call')} and no activity. This is not an idle GPU."
    elif counters:
        text = "It holds ranges of CUPTI's range profiler: performance counters, recorded instead of kernels."
    elif calls and measures.ops.ops:
        text = (
            f"{plural(calls, 'device call')} {'is' if calls == 1 else 'are'} in the file, so the device was recorded, "
            "but no kernel was launched: the ops ran on the CPU. What follows is the host's side."
        )
    elif measures.ops.ops:
        text = "What follows is the host's side (was activities=[CPU] recorded?)."
    elif calls:
        text = f"It holds {plural(calls, 'device call')}, and neither kernels nor operators."
    else:
        text = "It holds no operators either."
    return Verdict("no-gpu-activity", 0.0, (text,), "the file has no kernel, copy or memset with a time")


def doubt(measures: Measures, device: DeviceTime, definitions: Definitions, *, cut: bool) -> str:
    """Why idle time cannot be judged, or nothing."""
    if measures.launches.complete_share < definitions.complete_share and not measures.launches.capture:
        return "Device records incomplete: no advice on idle time."
    if measures.zero_share > ZERO_TOO_MANY:
        return "Too many rows have time 0: no advice on idle time."
    if cut:
        return "The file is cut: device records incomplete, no advice on idle time."
    if device.queued_long_ns > definitions.unexplained_share * device.window_ns:
        return "No advice on idle time: work was queued and not started, for reasons that this file does not hold."
    return ""


def _busy_sentence(device: DeviceTime, printed: dict[str, str], devices: int) -> str:
    """How much of its window the device is busy for; of several devices, which one that is."""
    busy, idle = nested_tenths([[device.busy_ns], [device.idle_ns]])
    parts = [
        f"{printed[state]} {what}"
        for state, what, ns in (
            ("computation", "computing", device.computation_ns),
            ("communication", "in exposed communication", device.exposed_communication_ns),
            ("copy", "in exposed copies", device.exposed_copy_ns),
        )
        if ns
    ]
    split = f" ({', '.join(parts)})" if len(parts) > 1 else ""
    which, window = "The GPU", "the window"
    if devices > 1:
        which, window = device.label, f"its window, the longest of {devices} devices"
    return (
        f"{which} is busy for {tenths_text(busy[0], device.busy_ns)} of {window}{split}; "
        f"it idles for {tenths_text(idle[0], device.idle_ns)}."
    )


def _idle_sentences(
    device: DeviceTime,
    states: tuple[State, ...],
    printed: dict[str, str],
    gaps: tuple[Gap, ...],
    steps: int,
    long_ns: int,
) -> tuple[str, ...]:
    if device.idle_ns < _IDLE_WORTH_TELLING * device.window_ns:
        return ()
    largest = max((s for s in states if s.idle), key=lambda s: s.ns)
    of_idle = percent(largest.ns / device.idle_ns)
    mine = [gap for gap in gaps if gap.device == device.id]
    waits = largest.id == "input-wait" and mine and _WORKERS in " ".join(mine[0].frame)
    cause = (
        f"For {printed[largest.id]} of the window ({of_idle} of the idle time), {_AWAITED if waits else largest.cause}."
    )
    return (cause, *_gap_sentence(device, mine, steps, long_ns))


def _gap_sentence(device: DeviceTime, mine: list[Gap], steps: int, long_ns: int) -> tuple[str, ...]:
    """The longest gaps together, when they explain a good part of the idle time."""
    alike = [gap for gap in mine if gap.length_ns >= _ALIKE * mine[0].length_ns]
    total = sum(gap.length_ns for gap in alike)
    if not alike or total < _WORTH_TELLING * device.idle_ns:
        return ()
    longest, shortest = alike[0].length_ns, alike[-1].length_ns
    span = duration(longest)
    if len(alike) > 1:
        span = f"{span} each" if duration(shortest) == span else f"{duration(shortest)} to {span} each"
    verb = "The longest gap takes" if len(alike) == 1 else f"The {len(alike)} longest gaps take"
    where = _when(alike, steps) + _where(alike, long_ns)
    return (f"{verb} {span}, {percent(total / device.idle_ns)} of the idle time{where}.",)


def _when(gaps: list[Gap], steps: int) -> str:
    """The step of several that all of the gaps lie in."""
    names = {gap.step for gap in gaps}
    where = in_steps((gaps[0].step,), steps) if len(names) == 1 and gaps[0].step else ""
    return f",{where}" if where else ""


def _where(gaps: list[Gap], long_ns: int) -> str:
    """What the host did in all of the gaps, when it is the same; that nothing was recorded only of long ones."""
    frames = {gap.frame for gap in gaps}
    pause = all(gap.length_ns > long_ns and 2 * gap.parts.get("host_other_ns", 0) > gap.length_ns for gap in gaps)
    if frames == {()} and pause:
        return ", with the host outside ops and no Python stack that says where"
    if len(frames) != 1 or not gaps[0].frame:
        return ""
    named = [frame for frame in gaps[0].frame if not frame.startswith("<")] or gaps[0].frame
    inner, outer = named[0], named[-1]
    return f", in {inner}" + (f" under {outer}" if outer != inner else "")
