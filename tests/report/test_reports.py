"""The report in its formats: goldens, the JSON contract, widths, escaping, and agreement between formats."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.cells import cell_len

from analyze.compare.json_schema import json_schema
from analyze.report import Report, build_report, render
from analyze.report.to_markdown import escape
from analyze.report.to_markdown import render as to_markdown
from analyze.report.to_terminal import render as to_terminal
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.golden import EXTENSIONS, GOLDEN, SAMPLES, SCHEMAS, golden_report

NASTY = "k|`x`<script>alert(1)</script>[a](http://e)\x1b[31m*b*_c_ ![i](j)\u202e$(rm) {{7*7}}"


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda path: path.name.removesuffix(".json.gz"))
def sample(request: pytest.FixtureRequest) -> Report:
    return golden_report(request.param)


@pytest.mark.parametrize("form", EXTENSIONS)
def test_golden(sample: Report, form: str) -> None:
    """`python -m tests.golden` rewrites these after a change that is meant."""
    stored = (GOLDEN / f"{sample.trace.name.removesuffix('.json.gz')}{EXTENSIONS[form]}").read_text(encoding="utf-8")
    assert render(sample, form) == stored


@pytest.mark.parametrize("name", SCHEMAS)
def test_golden_schema(name: str) -> None:
    assert json.loads((GOLDEN / name).read_text()) == json.loads(json.dumps(SCHEMAS[name]()))


def test_json_keeps_its_contract(sample: Report) -> None:
    jsonschema.validate(json.loads(render(sample, "json")), json_schema())


def test_same_trace_same_bytes(sample: Report) -> None:
    again = golden_report(next(p for p in SAMPLES if p.name == sample.trace.name))
    for form in EXTENSIONS:
        assert render(sample, form) == render(again, form)


def test_one_screen_of_eighty_columns(sample: Report) -> None:
    lines = render(sample, "terminal").splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert len(lines) <= 40


@pytest.mark.parametrize("width", [30, 40, 59, 60, 80, 100, 120, 200])
def test_any_width_fits_and_cuts_no_number(sample: Report, width: int) -> None:
    text = to_terminal(sample.page, width=width)
    name = sample.trace.name  # in a command it is never cut: what is printed works when it is typed
    lines = [line for line in text.splitlines() if line.removesuffix(" \\").strip() != name]
    assert max(cell_len(line) for line in lines) <= min(width, 120)
    for figure in re.findall(r"(?m)^ (?:Computation|Total) .*?([\d,.]+ [mµn]?s)", render(sample, "terminal")):
        assert figure in text


def test_ascii_and_color() -> None:
    report = golden_report(SAMPLES[0])
    assert to_terminal(report.page, ascii_only=True).isascii()
    assert "\x1b[" not in to_terminal(report.page)
    colored = to_terminal(report.page, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == to_terminal(report.page).split()


def figures(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,]*\.\d+", text))


def test_terminal_and_markdown_print_the_same_breakdown(sample: Report) -> None:
    terminal, markdown = render(sample, "terminal"), render(sample, "md")
    for row in re.findall(r"(?m)^ (?:Computation|Exposed|Idle|Other idle|Total).*$", terminal):
        numbers = re.findall(r"<?[\d,.]+(?= [mµn]?s\b)|<?[\d.]+%", row)
        assert all(number in markdown for number in numbers), row


def nasty_report(tmp_path: Path) -> Report:
    b = TraceBuilder().step(1, 0, 10_000).frame(NASTY, 20, 3_000).op(NASTY, 30, 5_000)
    b.run(NASTY, (40, 5), (60, 10)).run(NASTY, (3_000, 5), (3_010, 10)).annotation(NASTY, 25, 4000)
    b.metadata["deviceProperties"][0]["name"] = NASTY
    return build_report(Trace.load(b.write(tmp_path / "trace.json")))


def test_names_stay_inert_in_markdown(tmp_path: Path) -> None:
    """Rendered by a CommonMark parser, nothing that a name holds becomes markup, and tables keep their columns."""
    text = render(nasty_report(tmp_path), "md")
    assert "\x1b" not in text
    assert "\u202e" not in text
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in html
    assert "<img" not in html
    ours = re.compile('<a ((href="#|id=")finding-host-lead|href="https://docs\\.pytorch\\.org/[\\w./-]+)">')
    assert all(ours.fullmatch(link) for link in re.findall("<a [^>]*>", html))
    for table in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().splitlines()}
        assert len(counts) == 1, table


def test_names_stay_inert_in_the_terminal(tmp_path: Path) -> None:
    text = render(nasty_report(tmp_path), "terminal")
    assert "\x1b" not in text
    path = str(tmp_path / "trace.json")
    assert max(cell_len(line) for line in text.splitlines() if path not in line) <= 80


def test_markup_of_kernel_names_is_printed_as_it_is() -> None:
    """rich would eat `[with T=int]` and turn `:warning:` into an emoji."""
    assert escape("f [with T=int] :warning:") == "f \\[with T=int\\] :warning:"


def test_markdown_keeps_within_its_budget() -> None:
    page = golden_report(SAMPLES[-1]).page
    whole = to_markdown(page)
    for budget in range(3_000, len(whole), 997):
        assert len(to_markdown(page, budget=budget)) <= budget
    assert to_markdown(page, budget=len(whole)) == whole
    short = to_markdown(page, budget=4_000)
    assert "Left out to keep within 4,000 characters" in short
    assert short.startswith("## Trace report")


def test_every_percent_names_its_whole(sample: Report) -> None:
    """Percent columns say of what in their heads; percents in sentences are followed by it or stand in a list of it."""
    page = sample.page
    for section in page.sections:
        for block in section.blocks:
            for column in getattr(block, "columns", ()):
                if column.kind.value == "share":
                    assert re.search(r"\bof\b", column.head), column.head


def test_json_holds_the_required_keys(sample: Report) -> None:
    found: dict[str, Any] = sample.as_json()
    assert set(found["launches"]) >= {
        "calls", "linked", "unlinked", "latency_ns", "queue_time_ns", "max_queue_depth", "skewed",
    }  # fmt: skip
    assert set(found["blocking_calls"]) >= {"blocked_ns", "profiler_final_ns", "calls"}
    assert all(set(c) >= {"category", "count", "sum_ns", "exclusive_ns", "share"} for c in found["categories"])
    assert all(
        set(g)
        >= {"device", "start_ns", "length_ns", "parts", "previous", "next", "launch", "op", "frame", "after_sync"}
        for g in found["gaps"]
    )
    assert all(set(s) >= {"name", "wall_ns", "device_ns", "activities"} for s in found["steps"])
    for device in found["devices"]:
        assert len(device["idle"]) == 10
        assert device["busy_ns"] + sum(device["idle"].values()) == device["window_ns"]


def test_json_escapes_what_a_terminal_would_act_on(sample: Report) -> None:
    hostile = replace(sample, trace=replace(sample.trace, name="a\x9b31mb\u202ec\u2028d\x1b[0m"))
    text = render(hostile, "json")
    assert json.loads(text)["trace"]["name"] == hostile.trace.name
    assert not re.search("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\x1b]", text)


@pytest.mark.parametrize("name", ["", "h100_owlv2_large.json.gz", "a100_nccl_training.json.gz", "cpu_only_ops.json.gz"])
def test_a_report_for_one_screen_only_draws_the_same_screen(name: str, request: pytest.FixtureRequest) -> None:
    """It leaves out what one screen does not show."""
    path = request.getfixturevalue("shared") / "traces" / name if name else SAMPLES[-1]
    trace = Trace.load(path)
    less = build_report(trace, one_screen=True)
    assert render(less, "terminal") == render(build_report(trace), "terminal")
    assert "roofline" not in less.measures._found
