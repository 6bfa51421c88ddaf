"""The pictures of the page in the documents: `python -m tests.page.pictures` draws them again.

Fonts differ from machine to machine, so a test compares size and pixels within a tolerance.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from analyze.report import build_report, write
from analyze.trace import Trace
from tests.conftest import ROOT
from tests.page.browser import Browser, chromium, find_chromium

FOLDER = ROOT / "analyze" / "docs" / "images"
SAMPLE = ROOT / "sample_traces" / "vit_tiny_fp32_synthetic.json.gz"
PICTURES = {"page-light.png": False, "page-dark.png": True}
WIDTH, HEIGHT = 1200, 780


def draw(browser: Browser, folder: Path, name: str) -> bytes:
    """One picture: the sample's page with its longest gap selected."""
    path = folder / "page.html"
    if not path.exists():
        write(build_report(Trace.load(SAMPLE)), path)
    browser.open(path, width=WIDTH, height=HEIGHT, dark=PICTURES[name])
    browser.run("gpuledger.timeline.longest(); gpuledger.timeline.fit(); 1")
    browser.run("document.querySelector('.two').scrollIntoView()")
    browser.settle()
    browser.settle()
    return browser.picture()


def main() -> None:
    """Draw all of them."""
    program = find_chromium()
    assert program is not None, "no Chromium on this machine"
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium(program) as browser:
        for name in PICTURES:
            (FOLDER / name).write_bytes(draw(browser, Path(folder), name))


if __name__ == "__main__":
    main()
