"""The figures that a comparison shows of each side, per step where both sides have steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import Struct, field

from analyze.compare.comparable import Comparable, MemoryPeak
from analyze.compare.judge import middle
from analyze.findings import State, window_states
from analyze.findings.states import SPLIT, STATES
from analyze.kernels.categories import LABELS, WITH_PRECISION
from analyze.metrics.step_ledgers import StepLedger
from analyze.report.headline_metrics import HEADLINE_METRICS, METRICS, HeadlineMetric

LATENCY = "latency"  # id of the group
STATE_SHARES = tuple(metric for metric in HEADLINE_METRICS if metric.label in {state.label for state in STATES})


_Step = TypeVar("_Step")


class Figure(Struct, frozen=True):
    """One figure of one side.

    Attributes:
        id: stable name; metrics keep theirs.
        label: row label.
        unit: ns, share, count or bytes.
        better: "lower", "higher", or empty.
        value: the figure, None where it was not measured.
        steps: the same per step, empty where it has no values per step.
    """

    id: str
    label: str
    unit: str
    better: str
    value: float | int | None
    steps: tuple[float, ...] = ()


class Figures(Struct, frozen=True):
    """The figures of one question.

    Attributes:
        id: stable name.
        title: the question's subject.
        rows: figures in printing order.
    """

    id: str
    title: str
    rows: tuple[Figure, ...] = field(default=())


def figures_of(subject: Comparable, *, per_step: bool) -> tuple[Figures, ...]:
    """All figures of a side, in the same order for every side.

    Args:
        subject: the side.
        per_step: amounts are medians of steps rather than of the whole window; shares are always of the window.
    """
    ledgers = subject.step_ledgers
    whole = _whole(ledgers)
    return (
        Figures(LATENCY, "Latency without the profiler", tuple(_latency(subject))),
        Figures("headline", "Step and window", tuple(_headline(subject))),
        Figures("states", "Ledger", tuple(_states(subject, ledgers, per_step=per_step))),
        Figures("state-shares", "Ledger, share of the window", tuple(_state_shares(subject, whole))),
        Figures("categories", "Work by category", tuple(_categories(subject, ledgers, per_step=per_step))),
        Figures("category-shares", "Work by category, share of activity time", tuple(_category_shares(subject))),
        Figures("precision", "Precision, share of the category's time", tuple(_precision(subject))),
        Figures("launches", "Launches", tuple(_launches(subject, ledgers, per_step=per_step))),
        Figures("waits", "Blocking calls", tuple(_waits(subject, ledgers, whole, per_step=per_step))),
        Figures("memory", "Memory", tuple(_memory(subject))),
    )


def _latency(subject: Comparable) -> Iterator[Figure]:
    """What `capture` measured beside the trace: the median, with every sample in place of steps."""
    found = subject.trace.recorded
    if found is None or not found.latency_p50_ns:
        return
    samples, rate = found.latency_samples_ns, found.throughput_samples_per_s
    label = "A step (median)" if found.unit == "step" else "A forward (median)"
    yield Figure("latency_p50", label, "ns", "lower", found.latency_p50_ns, samples)
    work = (rate or 0) * found.latency_p50_ns  # samples of the data times nanoseconds per second
    rates = tuple(work / ns for ns in samples) if rate else ()
    yield Figure("throughput", "Samples per second", "rate", "higher", rate, rates)


def _whole(steps: Sequence[_Step]) -> Sequence[_Step]:
    """The steps with all their gaps: the window begins with an activity of the first, the gap before it is outside."""
    return steps[1:] or steps


def _headline(subject: Comparable) -> Iterator[Figure]:
    yield _figure("step_time", subject.metric("step_time"), _paces(subject))
    yield _figure("window_time", subject.metric("window_time"))


def _paces(subject: Comparable) -> tuple[float, ...]:
    """The step times that separate a change from noise.

    A last step ends with its device work, where others last to their successor: its own row says how long it was.
    """
    if any(step.time_ns is None for step in subject.steps):
        return ()
    paces = [step.time_ns or 0 for step in subject.steps]
    if subject.steps and subject.steps[-1].edge == "last":
        paces[-1] = max(paces[-1], subject.steps[-1].wall_ns)
    return tuple(paces)


def _unsplit(subject: Comparable, state: State) -> bool:
    """Whether a state is one that launch-bound time is split into, in a report of before it was split."""
    return subject.ledger is not None and not subject.ledger.causes and state.id in SPLIT


def _states(subject: Comparable, ledgers: Sequence[StepLedger], *, per_step: bool) -> Iterator[Figure]:
    window = {state.id: state.ns for state in subject.states}
    steps = [window_states(ledger) for ledger in ledgers] if per_step else []
    for i, state in enumerate(STATES):
        values = tuple(states[i].ns for states in (_whole(steps) if state.idle else steps))
        value = middle(values) if values else window.get(state.id)
        if _unsplit(subject, state):
            value, values = None, ()
        yield Figure(f"{_snake(state.id)}_time", state.label, "ns", "lower", value, values)


def _state_shares(subject: Comparable, ledgers: Sequence[StepLedger]) -> Iterator[Figure]:
    ledger = subject.ledger
    window = ledger.window_ns if ledger else 0
    for i, (state, metric) in enumerate(zip(STATES, STATE_SHARES, strict=True)):
        found = subject.states
        value = found[i].ns / window if found and window else None
        steps = _of_steps(metric, ledgers)
        if _unsplit(subject, state):
            value, steps = None, ()
        yield _figure(metric.id, value, steps)
    yield _figure("idle_share", subject.metric("idle_share"), _of_steps(METRICS["idle_share"], ledgers))


def _figure(name: str, value: float | int | None, steps: tuple[float, ...] = ()) -> Figure:
    metric = METRICS[name]
    return Figure(metric.id, metric.label, metric.unit, metric.better, value, steps)


def _of_steps(metric: HeadlineMetric, ledgers: Sequence[StepLedger]) -> tuple[float, ...]:
    """The metric in each step that has it."""
    assert metric.of_step is not None
    return tuple(value for ledger in ledgers if (value := metric.of_step(ledger)) is not None)


def _categories(subject: Comparable, ledgers: Sequence[StepLedger], *, per_step: bool) -> Iterator[Figure]:
    for work in subject.categories:
        steps = tuple(ledger.categories.get(work.category, 0) for ledger in ledgers) if per_step else ()
        value = middle(steps) if steps else work.sum_ns
        yield Figure(f"{work.category}_work_time", work.category, "ns", "lower", value, steps)


def _category_shares(subject: Comparable) -> Iterator[Figure]:
    whole = sum(work.sum_ns for work in subject.categories)
    ledgers = [(sum(one.categories.values()), one.categories) for one in subject.step_ledgers]
    for work in subject.categories:
        steps = tuple(found.get(work.category, 0) / total for total, found in ledgers if total)
        share = work.sum_ns / whole if whole else None
        yield Figure(f"{work.category}_work_share", work.category, "share", "", share, steps)


def _precision(subject: Comparable) -> Iterator[Figure]:
    for category in WITH_PRECISION:
        uses = [use for use in subject.precision.uses if use.category == category]
        whole = sum(use.sum_ns for use in uses)
        for precision in dict.fromkeys(use.precision for use in uses):
            time = sum(use.sum_ns for use in uses if use.precision == precision)
            share = time / whole if whole else None
            yield Figure(f"{category}_{precision}_share", f"{LABELS[category]} in {precision}", "share", "", share)


def _launches(subject: Comparable, ledgers: Sequence[StepLedger], *, per_step: bool) -> Iterator[Figure]:
    yield _amount("launches", subject, ledgers, per_step=per_step)
    latency = METRICS["launch_latency_p50"]
    yield _figure(latency.id, subject.metric(latency.id), _of_steps(latency, ledgers))


def _waits(
    subject: Comparable, ledgers: Sequence[StepLedger], whole: Sequence[StepLedger], *, per_step: bool
) -> Iterator[Figure]:
    yield _amount("blocking_calls", subject, ledgers, per_step=per_step)
    yield _amount("blocked_time", subject, ledgers, per_step=per_step)
    yield _amount("exposed_sync_time", subject, whole, per_step=per_step)


def _amount(name: str, subject: Comparable, ledgers: Sequence[StepLedger], *, per_step: bool) -> Figure:
    """A metric that adds up over steps."""
    steps = _of_steps(METRICS[name], ledgers) if per_step else ()
    return _figure(name, middle(steps) if steps else subject.metric(name), steps)


def _memory(subject: Comparable) -> Iterator[Figure]:
    peaks = [peak for peak in subject.memory.devices if peak.device >= 0]
    main: MemoryPeak | None = max(peaks, key=lambda peak: peak.peak_bytes, default=None)
    allocated, reserved = (main.peak_bytes, main.reserved_peak_bytes) if main else (None, None)
    yield _figure("memory_peak", allocated)
    yield Figure("memory_reserved_peak", "Peak reserved", "bytes", "lower", reserved)


def _snake(name: str) -> str:
    return name.replace("-", "_")
