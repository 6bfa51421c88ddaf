"""What a comparison needs of a report, read from the JSON document: of this run, or of a file of another day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from analyze.compare.amounts import Amount, Kind, Row, measure_amount
from analyze.errors import NotAReportError
from analyze.findings import State, window_states
from analyze.metrics.step_ledgers import Ledger, StepLedger
from analyze.report.about import READ
from analyze.report.report import Metric, Report
from analyze.report.stored import read_stored
from analyze.trace.stream import name_of

_VERSION = re.compile(r"\d{1,9}\.\d{1,9}")
_LARGEST = 2**53  # beyond it readers of JSON lose digits: 104 days in nanoseconds


class RecordedRun(Struct, frozen=True):
    """What `capture` noted; empty or None in other files."""

    model: str = ""
    batch_size: int | None = None
    precision: str = ""
    amp: bool = False
    torch: str = ""
    unit: str = ""
    latency_p50_ns: int | None = None
    latency_samples_ns: tuple[int, ...] = ()
    throughput_samples_per_s: float | None = None
    steady: bool | None = None
    busy_machine: bool = False


class SourceInfo(Struct, frozen=True):
    """What was measured, as in `TraceInfo`."""

    name: str
    sha256: str
    device_names: tuple[str, ...] = ()
    runtime: str = ""
    flags: tuple[str, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    selection: str = ""
    recorded: RecordedRun | None = None


class StepTime(Struct, frozen=True):
    """Time of one step; None in reports of before the device's pace was measured: their figure is the host's pace."""

    time_ns: int | None = None
    wall_ns: int = 0
    edge: str = ""


class WorkTime(Struct, frozen=True):
    """Activities of one name or of one category: all, and of them those launched in steps."""

    count: int
    sum_ns: int
    step_count: int = 0
    step_sum_ns: int = 0
    name: str = ""
    category: str = ""


class OpTime(Struct, frozen=True):
    """One op: its own time on the host and on the device."""

    name: str
    kind: str
    calls: int
    self_cpu_ns: int
    self_device_ns: int


class Ops(Struct, frozen=True):
    """The ops of a report."""

    ops: tuple[OpTime, ...] = ()


class Use(Struct, frozen=True):
    """Time of one category of matrix kernels in one precision."""

    category: str
    precision: str
    sum_ns: int
    count: int


class Precision(Struct, frozen=True):
    """The precisions of a report."""

    uses: tuple[Use, ...] = ()


class OpRate(Struct, frozen=True):
    """Calls of one op with one set of input shapes."""

    op: str
    input_dims: str
    precision: str
    calls: int
    device_ns: int


class RooflineRates(Struct, frozen=True):
    """The rates of a report."""

    rates: tuple[OpRate, ...] = ()


class MemoryPeak(Struct, frozen=True):
    """Peaks of one device; the host has device -1."""

    label: str
    device: int
    peak_bytes: int
    reserved_peak_bytes: int | None = None


class MemoryPeaks(Struct, frozen=True):
    """The peaks of a report."""

    devices: tuple[MemoryPeak, ...] = ()


class Judged(Struct, frozen=True):
    """A verdict, a finding or a check that could not be made."""

    id: str
    severity: str = ""
    title: str = ""
    reason: str = ""
    rule: str = ""


class Comparable(Struct, frozen=True, kw_only=True):
    """One side of a comparison: the keys of the JSON report that comparisons and gates read.

    Keys that reports of an older program lack are empty, and what they would say is not compared.
    """

    schema_version: str
    tool: dict[str, str]
    trace: SourceInfo
    definitions: dict[str, int | float]
    verdict: Judged
    metrics: dict[str, Metric]
    devices: tuple[Ledger, ...] = ()
    steps: tuple[StepTime, ...] = ()
    step_ledgers: tuple[StepLedger, ...] = ()
    categories: tuple[WorkTime, ...] = ()
    activity_times: tuple[WorkTime, ...] = ()
    ops: Ops = Ops()
    precision: Precision = Precision()
    roofline: RooflineRates = RooflineRates()
    memory: MemoryPeaks = MemoryPeaks()
    findings: tuple[Judged, ...] = ()
    checks_passed: tuple[str, ...] = ()
    checks_not_measured: tuple[Judged, ...] = ()

    @property
    def name(self) -> str:
        """Base name of the trace."""
        return self.trace.name

    @property
    def ledger(self) -> Ledger | None:
        """The headline device's: the one with the longest window."""
        return max(self.devices, key=lambda device: device.window_ns, default=None)

    @property
    def states(self) -> tuple[State, ...]:
        """The states of the window, none without a device."""
        return window_states(self.ledger) if self.ledger and self.ledger.window_ns else ()

    def metric(self, name: str) -> float | int | None:
        """The value of a metric, None where it was not measured."""
        found = self.metrics.get(name)
        if name == "step_time" and any(step.time_ns is None for step in self.steps):
            return None
        return found.value if found else None

    def amount(self, wanted: Amount) -> tuple[float | int | None, str]:
        """What a kernel, a category or an op amounts to; None with the reason where it was not measured."""
        return measure_amount(wanted, self._rows(wanted.kind))

    def _rows(self, kind: Kind) -> list[Row]:
        """Name, time and count of each; ops by their own time on the device, on the host where there is no device."""
        if kind == "category":
            return [(work.category, work.sum_ns, work.count) for work in self.categories]
        if kind == "kernel":
            return [(work.name, work.sum_ns, work.count) for work in self.activity_times]
        by_device = bool(self.devices)
        return [(op.name, op.self_device_ns if by_device else op.self_cpu_ns, op.calls) for op in self.ops.ops]


def comparable_of(report: Report) -> Comparable:
    """What a comparison needs of a report."""
    return msgspec.convert(report.as_json(), Comparable)


def read_comparable(path: str | Path) -> Comparable | None:
    """The report in a file, None for files that are something else: a trace, perhaps.

    Args:
        path: the file.

    Raises:
        NotAReportError: a JSON document of this program that is no report on a trace, of another schema, or damaged.
    """
    stored = read_stored(path)
    if stored is None:
        return None
    name = name_of(str(path))
    _check_kind(name, stored.parts)
    try:
        subject = msgspec.json.decode(stored.data, type=Comparable)
        _check_amounts(subject)
    except (msgspec.DecodeError, RecursionError, KeyError) as error:
        what = f": {error}" if isinstance(error, msgspec.DecodeError) else ""
        again = "Make it anew: analyze TRACE -o report.json"
        raise NotAReportError(f"{name} is a damaged report{what}.", again) from error
    return subject


def _check_amounts(subject: Comparable) -> None:
    """Refuse figures that no report holds.

    Raises:
        msgspec.ValidationError: times of a ledger that are negative or do not add up, or a figure beyond all measure.
        KeyError: a ledger lacks a part.
    """
    for ledger in (*subject.devices, *subject.step_ledgers):
        try:
            states = window_states(ledger)
        except AssertionError as error:
            raise msgspec.ValidationError("Expected states that sum to the window") from error
        if any(state.ns < 0 for state in states):
            raise msgspec.ValidationError("Expected times of 0 or more in a ledger")
    if not all(abs(number) < _LARGEST for number in _numbers(msgspec.to_builtins(subject))):
        raise msgspec.ValidationError("Expected numbers below 2^53")


def _numbers(value: Any) -> Iterator[int | float]:
    """All numbers of a plain document."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)


def _check_kind(name: str, found: Mapping[str, msgspec.Raw]) -> None:
    again = "Pass traces, or reports made with: analyze TRACE -o report.json"
    if "snapshot" in found:
        raise NotAReportError(f"{name} is a report on a memory snapshot.", "Compare snapshots as .pickle files.")
    if "sweep" in found or "saturated_batch_size" in found:
        raise NotAReportError(f"{name} is a batch sweep, not a report on one trace.", again)
    if "trace" not in found:
        raise NotAReportError(f"{name} is a comparison, not a report on one trace.", again)
    try:
        version = msgspec.json.decode(found["schema_version"], type=str)
    except msgspec.DecodeError:
        version = ""
    if version.partition(".")[0] not in READ:
        theirs = version if _VERSION.fullmatch(version) else "of another kind"
        reads = " and ".join(f"{major}.x" for major in READ)
        raise NotAReportError(f"{name} has report schema {theirs}; this program reads {reads}.", again)
