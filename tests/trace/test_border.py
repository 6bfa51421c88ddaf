"""Values are checked where they enter: one bad value loses itself or its row, and a notice says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.errors import DamagedTraceError, NotATraceError
from analyze.report import build_report, render
from analyze.trace import Trace
from analyze.trace.clock import EARLIEST_NS, LATEST_NS, LONGEST_NS, NULL, durations_ns, to_ns
from analyze.trace.limits import bound
from analyze.trace.numbers import whole
from analyze.trace.odd import Odd, shown
from analyze.trace.raw import are_sizes, is_grid
from tests.builder import TraceBuilder

Load = Callable[[TraceBuilder], Trace]


def five() -> TraceBuilder:
    """Five launches of five kernels, 100 us apart."""
    b = TraceBuilder(offset_us=0)
    for i in range(5):
        b.op("aten::mm", 100 * i, 30).run("k", (100 * i + 5, 5), (100 * i + 20, 50))
    return b


def said(trace: Trace) -> dict[str, tuple[int, str]]:
    return {notice.id: (notice.count, notice.text) for notice in trace.recording.notices}


def raw(b: TraceBuilder, path: Path, before: str, after: str) -> Trace:
    """The built document with a piece of its text exchanged once."""
    text = b.text()
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8", "surrogatepass")
    return Trace.load(path)


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ('"pid": 4127', '"pid": [1]', "pid"),
        ('"pid": 4127', '"pid": {"a": 1}', "pid"),
        ('"pid": 4127', '"pid": 1.5', "pid"),
        ('"tid": 4127', '"tid": [[]]', "tid"),
        ('"ts": 100.000', '"ts": 1e99999999999999999999', "ts"),
        ('"ts": 100.000', '"ts": "1e999999"', "ts"),
        ('"ts": 100.000', '"ts": true', "ts"),
        ('"dur": 30.000', '"dur": 9000000000000.5', "dur"),
        ('"dur": 30.000', '"dur": 1e400', "dur"),
        ('"correlation": 103', '"correlation": 1e99999999999999999999', "correlation"),
        ('"correlation": 103', '"correlation": [103]', "correlation"),
        ('"stream": 7', '"stream": {}', "stream"),
        ('"args": {', '"args": {"Input Dims": ' + "[" * 2000 + "]" * 2000, "Input Dims"),
        ('"args": {', '"args": {"unused": ' + "[" * 2000 + "]" * 2000, "args"),
        ('"numSms": 132', '"numSms": 1000000000000000000000000000000', "numSms"),
        ('"id": 0', '"id": 1000000000000000000000000000000', "id"),
        ('"cuda_runtime_version": 12080', '"cuda_runtime_version": -5', "cuda_runtime_version"),
    ],
)
def test_one_bad_value_loses_itself(before: str, after: str, field: str, tmp_path: Path) -> None:
    trace = raw(five(), tmp_path / "t.json", before, after)
    count, text = said(trace)["odd-values"]
    assert f"{field} (1, such as " in text
    assert count == text.count("(1, such as")
    heights = [trace.recording.frames[name].height for name in ("ops", "runtime", "activities")]
    assert heights == [5, 5, 5], "no row is lost with its value"
    assert trace.recording.account.total == 15
    report = build_report(trace)
    assert "internal error" not in "".join(render(report, form) for form in ("terminal", "md", "json"))


def test_a_lone_surrogate_is_replaced_and_said(tmp_path: Path) -> None:
    trace = raw(five(), tmp_path / "t.json", '"tid": 4127', '"tid": "\\ud800"')
    assert said(trace)["events-mended"][0] == 1
    assert "?" in trace.threads["tid"].to_list()
    render(build_report(trace), "json").encode()


def test_every_number_of_digits_ends_at_once(tmp_path: Path) -> None:
    trace = raw(five(), tmp_path / "t.json", '"correlation": 103', '"correlation": ' + "9" * 100_000)
    assert trace.activities["correlation"].null_count() + trace.runtime["correlation"].null_count() == 1


@pytest.mark.parametrize(("ns", "kept"), [(LONGEST_NS, True), (LONGEST_NS + 1, False)])
def test_the_longest_duration(ns: int, kept: bool) -> None:
    text = f"{ns // 1000}.{ns % 1000:03d}"
    assert durations_ns([text]).tolist() == [ns if kept else NULL]


@pytest.mark.parametrize(
    ("ns", "kept"), [(EARLIEST_NS, True), (EARLIEST_NS - 1, False), (LATEST_NS, True), (LATEST_NS + 1, False)]
)
def test_the_earliest_and_the_latest_start(ns: int, kept: bool) -> None:
    sign = "-" if ns < 0 else ""
    assert to_ns([f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"]).tolist() == [ns if kept else NULL]
    assert LATEST_NS - EARLIEST_NS < 2**63


def columns(**values: list[int]) -> Any:
    from array import array

    from analyze.trace.columns import Tables

    tables = {name: dict(table.ints) for name, table in Tables().tables.items()}
    for name, column in values.items():
        table, _, key = name.partition("__")
        tables[table] = {other: tables[table][other] or array("q", [NULL] * len(column)) for other in tables[table]}
        tables[table][key] = array("q", column)
    return tables


def test_durations_that_add_up_to_more_than_can_be_fall_out() -> None:
    """2^61 ns in all: 2,048 rows of 2^50 ns and no more; with 2^51 each, 1,024."""
    odd = Odd()
    tables = columns(activities__dur_ns=[2**50] * 2047 + [5])
    bound(tables, odd)
    assert not odd.counts
    tables = columns(activities__dur_ns=[2**51] * 1100 + [5])
    bound(tables, odd)
    assert odd.counts == {"dur": 1100}
    assert tables["activities"]["dur_ns"].tolist() == [NULL] * 1100 + [5]


def test_sizes_that_no_memory_has_fall_out() -> None:
    odd = Odd()
    tables = columns(
        memory__size_bytes=[2**50, 2**50 + 1, -(2**50), NULL],
        memory__device=[-1, -2, 1023, 1024],
        activities__device=[0, 1023, 1024, -1],
    )
    bound(tables, odd)
    assert odd.counts == {"Bytes": 1, "Device Id": 2, "device": 2}
    assert odd.examples == {"Bytes": str(2**50 + 1), "Device Id": "-2", "device": "1024"}


def test_an_allocation_larger_than_all_that_is_allocated_falls_out() -> None:
    odd = Odd()
    tables = columns(
        memory__size_bytes=[512, 513, 513], memory__allocated_bytes=[512, 512, 0], memory__device_type=[1, 1, 0]
    )
    bound(tables, odd)
    assert tables["memory"]["size_bytes"].tolist() == [512, NULL, 513]
    assert odd.counts == {"Bytes": 1}


def test_rows_far_from_all_others_have_no_time(load: Load) -> None:
    b = five().op("just inside", 12 * 86_400 * 1e6, 5).op("years away", 40 * 365 * 86_400 * 1e6, 5)
    trace = load(b)
    starts = dict(zip(trace.ops["name"].cast(str).to_list(), trace.ops["start_ns"].to_list(), strict=True))
    assert starts["years away"] is None
    assert starts["just inside"] == 12 * 86_400 * 10**9
    assert said(trace)["odd-values"] == (1, said(trace)["odd-values"][1])
    assert said(trace)["rows-without-time"][0] == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ph": None}, "kernel without a phase"),
        ({"ph": "x"}, "kernel of phase 'x'"),
        ({"ph": "i"}, "kernel of phase 'i'"),
        ({"ph": 5}, "kernel without a phase"),
        ({"cat": None}, "kernel without a category"),
        ({"cat": ["kernel"]}, "kernel without a category"),
    ],
)
def test_a_device_row_with_an_odd_category_or_phase_is_used(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    document = json.loads(five().text())
    row = next(row for row in document["traceEvents"] if row["cat"] == "kernel")
    row.update(change)
    (tmp_path / "t.json").write_text(json.dumps(document))
    trace = Trace.load(tmp_path / "t.json")
    assert trace.activities.height == 5
    assert trace.activities["launch"].to_list() == [0, 1, 2, 3, 4]
    assert why in said(trace)["rows-mended"][1]


def test_an_instant_of_a_device_category_is_counted_and_not_used(load: Load) -> None:
    trace = load(five().row("kernel", "mark", 1, None, ph="i", pid=0, tid=7))
    assert trace.activities.height == 5
    assert said(trace)["odd-rows"][0] == 1
    assert "kernel of phase 'i'" in said(trace)["odd-rows"][1]


def test_a_category_without_any_complete_row(load: Load) -> None:
    b = TraceBuilder().op("aten::mm", 0, 10).row("kernel", "mark", 1, None, ph="i")
    assert load(b).activities.height == 0


def test_a_kernel_without_a_device_takes_the_only_one(load: Load) -> None:
    b = five()
    b.row("kernel", "lost", 600, 10, pid="x", tid=7, stream=7)
    trace = load(b)
    assert trace.activities["device"].to_list() == [0] * 6
    assert said(trace)["device-assumed"][0] == 1


def test_a_kernel_without_a_device_beside_two_is_counted_as_lost(load: Load) -> None:
    b = five().kernel("other", 550, 10, device=1)
    b.row("kernel", "lost", 600, 10, pid="x", tid=7, stream=7)
    trace = load(b)
    assert trace.activities.height == 6
    assert said(trace)["device-unknown"][0] == 1
    assert "'lost'" in said(trace)["device-unknown"][1]
    assert trace.recording.account.lost["without a device"] == 1


LISTS: dict[str, tuple[Callable[[str, str], str], int]] = {
    "a second key": (lambda a, b: f'{{"x": 1, "traceEvents": {a}, "traceEvents": {b}}}', 5),
    "the first one empty": (lambda a, b: f'{{"traceEvents": [], "traceEvents": {a}, "traceEvents": {b}}}', 5),
    "a nested one first": (lambda a, b: f'{{"x": {{"traceEvents": {b}}}, "traceEvents": {a}}}', 5),
    "a nested empty one first": (lambda a, b: f'{{"x": {{"traceEvents": []}}, "traceEvents": {a}, "y": {b}}}', 0),
    "two documents": (lambda a, b: f'{{"traceEvents": {a}}}\n{{"y": 1, "traceEvents": {b}}}', 5),
    "two lists": (lambda a, b: f"{a}\n{b}", 5),
    "a text that looks like one": (
        lambda a, _: json.dumps({"x": '"traceEvents": ['})[:-1] + f', "traceEvents": {a}}}',
        0,
    ),
}


@pytest.mark.parametrize("how", LISTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_rows_of_further_lists_are_counted_and_not_used(how: str, indent: int | None, tmp_path: Path) -> None:
    rows = json.loads(five().text())["traceEvents"]
    other = [{**row, "ts": row["ts"] + 7} for row in rows[:5]]
    write, further = LISTS[how]
    (tmp_path / "t.json").write_text(write(json.dumps(rows, indent=indent), json.dumps(other, indent=indent)))
    trace = Trace.load(tmp_path / "t.json")
    assert trace.activities["start_ns"].to_list() == [(100 * i + 20) * 1000 for i in range(5)]
    assert trace.recording.account.lost["in further lists"] == further
    assert said(trace).get("further-lists", (0, ""))[0] == further
    assert not trace.recording.cut


def test_a_second_document_of_many_pieces_is_counted(tmp_path: Path) -> None:
    """As long as several pieces, so that its rows are met one piece at a time."""
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": f"op {i}", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i in range(20_000)
    ]
    text = json.dumps({"traceEvents": rows})
    assert len(text) > 1 << 20
    (tmp_path / "t.json").write_text(text + text)
    trace = Trace.load(tmp_path / "t.json")
    assert trace.ops.height == 20_000
    assert trace.recording.account.lost["in further lists"] == 20_000


def test_damage_beyond_use_is_given_up_early(tmp_path: Path) -> None:
    row = '{{"ph": "X", "cat": "python_function", "name" x: "a{i}", "ts": {i}, "dur": 1, "args": {{}}}}'
    (tmp_path / "t.json").write_text(
        '{"traceEvents": [\n' + ",\n".join(row.format(i=i) for i in range(60_000)) + "\n]}"
    )
    with pytest.raises(DamagedTraceError, match=r"of the first [0-9,]+ events cannot be read, such as"):
        Trace.load(tmp_path / "t.json")


def test_a_few_damaged_rows_in_front_are_no_reason_to_give_up(tmp_path: Path) -> None:
    sound = ",\n".join(
        f'{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": {i}, "dur": 1}}' for i in range(3000)
    )
    broken = ",\n".join('{"ph": "X", "name" x: "a", "ts": 1}' for _ in range(100))
    (tmp_path / "t.json").write_text('{"traceEvents": [\n' + broken + ",\n" + sound + "\n]}")
    trace = Trace.load(tmp_path / "t.json")
    assert trace.ops.height == 3000
    assert said(trace)["events-lost"][0] == 100


def test_rows_without_anything_are_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from analyze.trace import stretch

    monkeypatch.setattr(stretch, "GIVE_UP_USELESS", 1000)
    (tmp_path / "t.json").write_text('{"traceEvents": [' + ",".join(["{}"] * 300_000) + "]}")
    with pytest.raises(NotATraceError, match="no category or no phase"):
        Trace.load(tmp_path / "t.json")


def test_whole_numbers_and_nothing_else() -> None:
    assert [whole(v) for v in (7, 7.0, "7", "-3", 2**64 - 1)] == [7, 7, 7, -3, -1]
    assert [whole(v) for v in (7.5, "7.5", True, None, [], "x", 2**64, float("nan"))] == [NULL] * 8


def test_shapes_and_grids() -> None:
    assert are_sizes([[2**20, 2**30], [], [[1, 2], [3]], "x"])
    assert not are_sizes([[2**20, 2**30, 2]])
    assert are_sizes([2**50])
    assert not are_sizes([2**50 + 1])
    assert not are_sizes([-(2**51)])
    assert not are_sizes("[1, 2]")
    assert is_grid([2**31 - 1, 2**15, 2**15])
    assert not is_grid([2**31, 1, 1])
    assert not is_grid([1.5])
    assert not is_grid([2**31 - 1] * 3)


@pytest.mark.parametrize("value", ["\x1b[31m", "\u202e", "`x`\n", [1], {"a": 1}, 10**40, 1e300])
def test_examples_are_plain_and_short(value: Any) -> None:
    text = shown(value)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 60
