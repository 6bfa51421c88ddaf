"""The page in a browser: it draws what the intervals say, obeys pointer and keys, and runs its own script only."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.report import build_report, write
from analyze.report.html.looks import CATEGORY_COLOURS
from analyze.trace import Trace
from tests.builder import TraceBuilder
from tests.conftest import ROOT
from tests.page import pictures
from tests.page.browser import Browser
from tests.page.conftest import lesson
from tests.page.test_markup import hostile_trace

TIMELINE = "gpuledger.timeline"
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

AUDIT = """axe.run(document, {resultTypes: ["violations"]}).then((all) => all.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120))]))"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "page.html"
    write(build_report(Trace.load(ROOT / "sample_traces" / "vit_tiny_fp32_synthetic.json.gz")), path)
    return path


def view(browser: Browser) -> tuple[float, float]:
    found: dict[str, float] = browser.run(f"({{...{TIMELINE}.view}})")
    return found["start"], found["end"]


def length(browser: Browser) -> float:
    start, end = view(browser)
    return end - start


def selected(browser: Browser) -> str:
    return str(browser.run("document.querySelector('#selected h3')?.textContent ?? ''"))


def put(browser: Browser, where: str, value: str, event: str) -> None:
    """Give a control a value, as a reader does."""
    set_value = f"one.value = {json.dumps(value)}; one.dispatchEvent(new Event({json.dumps(event)}))"
    browser.run(f"((one) => {{ {set_value}; }})(document.querySelector({json.dumps(where)}))")


def pixel(browser: Browser, lane: str, time_us: float) -> str:
    """The colour in the middle of a lane at an instant, counted from the window's start."""
    script = f"""(() => {{
      const t = {TIMELINE}, lane = t.lanes.lanes.find((one) => one.label === {json.dumps(lane)});
      const x = ({time_us * 1000} + t.scene.window[0] - t.view.start) / (t.view.end - t.view.start) * t.width;
      const y = lane.top + lane.rowHeight - 4 - t.box.scrollTop;
      const [r, g, b] = t.canvas.getContext("2d").getImageData(Math.floor(x), Math.floor(y), 1, 1).data;
      return "#" + [r, g, b].map((c) => c.toString(16).padStart(2, "0")).join("").toUpperCase();
    }})()"""
    return str(browser.run(script))


def test_the_canvas_draws_what_the_intervals_say(browser: Browser, page_of: Callable[[TraceBuilder], Path]) -> None:
    """Ten instants, in us from the first kernel's start at 100."""
    browser.open(page_of(lesson()), width=1300)
    browser.settle()
    ground = "#FFFFFF"
    gemm, add, copy = (CATEGORY_COLOURS[name].upper() for name in ("gemm", "elementwise", "memcpy"))
    expected = {
        10: gemm, 190: gemm, 210: add, 390: add, 410: ground, 590: ground, 610: gemm, 690: gemm, 725: ground, 760: copy,
    }  # fmt: skip
    assert {time: pixel(browser, "stream 7", time) for time in expected} == expected
    for time, colour in expected.items():
        idle = pixel(browser, "idle, by cause", time + 3)
        assert (idle != ground) == (colour == ground), time
    assert pixel(browser, "stream 7, copies only", 845) == copy
    assert pixel(browser, "stream 7, copies only", 10) == ground


def test_the_longest_gap_its_cause_and_its_line_are_one_key_away(
    browser: Browser, page_of: Callable[[TraceBuilder], Path]
) -> None:
    browser.open(page_of(lesson()))
    browser.key("l")
    assert selected(browser) == "Idle for 200 µs: launch-bound"
    said = browser.run("document.getElementById('selected').textContent")
    assert "me/train.py(42): step" in said
    assert "400.000 µs into the window" in said
    assert "cudaLaunchKernel" in said
    browser.key("n")
    assert selected(browser).startswith("Idle for 50.0 µs")
    browser.key("p")
    assert selected(browser).startswith("Idle for 200 µs")


def test_zoom_and_pan_by_keys_buttons_wheel_and_drag(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    whole = length(browser)
    browser.key("w")
    assert length(browser) == pytest.approx(whole / 2)
    start = view(browser)[0]
    browser.key("d")
    assert view(browser)[0] == pytest.approx(start + whole / 8)
    browser.run("document.querySelector('[data-act=out]').click()")
    assert length(browser) == pytest.approx(whole)
    browser.key("f")
    assert length(browser) == pytest.approx(whole)
    browser.run("document.getElementById('timeline').scrollIntoView()")
    box = browser.run(
        "(({x, y, width}) => ({x, y, width}))(document.querySelector('#lanes canvas').getBoundingClientRect())"
    )
    middle = box["x"] + box["width"] / 2
    browser.drag(middle, box["y"] + 60, middle - 100)
    assert view(browser)[0] > -whole / 50
    browser.run("document.getElementById('lanes').focus()")
    browser.wheel(middle, box["y"] + 60, -200)
    browser.wait(f"{TIMELINE}.view.end - {TIMELINE}.view.start < {whole * 0.9}")
    for _ in range(60):
        browser.run(f"{TIMELINE}.zoom(0.5)")
    assert length(browser) == 20  # nanoseconds


def test_a_click_selects_what_is_under_it(browser: Browser, page_of: Callable[[TraceBuilder], Path]) -> None:
    browser.open(page_of(lesson()), width=1300)
    browser.run("document.getElementById('lanes').scrollIntoView()")
    place = browser.run(f"""(() => {{
      const t = {TIMELINE}, lane = t.lanes.lanes.find((one) => one.label === "stream 7");
      const box = t.canvas.getBoundingClientRect();
      const share = (50000 + t.scene.window[0] - t.view.start) / (t.view.end - t.view.start);
      return [box.x + share * t.width, box.y + lane.top + 8];
    }})()""")
    browser.click(*place)
    assert selected(browser) == "ampere_sgemm_128x64_tn"
    said = browser.run("document.getElementById('selected').textContent")
    assert "aten::mm" in said
    assert "[[64,64],[64,64]]" in said.replace(" ", "")
    assert "80.0 µs before the start; the call took 20.0 µs" in said


def test_findings_and_rows_lead_to_their_places(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    for finding in browser.run("[...document.querySelectorAll('[data-finding]')].map((one) => one.dataset.finding)"):
        browser.run(f"{TIMELINE}.choose(null); document.querySelector('[data-finding={finding}]').click()")
        assert selected(browser), finding
    browser.run("document.querySelector('#section-idle tr[data-at]').click()")
    longest = selected(browser)
    browser.run(f"{TIMELINE}.longest()")
    assert selected(browser) == longest
    browser.run("document.querySelectorAll('[data-step-name]')[1].dispatchEvent(new MouseEvent('click'))")
    step = browser.run(f"(({{steps}}) => [steps.start[1], steps.start[1] + steps.dur[1]])({TIMELINE}.scene)")
    assert view(browser) == pytest.approx(tuple(step))


def test_search_finds_and_goes_from_match_to_match(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    browser.run("document.getElementById('find').focus()")
    for letter in "sgemm":
        browser.key(letter)
    browser.key("Enter")
    first = browser.run(f"{TIMELINE}.chosen.start")
    assert "sgemm" in browser.run(f"{TIMELINE}.chosen.lane.text({TIMELINE}.chosen.index)").lower()
    browser.key("Enter")
    assert browser.run(f"{TIMELINE}.chosen.start") > first
    assert length(browser) < browser.run(f"{TIMELINE}.whole.end")  # letters in the field move nothing


def table(browser: Browser, column: int) -> list[str]:
    rows = "document.querySelectorAll('#section-all-kernels tbody tr:not([hidden])')"
    return list(browser.run(f"[...{rows}].map((row) => row.cells[{column}].textContent.trim())"))


def test_tables_sort_search_and_copy(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    head = "document.querySelectorAll('#section-all-kernels thead th')"
    browser.run(f"{head}[2].click()")
    counts = [int(text.replace(",", "")) for text in table(browser, 2)]
    assert counts == sorted(counts, reverse=True)
    assert browser.run(f"{head}[2].getAttribute('aria-sort')") == "descending"
    browser.run(f"{head}[2].click()")
    assert [int(text.replace(",", "")) for text in table(browser, 2)] == sorted(counts)
    browser.run(f"{head}[0].querySelector('button').click()")
    names = table(browser, 0)
    assert names == sorted(names, key=str.lower) or browser.run(f"{head}[0].getAttribute('aria-sort')") == "ascending"
    put(browser, "#section-all-kernels input", "gemm", "input")
    assert 0 < len(table(browser, 0)) < len(names)
    lines = browser.run("(0, gpuledger.csv)(document.querySelector('#section-all-kernels table'))").splitlines()
    assert lines[0] == "kernel,category,launches,time,of the largest"
    assert len(lines) == 1 + len(table(browser, 0))
    exact = browser.run(
        "document.querySelector('#section-all-kernels tbody tr:not([hidden]) td:nth-child(4)').dataset.v"
    )
    assert f",{exact}," in lines[1]


def test_the_icicle_has_all_device_time_and_searches(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    own = browser.run("gpuledger.icicle.root.total")
    assert own == browser.run(f"{TIMELINE}.scene.stacks.device.reduce((a, b) => a + b, 0)") > 0
    put(browser, "#icicle-find", "addmm", "input")
    assert "match" in browser.run("document.getElementById('icicle-path').textContent")
    put(browser, "#icicle-time", "host", "change")
    assert browser.run("gpuledger.icicle.root.total") == browser.run(
        f"{TIMELINE}.scene.stacks.host.reduce((a, b) => a + b, 0)"
    )
    browser.run("document.getElementById('icicle').focus()")
    before = browser.run("gpuledger.icicle.chosen.name")
    browser.key("ArrowDown")
    browser.key("Enter")
    assert browser.run("gpuledger.icicle.zoomed.name") != before
    browser.run("document.getElementById('icicle-table').open = true")
    browser.wait("document.querySelectorAll('#icicle-table tbody tr').length > 0")


def test_the_histogram_counts_what_is_in_view(browser: Browser, page_of: Callable[[TraceBuilder], Path]) -> None:
    browser.open(page_of(lesson()))
    assert "of 4 in view" in browser.run("document.getElementById('histogram').textContent")
    browser.run(f"{TIMELINE}.show({TIMELINE}.scene.window[0] + 500000, {TIMELINE}.scene.window[0] + 820000)")
    browser.wait("document.getElementById('histogram').textContent.includes('of 2 in view')")
    counts = browser.run("[...document.querySelectorAll('#histogram .column')].length")
    assert counts > 0


def test_keys_alone_reach_everything(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    seen: set[str] = set()
    for _ in range(60):
        browser.key("Tab")
        seen.add(
            str(
                browser.run(
                    "document.activeElement.id || document.activeElement.dataset?.act || document.activeElement.tagName"
                )
            )
        )
    assert {"theme", "fit", "longest", "find", "lanes", "SUMMARY"} <= seen
    browser.run("document.getElementById('lanes').focus()")
    browser.key("ArrowRight")
    assert selected(browser)
    browser.key("ArrowUp")
    browser.key("Enter")
    browser.run("document.activeElement.blur()")
    browser.key("?")
    assert browser.run("document.getElementById('key-list').open")
    browser.key("Escape")


def test_dark_by_system_by_button_and_by_key(browser: Browser, sample: Path) -> None:
    def ground() -> str:
        return str(browser.run("getComputedStyle(document.body).backgroundColor"))

    browser.open(sample)
    light = ground()
    browser.run("document.getElementById('theme').click()")
    assert ground() != light
    browser.key("t")
    assert ground() == light
    browser.open(sample, dark=True)
    assert ground() != light


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_do_not_scroll_sideways(browser: Browser, sample: Path, width: int) -> None:
    browser.open(sample, width=width, height=700)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_definitions_show_at_the_pointer_and_at_the_focus(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    browser.run("document.querySelector('a.term[href=\"#term-ledger\"]').focus()")
    assert "exactly one owner" in browser.run("document.getElementById('tip').textContent")
    browser.key("Escape")
    assert browser.run("document.getElementById('tip').hidden")


def test_print_has_the_findings_and_no_tools(browser: Browser, sample: Path) -> None:
    browser.open(sample)
    assert browser.paper().startswith(b"%PDF")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.getElementById('timeline')).display") == "none"
    assert browser.run("getComputedStyle(document.getElementById('findings')).display") != "none"
    browser.call("Emulation.setEmulatedMedia", media="")


def test_hostile_names_run_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write(build_report(Trace.load(hostile_trace().write(tmp_path / "trace.json"))), path)
    browser.said.clear()
    browser.call("Page.addScriptToEvaluateOnNewDocument", source="globalThis.harm = 0; alert = () => { harm += 1; };")
    browser.open(path)
    browser.run("document.getElementById('frames').click()")
    lanes: list[Any] = browser.run(f"{TIMELINE}.lanes.lanes.map((lane) => lane.rows.length)")
    for lane, rows in enumerate(lanes):
        if rows:
            browser.run(f"{TIMELINE}.choose({TIMELINE}.lanes.item({TIMELINE}.lanes.lanes[{lane}], 0, 0), true)")
    for opened in ("lane-table", "icicle-table", "histogram-table"):
        browser.run(f"document.getElementById('{opened}').open = true")
    browser.settle()
    assert browser.run("harm") == 0
    assert browser.run("document.querySelectorAll('img, iframe, script:not([type])').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert browser.asked == []
    assert browser.said == []


def test_nothing_is_asked_for_and_nothing_goes_wrong(browser: Browser, sample: Path) -> None:
    browser.said.clear()
    browser.asked.clear()
    browser.open(sample)
    browser.open(ROOT / "README.md", ready=False)
    assert browser.said == []
    assert [url for url in browser.asked if not url.endswith("README.md")] == []


def test_no_serious_barrier(browser: Browser, sample: Path) -> None:
    if not AXE.exists():
        pytest.skip("no axe-core: npm ci in tests/page")
    for dark in (False, True):
        browser.open(sample, dark=dark)
        browser.run(AXE.read_text(encoding="utf-8") + "; 1")
        found = browser.run(AUDIT)
        assert found == [], json.dumps(found, indent=1)


def test_owlv2_is_ready_within_two_seconds(browser: Browser, shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write(build_report(Trace.load(shared / "traces" / "h100_owlv2_large.json.gz")), path)
    assert any(browser.open(path) < 2 for _ in range(6))  # a busy machine may take longer once


DIFFERENCE = """(async (urls) => {
  const [a, b] = await Promise.all(urls.map(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return pen.getImageData(0, 0, image.width, image.height);
  }));
  if (a.width !== b.width || a.height !== b.height) return 255;
  let sum = 0;
  for (let i = 0; i < a.data.length; i++) sum += Math.abs(a.data[i] - b.data[i]);
  return sum / a.data.length;
})"""


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_pictures_in_the_documents_are_those_of_the_page(browser: Browser, name: str, tmp_path: Path) -> None:
    """Fonts differ from machine to machine: a mean difference of 6 in 255 is allowed, another layout is not."""
    stored, drawn = (pictures.FOLDER / name).read_bytes(), pictures.draw(browser, tmp_path, name)
    assert len(stored) < 200_000
    urls = [f"data:image/png;base64,{base64.b64encode(data).decode()}" for data in (stored, drawn)]
    browser.open(tmp_path / "page.html")
    assert browser.run(f"{DIFFERENCE}({json.dumps(urls)})") < 6
    dark = next(other for other in pictures.PICTURES if other != name)
    urls[1] = f"data:image/png;base64,{base64.b64encode((pictures.FOLDER / dark).read_bytes()).decode()}"
    assert browser.run(f"{DIFFERENCE}({json.dumps(urls)})") > 50
