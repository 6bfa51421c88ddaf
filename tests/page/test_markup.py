"""The page without a browser: sound HTML, no network, names that stay names, numbers that the JSON report has."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analyze.inert import printable
from analyze.report import build_report, write
from analyze.report.html import parts
from analyze.report.html.render import SCRIPTS, bundle, render
from analyze.report.report import Report
from analyze.report.text import cells
from analyze.trace import Trace
from analyze.units import duration, memory, percent
from tests.builder import TraceBuilder
from tests.conftest import ROOT
from tests.hostile_strings import HOSTILE
from tests.page.conftest import lesson
from tests.page.markup import NUMBER, Element, numbers_of, read, texts_of, unpacked

STATIC = ROOT / "analyze" / "report" / "html" / "static"
SAMPLES = ("vit_tiny_fp32_synthetic", "vit_tiny_fp16_small_batch_synthetic", "resnet_training_cpu")
URL_ATTRIBUTES = ("src", "href", "action", "data", "poster", "background", "formaction", "xlink:href", "srcset")


@cache
def sample_report(name: str) -> Report:
    return build_report(Trace.load(ROOT / "sample_traces" / f"{name}.json.gz"))


@cache
def sample_page(name: str) -> str:
    return render(sample_report(name))


def hostile_trace() -> TraceBuilder:
    """Every string in every field that a report can show."""
    builder = TraceBuilder()
    builder.metadata["deviceProperties"][0]["name"] = HOSTILE[28]
    for i, text in enumerate(HOSTILE):
        at = i * 100.0
        builder.op(text, at, 80, tid=text, **{"Input Dims": [[text]], "Input type": [text]})
        builder.frame(f"{text}(3): {text}", at, 90, tid=text)
        builder.annotation(text, at, 95, tid=text)
        builder.row("cuda_runtime", text, at + 5, 5, tid=text, correlation=i + 1)
        builder.kernel(text, at + 30, 40, correlation=i + 1, grid=[text], block=[text])
        builder.row("gpu_memcpy", text, at + 80, 5, pid=0, tid=7, device=0, stream=7, bytes=text)
    return builder.step(1, 0, 4000)


def is_ours(element: Element) -> bool:
    return element.attributes.get("href", "").startswith(("#", "https://"))


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    trace = Trace.load(hostile_trace().write(folder / "trace.json"))
    path = folder / "page.html"
    write(build_report(trace), path)
    return path


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_sound_and_has_each_id_once(name: str) -> None:
    elements = read(sample_page(name))
    ids = [one.attributes["id"] for one in elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    targets = {one.attributes["href"][1:] for one in elements if one.attributes.get("href", "").startswith("#")}
    assert targets <= set(ids)
    assert [one.tag for one in elements].count("h1") == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_asks_for_nothing_and_its_policy_says_so(name: str) -> None:
    html = sample_page(name)
    elements = read(html)
    policy = next(one.attributes["content"] for one in elements if "http-equiv" in one.attributes)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        run = [one.text for one in elements if one.tag == tag and one.attributes.get("type") != "text/plain"]
        (text,) = run
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    for one in elements:
        assert one.tag not in ("img", "iframe", "link", "object", "embed", "base", "image", "use", "foreignobject")
        assert not any(attribute.startswith("on") or attribute == "style" for attribute in one.attributes)
        asked = {a: one.attributes[a] for a in URL_ATTRIBUTES if a in one.attributes}
        assert not asked or (one.tag == "a" and is_ours(one)), asked
    assert "url(" not in (STATIC / "style.css").read_text()
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|importScripts|sendBeacon|eval)\b", bundle())
    assert "innerHTML" not in bundle()


def test_hostile_names_are_text_everywhere(hostile_page: Path) -> None:
    html = hostile_page.read_text(encoding="utf-8")
    elements = read(html)
    tags = {one.tag for one in read(sample_page("vit_tiny_fp32_synthetic"))} | {"circle", "noscript"}
    assert {one.tag for one in elements} <= tags
    assert sum(one.tag == "script" for one in elements) == 3
    assert all(is_ours(one) for one in elements if one.tag == "a")
    assert not any(attribute.startswith("on") for one in elements for attribute in one.attributes)
    shown = " ".join(one.text for one in elements if one.tag not in ("script", "style"))
    assert "<script>alert(1)</script>" in shown
    for text in (shown, *texts_of(unpacked(elements, "scene-data"))):
        for character in set(text) - set("\n"):
            assert printable(character) == character, ascii(character)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_number_occurs_in_the_json_report(name: str) -> None:
    report = sample_report(name)
    elements = read(sample_page(name))
    stored: dict[str, Any] = unpacked(elements, "report-data")
    assert stored == json.loads(json.dumps(report.as_json()))
    known = numbers_of(stored)
    exact = [one for one in elements if "data-v" in one.attributes]
    assert len(exact) > 20
    assert {float(one.attributes["data-v"]) for one in exact} <= known
    said = {number for text in texts_of(stored) for number in NUMBER.findall(text)}
    said |= {number for part in ledger_percents(stored) for number in NUMBER.findall(part)}
    said |= {str(len(items)) for items in stored.values() if isinstance(items, list)}
    printed = [how(int(value)) for value in known if value >= 0 for how in (duration, memory)]
    said |= {number for text in printed for number in NUMBER.findall(text)}
    for one in loose_texts(elements):
        for number in NUMBER.findall(one.text):
            assert number in said or float(number.replace(",", "")) in known, one


def loose_texts(elements: list[Element]) -> list[Element]:
    """What is printed beside the exact values: not code, not definitions, not the marks on axes."""
    away = ("definitions", "key-list", "script", "style", "next", "roofline", "strip")
    return [
        one
        for one in elements
        if "data-v" not in one.attributes
        and one.tag not in ("script", "style", "title", "footer", "code", "text", "button", "option")
        and not any(part in away for part in one.path)
        and not (one.tag == "span" and "saving" in one.path)
    ]


def ledger_percents(stored: dict[str, Any]) -> list[str]:
    """Shares of the ledger's parts, by the amounts in the JSON report, rounded either way."""
    ledger = stored["ledger"]
    if ledger is None:
        return ["100.0%"]
    whole = sum(part["ns"] for part in ledger["parts"])
    tenths = [part["ns"] * 1000 / whole for part in ledger["parts"] if part["ns"]]
    rounded = {int(value) + more for value in tenths for more in (0, 1)}
    return ["100.0%", "<0.1%", *(f"{value / 10:.1f}%" for value in rounded)]


def test_the_ledger_adds_up_to_its_last_printed_digit() -> None:
    elements = read(sample_page("vit_tiny_fp32_synthetic"))
    mine = [one for one in elements if "ledger" in one.path and one.tag == "td"]
    amounts = [int(one.attributes["data-v"]) for one in mine if "data-v" in one.attributes]
    assert sum(amounts[:-1]) == amounts[-1]
    texts = [one.text.split()[0].replace(",", "") for one in mine if "data-v" in one.attributes]
    times = [0.0 if text.startswith("<") else float(text) for text in texts]
    assert abs(sum(times[:-1]) - times[-1]) < 1e-9
    percents = [float(one.text.rstrip("%")) for one in mine if "data-v" not in one.attributes and one.text[0].isdigit()]
    assert abs(sum(percents[:-1]) - percents[-1]) < 1e-9


def test_the_bar_is_as_wide_as_its_parts(page_of: Callable[[TraceBuilder], Path]) -> None:
    """Of 850 us the kernels run for 500 us, the copy for 100 us; 200 us before the second step and 50 us are idle."""
    elements = read(page_of(lesson()).read_text(encoding="utf-8"))
    bars = [one for one in elements if one.tag == "rect" and one.path[-2:] == ("ledger", "svg")]
    widths = [float(one.attributes["width"]) for one in bars]
    assert widths[0] == pytest.approx(500 / 850 * 1000, abs=0.01)
    assert widths[1] == pytest.approx(100 / 850 * 1000, abs=0.01)
    assert sum(widths) == pytest.approx(1000, abs=0.02)
    assert all(one.attributes["fill"].startswith("url(#idle-") for one in bars[2:])


def test_static_parts_are_there_without_a_script(page_of: Callable[[TraceBuilder], Path]) -> None:
    elements = read(page_of(lesson()).read_text(encoding="utf-8"))
    hidden = [one for one in elements if "data-needs-script" in one.attributes]
    assert hidden
    assert all("hidden" in one.attributes for one in hidden)
    headings = " ".join(one.text for one in elements if one.tag == "h2")
    assert "Where the window goes" in " ".join(one.text for one in elements if one.path[-1:] == ("h2",)) + headings
    assert any(one.tag == "noscript" for one in elements)
    assert any("ampere_sgemm_128x64_tn" in one.text for one in elements if one.tag == "code")


def test_each_linked_word_is_defined_on_the_page() -> None:
    elements = read(sample_page("vit_tiny_fp32_synthetic"))
    terms = {one.attributes["href"][1:] for one in elements if one.attributes.get("class") == "term"}
    defined = {one.attributes["id"] for one in elements if one.tag == "dt"}
    assert len(terms) > 10
    assert terms == defined


def test_the_same_report_gives_the_same_bytes() -> None:
    assert render(sample_report("vit_tiny_fp32_synthetic")) == sample_page("vit_tiny_fp32_synthetic")


def test_a_page_of_ours_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    report, path = sample_report("vit_tiny_cpu_fp32_b1"), tmp_path / "page.html"
    write(report, path)
    write(report, path)
    path.write_text("<html></html>")
    with pytest.raises(Exception, match="exists and is no report"):
        write(report, path)


def test_sizes(shared: Path) -> None:
    for name, limit in (("h100_vit_base_bf16", 400_000), ("h100_owlv2_large", 2_000_000)):
        page = render(build_report(Trace.load(shared / "traces" / f"{name}.json.gz")))
        assert len(page.encode()) < limit


def test_scripts_are_short_and_all_of_them_are_used() -> None:
    assert {path.stem for path in STATIC.glob("*.js")} == set(SCRIPTS)
    for path in STATIC.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400
        for imported in re.findall(r'from "\./(\w+)\.js"', text):
            assert SCRIPTS.index(imported) < SCRIPTS.index(path.stem), f"{path.name} comes before {imported}"
    assert "</script" not in bundle()


def test_scripts_are_sound(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    path = tmp_path / "bundle.mjs"
    path.write_text(bundle(), encoding="utf-8")
    done = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_scripts_have_the_types_that_they_state() -> None:
    here = Path(__file__).parent
    compiler = here / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        pytest.skip("no TypeScript: npm ci in tests/page")
    done = subprocess.run([compiler, "-p", here / "tsconfig.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_cells_print_as_in_the_other_formats() -> None:
    report = sample_report("vit_tiny_fp32_synthetic")
    elements = read(sample_page("vit_tiny_fp32_synthetic"))
    (table,) = [b for s in report.page.sections if s.id == "launches" for b in s.blocks if hasattr(b, "rows")]
    times = cells(table.columns[2], [row[2] for row in table.rows])
    shown = [one.text for one in elements if "section-launches" in one.path and one.tag == "td"]
    assert [text for text in times if text not in shown] == []
    assert duration(1_234_567) == "1.23 ms"
    assert percent(0.877) == "87.7%"


def test_what_cannot_be_drawn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(parts, "build_scene", broken)
    elements = read(render(sample_report("vit_tiny_fp32_synthetic")))
    said = " ".join(one.text for one in elements if "not-drawn" in one.path)
    assert "timeline: internal error" in said
    assert not any(one.attributes.get("id") == "timeline" for one in elements)
    assert any(one.attributes.get("id") == "ledger" for one in elements)
