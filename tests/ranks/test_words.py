"""Every word that a report on many ranks prints as a label can be explained."""

from __future__ import annotations

from pathlib import Path

from analyze.blocks import Breakdown, Page, Stat, Table
from analyze.compare.ranks import compare_jobs
from analyze.report.glossary import find_term
from analyze.report.ranks import build_ranks_report
from tests.ranks import test_pipeline
from tests.ranks.jobs import figures_of, joined, random_job, write
from tests.ranks.planted import planted_job
from tests.report.test_glossary import PLAIN

WORDS = {
    *PLAIN, "rank", "ranks", "n", "p50", "shortest", "longest on", "file", "why", "collectives", "group",
    "part of the window", "A", "B", "B - A", "job", "Numbers of ranks", "step",
}  # fmt: skip


def labels(page: Page) -> set[str]:
    found = set()
    blocks = [block for section in page.sections for block in section.blocks]
    for block in [*blocks, *([page.whole] if page.whole else [])]:
        match block:
            case Table():
                found |= {column.head for column in block.columns}
            case Breakdown():
                found |= {part.label for part in block.parts}
            case Stat():
                found.add(block.label)
    return found


def test_every_label_is_plain_or_defined(tmp_path: Path) -> None:
    planted_job(0, tmp_path / "planted")
    planted = figures_of(tmp_path / "planted")
    fewer = figures_of(write(random_job(12)[0][:-1], tmp_path / "fewer"))
    pages = [build_ranks_report(job).page for job in (planted, fewer, joined(test_pipeline.job()))]
    found = set().union(*map(labels, [*pages, compare_jobs(planted, fewer).page]))
    assert len(found) > 30
    assert sorted(word for word in found - WORDS if find_term(word) is None) == []
