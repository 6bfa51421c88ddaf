"""Documents in a notebook: one line as text, tables as HTML, names that stay inert; one notebook from start to end."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analyze import Snapshot, Trace, build_report, build_snapshot_report, compare, compare_snapshots
from analyze.report.notebook import to_html
from tests.golden import SAMPLES, golden_report
from tests.report.runs import run
from tests.report.test_reports import NASTY
from tests.snapshot.conftest import write_pickle
from tests.snapshot.test_report import busy, snapshot

ROOT = Path(__file__).parents[2]
GPU = next(path for path in SAMPLES if "small_batch" in path.name)


class _Tags(HTMLParser):
    """Every tag and attribute that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(f"{tag}.{name}" for name, _ in attrs)}


PLAIN = {
    *("div", "h2", "h3", "h4", "p", "blockquote", "strong", "em", "code", "pre", "ul", "li", "br", "sub", "hr", "ol"),
    *("table", "thead", "tbody", "tr", "th", "td", "th.style", "td.style", "details", "summary", "a", "a.href", "a.id"),
    *("div.class", "code.class"),
}


def test_repr_is_one_line() -> None:
    report = golden_report(GPU)
    shown = repr(report)
    assert "\n" not in shown
    assert len(shown) < 400
    assert shown.startswith("<Report: vit_tiny_fp16_small_batch_synthetic.json.gz, Mixed: Launch-bound")
    assert repr(compare(report, report)).startswith("<Comparison: ")
    assert "\n" not in repr(Trace.load(GPU))


def test_snapshots_show_themselves(tmp_path: Path) -> None:
    loaded = Snapshot.load(write_pickle(snapshot(busy()), tmp_path / "busy.pickle"))
    assert repr(loaded).startswith("Snapshot(busy.pickle, ")
    assert len(repr(loaded)) < 200
    assert repr(loaded).replace("&", "") in loaded._repr_html_()
    report = build_snapshot_report(loaded)
    assert repr(report).startswith("<SnapshotReport: busy.pickle, Out of memory: ")
    assert "<table>" in report._repr_html_()
    assert repr(compare_snapshots(loaded, loaded)).startswith("<SnapshotComparison: ")


def test_html_holds_what_the_markdown_holds() -> None:
    report = golden_report(GPU)
    page = report._repr_html_()
    for section in report.page.sections:
        assert f"<h3>{section.title}</h3>" in page
    assert page.count("<table>") > 10
    assert "[!IMPORTANT]" not in page
    assert "&gt;" in page, "names of kernels hold brackets"
    assert page == to_html(report._repr_markdown_())


@pytest.mark.parametrize(
    "name", [NASTY, "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "|`a`|[b](javascript:c)"]
)
def test_names_stay_inert(name: str, tmp_path: Path) -> None:
    trace = Trace.load(run([400, 410], name=name).write(tmp_path / "t.json"))
    report = build_report(trace)
    for page in (report._repr_html_(), compare(report, report)._repr_html_(), trace._repr_html_()):
        tags = _Tags()
        tags.feed(page)
        assert tags.seen <= PLAIN
        for link in re.findall(r'href="([^"]*)"', page):
            assert link.startswith(("#", "https://docs.pytorch.org/", "https://docs.nvidia.com/", "https://"))


def test_figures_are_frames(tmp_path: Path) -> None:
    """Two kernels of 400 and 410 us in a window of 20 to 1020 + 410."""
    report = build_report(Trace.load(run([400, 410]).write(tmp_path / "t.json")))
    assert report.kernels["sum_ns"].to_list() == [810_000]
    assert report.ledger["ns"].sum() == 1_410_000
    assert report.ledger["share"].sum() == pytest.approx(1)
    assert report.ops.filter(name="aten::mm")["calls"].to_list() == [2]
    assert [finding.id for finding in report.findings] == list(report.page.findings or ())
    assert {"findings", "ledger", "kernels", "ops"} <= set(dir(report))


def test_a_whole_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record two loops on the CPU, report on them, compare them."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks")
    pytest.importorskip("ipykernel", reason="ipykernel is what they run in")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("torch", reason="recording needs torch")
    cells = [
        "import torch\nfrom capture import record\ntorch.set_num_threads(1)\n"
        "model = torch.nn.Linear(64, 8)\n"
        "def loop(folder, size):\n"
        "    with record(folder, warmup=2, timed_steps=8, traced_steps=2, model=model, quiet=True) as rec:\n"
        "        while True:\n"
        "            model(torch.randn(size, 64)).sum().backward()\n"
        "            if rec.step(samples=size): break\n"
        "loop('small', 2); loop('large', 4000)",
        "from analyze import Trace, build_report, compare\n"
        "small, large = (build_report(Trace.load(f'{name}/trace.json.gz')) for name in ('small', 'large'))\nsmall",
        "compare(small, large)",
        "print(repr(small), small.ops.height)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    monkeypatch.setitem(os.environ, "PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [cell.outputs[0] for cell in notebook.cells[1:]]
    assert "<table>" in shown[0]["data"]["text/html"]
    assert "text/markdown" in shown[0]["data"]
    assert "Latency without the profiler" in shown[1]["data"]["text/html"]
    assert shown[2]["text"].startswith("<Report: trace.json.gz, ")
    assert len(shown[2]["text"].splitlines()) == 1
