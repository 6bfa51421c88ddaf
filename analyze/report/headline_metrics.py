"""The headline metrics: what scripts read, gates name and comparisons put first. Each is declared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from analyze.findings.states import STATES, State, window_states

if TYPE_CHECKING:
    from analyze.metrics import DeviceTime, Measures
    from analyze.metrics.step_ledgers import Ledger, StepLedger

Value = float | int | None


class HeadlineMetric(Struct, frozen=True):
    """One figure.

    Attributes:
        id: stable name.
        label: row label in a comparison.
        unit: ns, share (0..1), count, bytes or per_s.
        better: "lower" or "higher".
        of: the whole that a share is of, empty otherwise.
        additive: it adds up over steps, so two runs are compared per step.
        of_device: its value from the headline device; reports without a device lack the metric.
        of_report: its value from all measures, where it is of more than one device; a job of many ranks has its own.
        of_step: its value in one step, None where a step has none.
    """

    id: str
    label: str
    unit: str
    better: str = "lower"
    of: str = ""
    additive: bool = False
    of_device: Callable[[DeviceTime], Value] | None = None
    of_report: Callable[[Measures], Value] | None = None
    of_step: Callable[[StepLedger], Value] | None = None


def _share(name: str, label: str, ns: Callable[[DeviceTime | Ledger], int], better: str = "lower") -> HeadlineMetric:
    """A share of the window, of a device or of what one step launched."""

    def share(of: DeviceTime | Ledger) -> float | None:
        return ns(of) / of.window_ns if of.window_ns else None

    return HeadlineMetric(name, label, "share", better, _WINDOW, of_device=share, of_step=share)


def _state_share(state: State) -> HeadlineMetric:
    at = STATES.index(state)
    prefix = "idle_" if state.idle else "" if state.id == "computation" else "exposed_"
    better = "higher" if state.id == "computation" else "lower"
    name = f"{prefix}{state.id.replace('-', '_')}_share"
    return _share(name, state.label, lambda of: window_states(of)[at].ns, better)


def _median_step_ns(measures: Measures) -> int | None:
    from analyze.metrics import step_times

    return (step_times(measures.steps) or (None,))[0]


def _memory_peak(measures: Measures) -> int | None:
    return max((use.peak_bytes for use in measures.memory.devices if use.device >= 0), default=None)


def _launches(measures: Measures) -> int:
    return measures.launches.calls


def _blocking_calls(measures: Measures) -> int:
    return measures.blocking_calls.calls


def _blocked_ns(measures: Measures) -> int:
    return measures.blocking_calls.blocked_ns


def _latency_ns(measures: Measures) -> int | None:
    return measures.launches.latency_ns.p50_ns if measures.launches.latency_ns else None


_WINDOW = "window of the headline device"
HEADLINE_METRICS = (
    HeadlineMetric("step_time", "Step time", "ns", of_report=_median_step_ns),
    HeadlineMetric("window_time", "Whole window", "ns", of_device=lambda d: d.window_ns),
    HeadlineMetric("busy_share", "Busy", "share", "higher", _WINDOW,
                   of_device=lambda d: d.busy_ns / d.window_ns if d.window_ns else None),
    *(_state_share(state) for state in STATES),
    _share("idle_share", "Idle, all causes", lambda of: sum(of.idle.values())),
    HeadlineMetric("launches", "Launches", "count", additive=True,
                   of_report=_launches, of_step=lambda s: s.launches),
    HeadlineMetric("launch_latency_p50", "Launch latency, median", "ns",
                   of_report=_latency_ns, of_step=lambda s: s.launch_latency_p50_ns),
    HeadlineMetric("blocking_calls", "Blocking calls", "count", additive=True,
                   of_report=_blocking_calls, of_step=lambda s: s.blocking_calls),
    HeadlineMetric("blocked_time", "Blocked", "ns", additive=True,
                   of_report=_blocked_ns, of_step=lambda s: s.blocked_ns),
    HeadlineMetric("exposed_sync_time", "Exposed sync", "ns", additive=True,
                   of_device=lambda d: d.exposed_sync_ns, of_step=lambda s: s.exposed_sync_ns),
    HeadlineMetric("memory_peak", "Peak allocated", "bytes", of_report=_memory_peak),
)  # fmt: skip
METRICS = {metric.id: metric for metric in HEADLINE_METRICS}

# Of a job of many ranks; `min_busbw:KIND` is there per kind of collective.
RANK_METRICS = {
    metric.id: metric
    for metric in (
        HeadlineMetric("exposed_wait_share", "Exposed wait", "share", of="windows of all ranks"),
        HeadlineMetric("missing_ranks", "Missing ranks", "count"),
        HeadlineMetric("rank_spread", "Most computation of a rank over the median", "share", of="the median"),
        HeadlineMetric("straggler_own_share", "Own lateness of the latest rank", "share", of="time in common"),
    )
}
MIN_BUSBW = "min_busbw"


def named(name: str) -> HeadlineMetric | None:
    """The metric of a trace or of a job that has a name, None for an unknown one."""
    if name.partition(":")[0] == MIN_BUSBW and name.partition(":")[2]:
        return HeadlineMetric(name, "Least bus bandwidth", "per_s", "higher")
    return METRICS.get(name) or RANK_METRICS.get(name)
