"""Named ranges on the time line of a snapshot: record_function spans, optimizer steps, profiler steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from analyze.snapshot.tables import Annotation

_NUMBER = re.compile(r"#\d+$")
_FOREVER = 1 << 63


class Range(Struct, frozen=True):
    """One named range.

    Attributes:
        name: as recorded.
        start_us: start, microseconds of the Unix epoch.
        end_us: end; far away where the recording stops inside.
    """

    name: str
    start_us: int
    end_us: int


def find_ranges(annotations: Iterable[Annotation], device: int) -> tuple[Range, ...]:
    """The ranges of a device in order of start; an end without a start has been open since before the recording."""
    open_starts: dict[str, list[int]] = {}
    found = []
    for edge in annotations:
        if edge.device != device:
            continue
        if edge.start:
            open_starts.setdefault(edge.name, []).append(edge.time_us)
            continue
        starts = open_starts.get(edge.name)
        found.append(Range(edge.name, starts.pop() if starts else -_FOREVER, edge.time_us))
    found += (Range(name, start, _FOREVER) for name, starts in open_starts.items() for start in starts)
    return tuple(sorted(found, key=lambda r: (r.start_us, -r.end_us, r.name)))


def open_ranges(ranges: Sequence[Range], times_us: Sequence[int | None]) -> Iterable[str]:
    """The innermost range around each instant, empty where there is none.

    Args:
        ranges: in order of start.
        times_us: instants, not falling; None where not recorded.
    """
    waiting, around = 0, list[Range]()
    for time in times_us:
        if time is None:
            yield ""
            continue
        while waiting < len(ranges) and ranges[waiting].start_us <= time:
            around.append(ranges[waiting])
            waiting += 1
        if around and around[-1].end_us < time:
            around = [one for one in around if one.end_us >= time]
        yield around[-1].name if around else ""


def find_steps(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """The steps of a loop: profiler steps, else the outermost range that comes back; each lasts until the next.

    Returns:
        At least two steps, or none.
    """
    families: dict[str, list[Range]] = {}
    for one in ranges:
        families.setdefault(_NUMBER.sub("", one.name), []).append(one)
    loops = [
        steps
        for steps in families.values()
        if len(steps) > 1 and all(a.end_us <= b.start_us for a, b in pairwise(steps))
    ]
    if not loops:
        return ()
    steps = min(loops, key=lambda loop: (not loop[0].name.startswith("ProfilerStep"), loop[0].start_us))
    ends = [*(after.start_us for after in steps[1:]), steps[-1].end_us]
    return tuple(Range(step.name, step.start_us, end) for step, end in zip(steps, ends, strict=True))
