"""Every word that a report prints can be explained, and the definitions hold together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analyze.errors import SelectionError
from analyze.findings import STATES
from analyze.kernels.categories import NAMES
from analyze.palette import VERDICTS
from analyze.report.glossary import _ALIKE, find_term, terms
from analyze.report.headline_metrics import METRICS, RANK_METRICS
from analyze.report.rules import explain, list_terms

DOCS = Path(__file__).parents[2] / "analyze" / "docs"
GOLDEN = Path(__file__).parents[1] / "golden"
# Columns that mean what the words mean in any text.
PLAIN = re.findall(
    r"\S+",
    "# time count what where name device length mostly longest median change finding figure call calls size events "
    "pool thread module process place kind kernels input verdict share stream owner cause",
)


def test_every_state_verdict_category_and_metric_is_defined() -> None:
    words = [state.label for state in STATES] + list(NAMES) + list(METRICS) + list(RANK_METRICS)
    assert [word for word in words if find_term(word) is None] == []
    assert [word for word in VERDICTS if find_term(word) is None] == []


def test_every_alias_leads_to_a_term() -> None:
    known = {term.name for term in terms().values()}
    assert {word: name for word, name in _ALIKE.items() if name not in known} == {}


@pytest.mark.parametrize("page", sorted(GOLDEN.glob("*synthetic.md")), ids=lambda page: page.stem)
def test_every_column_of_a_report_is_plain_or_defined(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    heads = [lines[i] for i in range(len(lines) - 1) if re.fullmatch(r"\|[-:| ]+\|", lines[i + 1])]
    columns = {cell.strip() for head in heads for cell in head.strip("|").split("|")} - {"", *PLAIN}
    assert len(columns) > 10
    assert sorted(word for word in columns if find_term(word) is None) == []


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("Idle: input wait", "input wait"),
        ("idle_input_wait_share", "input wait"),
        ("KERNEL-GAP", "kernel gap"),
        ("gaps", "gap"),
        ("of window", "window"),
        ("Memory-bound kernels", "memory-bound kernel"),
        ("by replay", "saving"),
        ("exposed_communication_share", "exposed communication"),
        ("launch_latency_p50", "launch latency"),
        ("gemm", "category"),
        ("softmax", "category"),
        ("host's pace", "host's pace"),
        ("queued, not started", "queued, not started"),
    ],
)
def test_a_word_is_found_in_the_form_in_which_it_is_printed(word: str, name: str) -> None:
    term = find_term(word)
    assert term is not None
    assert term.name == name


def test_explain_prints_what_the_page_says() -> None:
    """The same words, wrapped for a terminal, without the markup of links."""
    page = (DOCS / "definitions.md").read_text(encoding="utf-8")
    body = page.split("### host lead\n")[1].split("###")[0]
    printed = explain("host lead", width=40)
    assert printed.splitlines()[0] == "host lead"
    assert " ".join(printed.split())[len("host lead ") :] == " ".join(body.split())
    assert "](" not in explain("step spread", width=80)


def test_an_unknown_word_is_one_error_with_the_nearest_one() -> None:
    with pytest.raises(SelectionError, match="There is no rule or term 'lanch latency'") as error:
        explain("lanch latency", width=80)
    assert "Did you mean launch latency?" in error.value.hint


def test_all_terms_are_listed() -> None:
    listed = " ".join(list_terms(width=80).split())
    assert all(" ".join(term.name.split()) in listed for term in terms().values())
    assert "fp32-gemm" in listed
