"""What differs in kind: kernels and ops that come, go or take another time, precisions, findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from analyze.compare.comparable import Comparable, OpRate


class TimeChange(Struct, frozen=True):
    """Time under one name on both sides, per step where both have steps.

    Attributes:
        name: kernel, copy, memset or op.
        a_ns: the baseline's; 0 where it has none.
        b_ns: this run's.
        change_ns: second minus first.
        a_count: how often, per step like the times.
        b_count: the same of this run.
    """

    name: str
    a_ns: int
    b_ns: int
    change_ns: int
    a_count: float
    b_count: float


class PrecisionChange(Struct, frozen=True):
    """Products of one op and one set of input shapes that run in another precision.

    Attributes:
        op: name.
        input_dims: shapes as JSON text.
        a_precision: the baseline's, by most time.
        b_precision: this run's.
        a_ns: device time of the baseline, in the unit of `TimeChange`.
        b_ns: of this run.
    """

    op: str
    input_dims: str
    a_precision: str
    b_precision: str
    a_ns: int
    b_ns: int


class FindingChanges(Struct, frozen=True):
    """Findings by rule. A rule that one side could not judge, or does not know, is neither fixed nor new.

    Attributes:
        fixed: found in the baseline and passed now.
        new: passed in the baseline and found now.
        left: found in both.
        untold: found in one and not judged in the other.
    """

    fixed: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]
    untold: tuple[str, ...]


class Structure(Struct, frozen=True):
    """What differs in kind.

    Attributes:
        kernels: activity names of both sides with different times or counts, largest difference first.
        appeared: names that only this run has, most time first.
        vanished: names that only the baseline has.
        ops_by: "device" or "host": the self time that ops are compared by.
        ops: ops with different times or counts, largest difference first.
        host_ops: the same by self time on the host, where `ops` are by device; empty elsewhere.
        precision_matched: pairs of op and shapes with a precision on both sides.
        precision: those of them whose precision changed, most time first.
        findings: findings come and gone.
    """

    kernels: tuple[TimeChange, ...]
    appeared: tuple[TimeChange, ...]
    vanished: tuple[TimeChange, ...]
    ops_by: str
    ops: tuple[TimeChange, ...]
    host_ops: tuple[TimeChange, ...]
    precision_matched: int
    precision: tuple[PrecisionChange, ...]
    findings: FindingChanges

    @property
    def equal(self) -> bool:
        """Nothing differs in kind."""
        findings = self.findings
        return not any(
            (
                *(self.kernels, self.appeared, self.vanished, self.ops, self.host_ops),
                *(self.precision, findings.fixed, findings.new),
            )
        )


class _Spent(NamedTuple):
    ns: int
    times: int


def find_structure(a: Comparable, b: Comparable, *, per_step: bool) -> Structure:
    """What differs in kind between two sides.

    Args:
        a: the baseline.
        b: this run.
        per_step: divide times and counts by the steps of each side.
    """
    steps = (len(a.step_ledgers), len(b.step_ledgers)) if per_step else (1, 1)
    left, right = (_activities(side, per_step=per_step) for side in (a, b))
    known = bool(left and right)
    changes = _time_changes(left, right, steps) if known else ()
    by = "device" if a.devices and b.devices else "host"
    ops = _ops(a, by), _ops(b, by)
    on_host = (_ops(a, "host"), _ops(b, "host")) if by == "device" else ({}, {})
    matched, precision = _precision_changes(a, b, steps)
    return Structure(
        kernels=tuple(c for c in changes if c.name in left and c.name in right),
        appeared=tuple(c for c in changes if c.name not in left),
        vanished=tuple(c for c in changes if c.name not in right),
        ops_by=by,
        ops=_time_changes(*ops, steps) if all(ops) else (),
        host_ops=_time_changes(*on_host, steps) if all(on_host) else (),
        precision_matched=matched,
        precision=precision,
        findings=_finding_changes(a, b),
    )


def _activities(subject: Comparable, *, per_step: bool) -> dict[str, _Spent]:
    """Activities by name; per step only those that some step launched."""
    if per_step:
        return _summed((w.name, w.step_sum_ns, w.step_count) for w in subject.activity_times if w.step_count)
    return _summed((work.name, work.sum_ns, work.count) for work in subject.activity_times)


def _ops(subject: Comparable, by: str) -> dict[str, _Spent]:
    """Ops and ranges by their self time; names that take none are no news."""
    ops = [op for op in subject.ops.ops if op.kind in ("op", "range")]
    rows = ((op.name, op.self_device_ns if by == "device" else op.self_cpu_ns, op.calls) for op in ops)
    return _summed(row for row in rows if row[1])


def _summed(rows: Iterable[tuple[str, int, int]]) -> dict[str, _Spent]:
    found: dict[str, _Spent] = {}
    for name, ns, count in rows:
        before = found.get(name, _Spent(0, 0))
        found[name] = _Spent(before.ns + ns, before.times + count)
    return found


def _time_changes(a: dict[str, _Spent], b: dict[str, _Spent], steps: tuple[int, int]) -> tuple[TimeChange, ...]:
    """The names whose time or count differs, largest difference first."""
    rows = []
    for name in a.keys() | b.keys():
        x, y = a.get(name, _Spent(0, 0)), b.get(name, _Spent(0, 0))
        times = round(x.ns / steps[0]), round(y.ns / steps[1])
        row = TimeChange(name, *times, times[1] - times[0], x.times / steps[0], y.times / steps[1])
        if row.change_ns or row.a_count != row.b_count or name not in a or name not in b:
            rows.append(row)
    return tuple(sorted(rows, key=lambda row: (-abs(row.change_ns), row.name)))


def _precision_changes(a: Comparable, b: Comparable, steps: tuple[int, int]) -> tuple[int, tuple[PrecisionChange, ...]]:
    left, right = _products(a.roofline.rates), _products(b.roofline.rates)
    both = [key for key in left if key in right]
    rows = []
    for op, dims in both:
        (x, x_ns), (y, y_ns) = left[op, dims], right[op, dims]
        if x != y:
            rows.append(PrecisionChange(op, dims, x, y, round(x_ns / steps[0]), round(y_ns / steps[1])))
    return len(both), tuple(sorted(rows, key=lambda row: (-max(row.a_ns, row.b_ns), row.op, row.input_dims)))


def _products(rates: Iterable[OpRate]) -> dict[tuple[str, str], tuple[str, int]]:
    """Per op and shapes of products: the precision with most time, and the time of all."""
    times: dict[tuple[str, str], dict[str, int]] = {}
    for rate in rates:
        if rate.precision not in ("", "unknown"):
            of_key = times.setdefault((rate.op, rate.input_dims), {})
            of_key[rate.precision] = of_key.get(rate.precision, 0) + rate.device_ns
    return {key: (max(of_key, key=lambda p: (of_key[p], p)), sum(of_key.values())) for key, of_key in times.items()}


def _finding_changes(a: Comparable, b: Comparable) -> FindingChanges:
    left, right = [f.id for f in a.findings], [f.id for f in b.findings]
    gone, come = [i for i in left if i not in right], [i for i in right if i not in left]
    return FindingChanges(
        fixed=tuple(i for i in gone if i in b.checks_passed),
        new=tuple(i for i in come if i in a.checks_passed),
        left=tuple(i for i in left if i in right),
        untold=(*(i for i in gone if i not in b.checks_passed), *(i for i in come if i not in a.checks_passed)),
    )
