"""A document as one HTML file that needs no network: see static/ for its script and templates/ for its markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from analyze.blocks import Page
from analyze.findings.states import STATES
from analyze.inert import printable
from analyze.report import to_json
from analyze.report.about import SCHEMA_VERSION, TOOL, program_version
from analyze.report.glossary import Term, find_term, terms
from analyze.report.html import looks
from analyze.report.html.columns import packed, packed_text
from analyze.report.html.looks import Look
from analyze.report.html.pair import PairView
from analyze.report.html.parts import Parts, parts_of
from analyze.report.html.view import breakdown_view, polyline, table_view
from analyze.report.report import Document
from analyze.report.templates import environment
from analyze.report.text import savings_column, series_figures
from analyze.units import duration, percent, plural

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = (
    *("data", "merge", "units", "draw", "lanes", "places", "selected", "timeline"),
    *("icicle", "charts", "table", "theme", "main"),
)
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_SLUG = re.compile(r"[^a-z0-9]+")


def render(document: Document) -> str:
    """The document as HTML."""
    parts, words, page = parts_of(document), _Words(), document.page
    script, style = bundle(), _static("style.css")
    text = _environment().get_template("page.html.j2").render(
        page=page,
        parts=parts,
        term=words.term,
        definitions=words.definitions,
        policy=_policy(script, style),
        script=Markup(script),  # noqa: S704 - our own file
        style=Markup(style),  # noqa: S704
        scene=packed(parts.scene) if parts.scene else "",
        report_json=packed_text(to_json.render(document).encode("utf-8", "replace")),
        generator=f"{TOOL} {program_version()}, report schema {SCHEMA_VERSION}",
        looks=looks,
        states=[state for state in STATES if state.idle],
        sections=_sections(page, parts),
    )  # fmt: skip
    return f"{text}\n"


@cache
def bundle() -> str:
    """All scripts as one module: each file as it is, without its imports and exports."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", _static(f"{name}.js"))) for name in SCRIPTS)


def _static(name: str) -> str:
    return (files("analyze.report.html") / "static" / name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """What the page may do: run its own script and style, and nothing else; it cannot ask any network."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    made = environment(
        "analyze.report.html",
        anchor=anchor, breakdown=breakdown_view, table=table_view, savings=savings_column, legend=legend,
    )  # fmt: skip
    made.filters.update(
        {
            "printable": printable,
            "prose": prose,
            "percent": percent,
            "plural": plural,
            "polyline": polyline,
            "figures": series_figures,
            "duration": duration,
        }
    )
    made.tests["block"] = lambda block, name: type(block).__name__ == name
    return made


class _Words:
    """The words that a page links to their definitions, and those definitions."""

    def __init__(self) -> None:
        self._used: dict[str, None] = {}

    def term(self, word: str) -> str:
        """The anchor of a word's definition, empty without one."""
        found = find_term(word)
        if found is None:
            return ""
        self._used.setdefault(found.name)
        return anchor(found.name)

    def definitions(self) -> list[Term]:
        """What was asked for until now, in the order of the definitions."""
        return [one for one in terms().values() if one.name in self._used]


def legend(view: PairView) -> list[tuple[Look, str]]:
    """What the parts of either ledger look like."""
    parts = {part.label: part.look for side in view.sides if side.ledger for part in side.ledger.parts}
    return [(look, label) for label, look in parts.items()]


def anchor(term: str) -> str:
    """The id of a term's definition."""
    return f"term-{_SLUG.sub('-', term.lower()).strip('-')}"


def prose(text: str) -> Markup:
    """A sentence of the definitions: what stands in backticks is code."""
    parts = (escape(part) for part in text.split("`"))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def _sections(page: Page, parts: Parts) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """The sections below the findings, and the long tables at their end."""
    yield from ((one.id, one.title, one.blocks) for one in page.sections if one.id != "findings")
    yield from parts.sections
