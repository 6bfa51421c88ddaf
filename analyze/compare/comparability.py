"""Whether inputs can be compared at all, and what a reader has to know before comparing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from analyze.compare.comparable import Comparable, RecordedRun
from analyze.errors import NotComparableError
from analyze.notices import Notice
from analyze.report.text import shorten
from analyze.units import percent

_WORTH_TELLING = 0.01  # of the activity time
_SHOWN = 80  # characters of a name in a sentence
_OF_REPORTS = ("flags", "schema", "program")  # a recording without its trace has none
_LENGTHS = ("top",)  # how long lists are: no figure depends on it


def check_definitions(subjects: Sequence[Comparable], labels: Sequence[str]) -> None:
    """Refuse reports whose figures mean different things.

    Raises:
        NotComparableError: some definition differs.
    """
    first = subjects[0].definitions
    for subject, label in zip(subjects[1:], labels[1:], strict=True):
        mine = subject.definitions
        if not first or not mine:  # of a recording without its trace: nothing but its latency is compared
            continue
        names = sorted(n for n in first.keys() | mine.keys() if n not in _LENGTHS and first.get(n) != mine.get(n))
        if names:
            named = ", ".join(f"{n} ({_value(first.get(n))} and {_value(mine.get(n))})" for n in names)
            raise NotComparableError(
                f"The definitions of {labels[0]} ({subjects[0].name}) and {label} ({subject.name}) differ: {named}.",
                "Make both reports anew with the same version and definitions.",
            )


def _value(value: float | None) -> str:
    return "none" if value is None else f"{value:,}"


def find_notices(subjects: Sequence[Comparable], labels: Sequence[str]) -> tuple[Notice, ...]:
    """What differs between the inputs besides their figures."""
    return tuple(_differences(subjects, labels))


def _differences(subjects: Sequence[Comparable], labels: Sequence[str]) -> Iterator[Notice]:
    for ident, what, read in _QUESTIONS:
        asked = [one for one in zip(subjects, labels, strict=True) if one[0].definitions or ident not in _OF_REPORTS]
        values = [read(subject) for subject, _ in asked]
        if len(set(values)) > 1:
            named = ", ".join(
                f"{label} {shorten(value, _SHOWN) or 'not recorded'}"
                for (_, label), value in zip(asked, values, strict=True)
            )
            yield Notice(f"different-{ident}", f"{what}: {named}.", len(set(values)))
    for subject, label in zip(subjects, labels, strict=True):
        if subject.verdict.id == "not-judged":
            yield Notice("not-judged", f"The report on {label} has {subject.verdict.rule}.", 1)
        recorded = subject.trace.recorded
        if recorded is not None and recorded.steady is False:
            yield Notice(
                "not-steady", f"The warm-up of {label} did not become steady: its latency may differ run to run.", 1
            )
        if recorded is not None and recorded.busy_machine:
            yield Notice("busy-machine", f"The host was busy with other work while {label} was recorded.", 1)
    yield from _outside(subjects, labels)
    stepless = [label for label, s in zip(labels, subjects, strict=True) if not s.step_ledgers]
    if stepless and any(subject.devices for subject in subjects):
        windows = {subject.ledger.window_ns for subject in subjects if subject.ledger}
        unequal = " The windows differ in length: shares compare, amounts only if both did the same work."
        text = f"No steps in {' and '.join(stepless)}: amounts are of the whole windows, without a spread."
        yield Notice("whole-windows", text + (unequal if len(windows) > 1 else ""), len(stepless))


def _outside(subjects: Sequence[Comparable], labels: Sequence[str]) -> Iterator[Notice]:
    """Work that no step launched is in the window's figures, and in those of ops."""
    if not all(subject.step_ledgers for subject in subjects):
        return
    for subject, label in zip(subjects, labels, strict=True):
        whole = sum(work.sum_ns for work in subject.activity_times)
        outside = whole - sum(work.step_sum_ns for work in subject.activity_times)
        if outside > _WORTH_TELLING * whole:
            text = f"{percent(outside / whole)} of the activity time of {label} was launched in no step: it counts in "
            yield Notice("work-outside-steps", text + "the window, its shares, and the times of ops per step.", 1)


def _recorded(read: Callable[[RecordedRun], str]) -> Callable[[Comparable], str]:
    return lambda subject: read(subject.trace.recorded) if subject.trace.recorded else ""


def _of_job(subject: Comparable) -> str:
    rank, size = subject.trace.rank, subject.trace.world_size
    return f"{rank} of {size}" if rank is not None and (size or 0) > 1 else ""


_QUESTIONS: tuple[tuple[str, str, Callable[[Comparable], str]], ...] = (
    ("gpu", "Different GPUs", lambda s: ", ".join(s.trace.device_names)),
    ("runtime", "Different runtimes", lambda s: s.trace.runtime),
    ("torch", "Different versions of torch", _recorded(lambda r: r.torch)),
    ("selection", "Different selections", lambda s: s.trace.selection or "everything"),
    ("model", "Different models", _recorded(lambda r: r.model)),
    ("batch", "Different batch sizes", _recorded(lambda r: str(r.batch_size or ""))),
    ("precision", "Asked for different precisions", _recorded(lambda r: r.precision + (" autocast" if r.amp else ""))),
    ("rank", "Different ranks", _of_job),
    ("flags", "Different profiler options, which stretch the host's time", lambda s: ", ".join(s.trace.flags)),
    ("schema", "Different report schemas", lambda s: s.schema_version),
    ("program", "Reports of different versions of this program", lambda s: s.tool.get("version", "")),
)
