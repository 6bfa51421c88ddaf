"""Comparisons: hand-worked changes, what appears and vanishes, what is refused, names that stay inert."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.cells import cell_len

from analyze.compare import Comparable, Comparison, comparable_of, compare, labels_of, line_up, read_comparable
from analyze.compare.changes import find_changes
from analyze.compare.comparable import Judged
from analyze.compare.pair import SAME
from analyze.compare.schemas import lineup_schema, pair_schema
from analyze.compare.wording import change_text, ratio_text, side_by_side
from analyze.errors import NotAReportError, NotComparableError
from analyze.report import Report, build_report, render
from analyze.report.redact import redacted
from analyze.report.to_terminal import render as to_terminal
from analyze.trace import Trace
from tests.golden import SAMPLES, golden_report
from tests.report.runs import FP16, SGEMM, TF32, US, edited, report, run, subject
from tests.report.test_reports import NASTY

MIRROR = {"better": "worse", "worse": "better"}


def test_a_faster_run_by_hand(tmp_path: Path) -> None:
    """Kernels of 400, 410, 420 us become 200, 210, 220; walls of 1000 become 800.

    The device's paces are 1000, 1000 and 420 to the last end, and 800, 810 and 220.
    """
    a = subject(run([400, 410, 420]), tmp_path / "a.json")
    b = subject(run([200, 210, 220], [800, 810, 820]), tmp_path / "b.json")
    changes = compare(a, b).changes
    step = changes.row("step_time")
    assert step is not None
    assert (step.a, step.b, step.change, step.verdict) == (1000 * US, 800 * US, -200 * US, "better")
    assert (step.a_steps.n, step.b_steps.low, step.b_steps.high) == (3, 800 * US, 820 * US)
    computation = changes.row("computation_time")
    assert (computation.a, computation.b, computation.verdict) == (410 * US, 210 * US, "better")
    assert computation.ratio == 210 / 410
    # window: 20 to 2020 + 420; idle: 600 + 590
    assert changes.row("idle_share").a == pytest.approx((600 + 590) / (2000 + 420))
    # gaps of a step end with its kernel: 600 and 590, and none in the first, where the window begins
    launch_bound = changes.row("launch_bound_time")
    assert (launch_bound.a, launch_bound.a_steps.n, launch_bound.verdict) == (590 * US, 2, "no-spread")
    assert changes.row("gemm_work_time").change == -200 * US
    assert changes.row("launches").verdict == "equal"
    assert changes.row("memory_peak").verdict == "not-comparable"
    assert changes.structure.ops_by == "device"
    (around,) = changes.structure.host_ops  # 20 of each step are the op's on both sides
    assert (around.name, around.a_ns, around.b_ns) == ("ProfilerStep*", 980 * US, 790 * US)
    (kernel,) = changes.structure.kernels
    assert (kernel.name, kernel.a_ns, kernel.b_ns, kernel.a_count) == (SGEMM, 410 * US, 210 * US, 1)
    text = render(compare(a, b), "terminal")
    assert "FASTER  Step time (median) goes from 1.00 ms to 0.80 ms (-20.0%): better." in text
    assert re.search(r"Computation +410.0 µs +210.0 µs +-48.8%  better", text)


def test_two_steps_are_no_spread(tmp_path: Path) -> None:
    a, b = subject(run([400, 400]), tmp_path / "a.json"), subject(run([10, 10], [50, 50]), tmp_path / "b.json")
    found = compare(a, b)
    verdicts = {row.verdict for group in found.changes.groups for row in group.rows}
    assert verdicts <= {"no-spread", "equal", "not-comparable"}
    assert "2 steps, no spread, so not judged" in render(found, "md")


def test_without_steps_windows_are_compared_and_it_is_said(tmp_path: Path) -> None:
    bare = run([400, 400, 400])
    bare.rows = [row for row in bare.rows if row["cat"] != "user_annotation"]
    a, b = subject(bare, tmp_path / "a.json"), subject(run([400, 400]), tmp_path / "b.json")
    found = compare(a, b)
    assert not found.changes.per_step
    assert found.changes.row("computation_time").a == 1200 * US
    text = render(found, "terminal")
    assert "No steps in baseline: amounts are of the whole windows" in text.replace("\n          ", " ")
    assert "Time per window" in text


def test_overlapping_steps_are_within_spread(tmp_path: Path) -> None:
    a = subject(run([400] * 4, [1000, 1100, 1050, 1020]), tmp_path / "a.json")
    b = subject(run([400] * 4, [1010, 1120, 1080, 1090]), tmp_path / "b.json")
    assert compare(a, b).changes.row("step_time").verdict == "within-spread"
    assert compare(a, b).page.headline == "Within step spread"


def test_kernels_appear_vanish_and_change_precision(tmp_path: Path) -> None:
    a = subject(run([400, 410, 420], name=SGEMM), tmp_path / "a.json")
    b = subject(run([100, 110, 120], name=TF32), tmp_path / "b.json")
    structure = compare(a, b).changes.structure
    assert [(k.name, k.a_ns, k.b_ns) for k in structure.appeared] == [(TF32, 0, 110 * US)]
    assert [(k.name, k.a_ns, k.b_ns) for k in structure.vanished] == [(SGEMM, 410 * US, 0)]
    assert structure.precision_matched == 1
    (change,) = structure.precision
    assert (change.op, change.a_precision, change.b_precision) == ("aten::mm", "fp32", "tf32")
    assert (change.a_ns, change.b_ns) == (410 * US, 110 * US)
    text = render(compare(a, b), "md")
    assert "1 went fp32 → tf32 (410 µs → 110 µs)" in text
    assert "1 appeared (110 µs per step) and 1 vanished (410 µs per step)" in text


def judged(
    one: Comparable, found: tuple[str, ...], passed: tuple[str, ...], unmeasured: tuple[str, ...] = ()
) -> Comparable:
    return replace(
        one,
        findings=tuple(Judged(i, "high", i) for i in found),
        checks_passed=passed,
        checks_not_measured=tuple(Judged(i, reason="no stacks") for i in unmeasured),
    )


def test_findings_come_and_go(tmp_path: Path) -> None:
    """A rule that cannot judge the other side makes a finding neither fixed nor new."""
    one = subject(run([400, 400]), tmp_path / "a.json")
    a = judged(one, ("fp32-gemm", "sync-stall", "input-wait"), ("launch-bound",))
    b = judged(one, ("sync-stall", "launch-bound", "novel"), ("fp32-gemm",), ("input-wait",))
    found = compare(a, b)
    findings = found.changes.structure.findings
    assert (findings.fixed, findings.new, findings.left) == (("fp32-gemm",), ("launch-bound",), ("sync-stall",))
    assert findings.untold == ("input-wait", "novel")
    assert not found.changes.equal
    assert "fixed: fp32-gemm; new: launch-bound; left: sync-stall" in render(found, "md")


def test_a_file_with_itself(tmp_path: Path) -> None:
    one = subject(run([400, 410, 420]), tmp_path / "a.json")
    found = compare(one, one)
    assert found.changes.equal
    assert found.page.sentences == (f"Both are the same file. {SAME}",)
    assert found.page.sections == ()
    assert "NO DIFFERENCE" in render(found, "terminal")


def test_a_report_of_before_causes_were_told_apart_is_not_compared_in_them(tmp_path: Path) -> None:
    """What was all launch-bound then is several states now: neither is better or worse."""
    one = subject(run([400, 410, 420]), tmp_path / "a.json")
    ledgers = {
        name: tuple(replace(led, causes={}) for led in getattr(one, name)) for name in ("devices", "step_ledgers")
    }
    found = render(compare(replace(one, **ledgers), one), "md")
    states = [line for line in found.splitlines() if line.startswith(("| Idle: launch-bound", "| Idle: host pause"))]
    assert states
    assert all("not comparable" in line for line in states)


def test_a_report_compares_as_its_trace(tmp_path: Path) -> None:
    for i, path in enumerate(SAMPLES):
        made = golden_report(path)
        stored = tmp_path / f"{i}.json"
        stored.write_text(render(made, "json"))
        assert read_comparable(stored) == comparable_of(made)


def test_all_shared_traces_equal_themselves_and_mirror(shared: Path) -> None:
    """Compared with itself nothing differs; swapped, every change has the other sign and better is worse."""
    names = sorted(json.loads((shared / "traces" / "ledger.json").read_text()))
    assert len(names) > 20
    subjects = [comparable_of(build_report(Trace.load(shared / "traces" / name))) for name in names]
    for one in subjects:
        found = compare(one, one)
        assert found.changes.equal, one.name
        assert not found.page.sections
    for a, b in pairwise(subjects):
        there, back = find_changes(a, b), find_changes(b, a)
        for group in there.groups:
            mirrored = {row.id: row for row in back.group(group.id).rows}
            for row in group.rows:
                other = mirrored[row.id]
                assert (row.a, row.b) == (other.b, other.a)
                assert MIRROR.get(row.verdict, row.verdict) == other.verdict, (a.name, b.name, row)
        assert {k.name for k in there.structure.appeared} == {k.name for k in back.structure.vanished}
        for form in ("terminal", "md", "json"):
            assert render(compare(a, b), form)
        screen = render(compare(a, b), "terminal").splitlines()
        assert max(cell_len(line) for line in screen) <= 80


def test_definitions_must_agree_and_lengths_need_not(tmp_path: Path) -> None:
    a = subject(run([400, 400]), tmp_path / "a.json")
    b = replace(a, definitions={**a.definitions, "long_gap_ns": 5_000_000})
    with pytest.raises(NotComparableError, match=r"long_gap_ns \(1,000,000 and 5,000,000\)"):
        compare(a, b)
    with pytest.raises(NotComparableError, match="long_gap_ns"):
        line_up([a, a, b], ["a", "b", "c"])
    assert compare(a, replace(a, definitions={**a.definitions, "top": 99})).changes.equal


def test_what_differs_besides_the_figures_is_a_notice(tmp_path: Path) -> None:
    a = subject(run([400, 400]), tmp_path / "a.json")
    b = subject(run([400, 400], gpu="Other GPU"), tmp_path / "b.json")
    b = replace(b, schema_version="1.9", trace=replace(b.trace, selection="steps 2:5", flags=("with_stack",)))
    ids = {notice.id for notice in compare(a, b).page.notices}
    assert ids == {"different-gpu", "different-schema", "different-selection", "different-flags"}
    assert not compare(a, a).page.notices


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "another schema": ({"schema_version": "3.0"}, "has report schema 3.0; this program reads 1.x and 2.x"),
    "a snapshot": ({"snapshot": {}}, "is a report on a memory snapshot"),
    "times as text": ({"steps": [{"time_ns": "long"}]}, r"damaged report: Expected `int \| null`, got `str` - at"),
    "no trace": ({"trace": 5}, "damaged report"),
    "a part missing": ({"devices": [{"computation_ns": 1, "exposed_communication_ns": 0, "exposed_copy_ns": 0,
                                     "idle": {}, "idle_long": {}, "first_use_ns": 0}]}, "damaged report"),
    "beyond all measure": ({"metrics": {"step_time": {"value": 1e300, "unit": "ns", "better": "lower", "of": ""}}},
                           "below 2"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_report(kind: str, tmp_path: Path) -> None:
    keys, said = BROKEN[kind]
    path = edited(report(run([400]), tmp_path / "t.json"), tmp_path / "r.json", **keys)
    with pytest.raises(NotAReportError, match=said) as caught:
        read_comparable(path)
    assert caught.value.hint


def test_a_comparison_is_no_report_and_other_json_is_left_to_the_trace_reader(tmp_path: Path) -> None:
    one = subject(run([400]), tmp_path / "t.json")
    path = tmp_path / "c.json"
    path.write_text(render(compare(one, one), "json"))
    with pytest.raises(NotAReportError, match="is a comparison, not a report on one trace"):
        read_comparable(path)
    for text in ("", "{}", "[1]", '{"a": 1', '{"tool": 5, "schema_version": "1.0"}', "{" * 100_000, "hello"):
        path.write_text(text)
        assert read_comparable(path) is None
    assert read_comparable(tmp_path / "t.json") is None, "a trace"
    assert read_comparable(tmp_path / "nothing.json") is None


def nasty(tmp_path: Path) -> Comparison:
    a = subject(run([400, 410, 420], name=NASTY, gpu=NASTY), tmp_path / "a.json")
    b = subject(run([100, 110, 120], name=NASTY + "2", gpu="x"), tmp_path / "b.json")
    a = replace(judged(a, (NASTY,), ()), trace=replace(a.trace, name=NASTY, selection=NASTY))
    return compare(a, judged(b, (), (NASTY,)))


def test_names_stay_inert(tmp_path: Path) -> None:
    found = nasty(tmp_path)
    text = render(found, "md")
    assert not {"\x1b", "\u202e"} & set(text)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert not re.search(r"<script|<img|<a ", html)
    for table in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().splitlines()}) == 1, table
    screen = render(found, "terminal")
    assert not {"\x1b", "\u202e"} & set(screen)
    assert max(cell_len(line) for line in screen.splitlines()) <= 80
    assert json.loads(render(found, "json"))["a"]["name"] == NASTY


def test_documents_keep_their_contracts(tmp_path: Path) -> None:
    a, b = subject(run([400, 410, 420]), tmp_path / "a.json"), subject(run([1, 2, 3]), tmp_path / "b.json")
    jsonschema.validate(json.loads(render(compare(a, b), "json")), pair_schema())
    jsonschema.validate(json.loads(render(line_up([a, b, a], ["x", "y", "z"]), "json")), lineup_schema())
    assert render(compare(a, b), "json") == render(compare(a, b), "json")


def test_several_inputs_make_one_column_each(tmp_path: Path) -> None:
    runs = {"fp32": run([400, 410, 420]), "tf32": run([200, 210, 220], [700] * 3, TF32),
            "fp16": run([100, 110, 120], [600] * 3, FP16), "again": run([400, 410, 420])}  # fmt: skip
    found = line_up([subject(made, tmp_path / f"{name}.json") for name, made in runs.items()], list(runs))
    rows = {row.id: row for row in found.rows}
    assert rows["step_time"].values == (1000 * US, 700 * US, 600 * US, 1000 * US)
    assert rows["step_time"].ratios == (1.0, 0.7, 0.6, 1.0)
    assert rows["step_time"].verdicts == ("equal", "better", "better", "equal")
    assert rows["gemm_tf32_share"].values == (0, 1.0, 0, 0)
    text = render(found, "terminal")
    assert re.search(r"Step time +1.00 ms +0.70 ms +0.60 ms +1.00 ms", text)
    assert re.search(r"Step time +0.70x +0.60x +1.00x", text)
    assert "Fastest: fp16, 0.60x the time of fp32." in text
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    with pytest.raises(NotComparableError, match="at most 5"):
        line_up([subject(run([1]), tmp_path / "x.json")] * 6, list("abcdef"))


def test_labels_tell_inputs_apart() -> None:
    assert labels_of([Path("x/fp32.json.gz"), Path("y/tf32.json")]) == ["fp32", "tf32"]
    runs = [Path(f"runs/{name}/trace.json.gz") for name in ("fp32", "tf32")]
    assert labels_of(runs) == ["fp32", "tf32"]
    assert labels_of(runs, folders=False) == ["A", "B"]
    assert labels_of([Path("t.json"), Path("t.json")]) == ["A", "B"]


def test_wording() -> None:
    assert side_by_side("ns", [1_234_567, 980_000, None, 0]) == ["1.23 ms", "0.98 ms", None, "0 ms"]
    assert side_by_side("ns", [123_456_789, 1]) == ["123.5 ms", "<0.1 ms"]
    assert side_by_side("bytes", [3 * 2**29, 2**20]) == ["1.50 GiB", "<0.01 GiB"]
    assert side_by_side("count", [1575, 7.25]) == ["1,575.0", "7.2"]
    assert side_by_side("share", [0.1, 0]) == ["10.0%", "0%"]
    assert [change_text("ns", 100, b) for b in (100, 105, 1000, 0, 100.01)] == [
        "0%",
        "+5.0%",
        "10.0x",
        "-100.0%",
        "+<0.1%",
    ]
    assert [change_text("share", 0.5, b) for b in (0.5, 0.48)] == ["0 pp", "-2.0 pp"]
    assert change_text("ns", 0, 5) == "from 0"
    assert change_text("ns", None, 5) is None
    assert [ratio_text(r) for r in (0.704, 12.34, 0.001, 0.0, None)] == ["0.70x", "12.3x", "<0.01x", "0.00x", None]


def test_redaction_keeps_base_names(tmp_path: Path) -> None:
    made: Report = report(run([400, 410, 420], name="/home/secret/kernel.py"), tmp_path / "a.json")
    found = redacted(compare(comparable_of(made), subject(run([1, 2, 3]), tmp_path / "b.json")))
    for form in ("terminal", "md", "json"):
        assert "secret" not in render(found, form)


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_any_width_cuts_no_number(width: int, tmp_path: Path) -> None:
    a, b = subject(run([400, 410, 420]), tmp_path / "a.json"), subject(run([100, 110, 120]), tmp_path / "b.json")
    text = to_terminal(compare(a, b).page, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    rows = re.findall(r"(?m)^ Compu\S* .*$", text)
    assert rows
    assert all(figure in rows[0] for figure in ("410.0 µs", "110.0 µs")[: 1 if width < 40 else 2])


HOSTILE = [None, True, -1, 0, 10**30, 1e308, "x" * 50, "\u202e", [], {}, [[1]], {"a": 1}, -(2**63), 2**62]
READ = ("trace", "definitions", "verdict", "metrics", "devices", "steps", "step_ledgers", "categories",
        "activity_times", "ops", "precision", "roofline", "memory", "findings", "tool", "schema_version")  # fmt: skip


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value of a document, of lists the first three."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    return [way for key, item in items for way in ((*above, key), *places(item, (*above, key)))]


@pytest.mark.parametrize("seed", range(3))
def test_a_hostile_report_is_refused_or_drawn(seed: int, tmp_path: Path) -> None:
    """Whatever stands in a report, it is refused in one sentence or compared; nothing else is raised."""
    random = Random(seed)
    made = report(run([400, 410, 420]), tmp_path / "t.json")
    good, text = comparable_of(made), render(made, "json")
    ways = places({key: json.loads(text)[key] for key in READ})
    outcomes = {"refused": 0, "drawn": 0}
    for _ in range(150):
        document = inner = json.loads(text)
        *above, last = random.choice(ways)
        for key in above:
            inner = inner[key]
        if random.random() < 0.2:
            del inner[last]
        else:
            inner[last] = random.choice(HOSTILE)
        path = tmp_path / "r.json"
        path.write_text(json.dumps(document))
        try:
            found = read_comparable(path)
            for pair in ((good, found), (found, good)) if found else ():
                for form in ("terminal", "md", "json"):
                    assert render(compare(*pair), form)
            outcomes["drawn"] += 1
        except (NotAReportError, NotComparableError):
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 10


def test_ops_that_changed_on_the_host_are_listed_beside_a_gpu(tmp_path: Path) -> None:
    """The same kernels, and one op whose host time goes from 20 to 70 us a step."""
    slower = run([400, 410, 420])
    for event in slower.rows:
        if event.get("name") == "aten::mm":
            event["dur"] = 70 * US
    made = compare(subject(run([400, 410, 420]), tmp_path / "a.json"), subject(slower, tmp_path / "b.json"))
    changed = {op.name: op.change_ns for op in made.changes.structure.host_ops}
    assert changed == {"aten::mm": 50 * US, "ProfilerStep*": -50 * US}
    assert not made.changes.structure.ops
    assert "Ops by change of host self time per step" in render(made, "md")
