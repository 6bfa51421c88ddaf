"""What the rules are: a list, and one page for each."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping

from analyze.errors import SelectionError, closest
from analyze.findings import RULES, STATES, Rule
from analyze.findings.rule import HIGH, MEDIUM
from analyze.metrics.vocabulary import SPEAKS
from analyze.report.glossary import find_term, words
from analyze.report.glossary import terms as all_terms
from analyze.report.text import EMPTY, shorten
from analyze.settings import Definitions
from analyze.units import percent

_VERDICT = "verdict"
_INDENT = "    "


def list_rules(*, width: int, limits: Mapping[str, float] | None = None) -> str:
    """All rules with their limits, a line each."""
    name = max(len(rule.id) for rule in RULES)
    lines = [f"{'rule':<{name}}   limit  question"]
    for rule in RULES:
        share = _limit(rule, limits)
        limit = EMPTY if share is None else percent(share)
        lines.append(f"{rule.id:<{name}}  {limit:>6}  {shorten(rule.question, max(width - name - 10, 8))}")
    rest = (
        "Savings below the limit are not reported. It is a share of the window unless the rule says otherwise. "
        f"high: at least {percent(HIGH)} of the window; medium: at least {percent(MEDIUM)}; low: less. "
        "`analyze explain RULE` says what each one means, and `analyze explain verdict` how the verdict is chosen."
    )
    return "\n".join((*lines, "", *textwrap.wrap(rest, width), ""))


def parse_limit(text: str) -> tuple[str, float]:
    """A rule and its limit from RULE=SHARE; the share as 0.02 or 2%.

    Raises:
        SelectionError: there is no such rule, it has no limit, or the share is none.
    """
    name, equals, amount = (part.strip() for part in text.partition("="))
    rule = _rule(name)
    if rule.limit is None:
        raise SelectionError(f"The rule {name} has no limit: {rule.of}.", "`analyze rules` lists the limits.")
    number = amount.removesuffix("%")
    try:
        share = float(number) / (100 if number != amount else 1)
    except ValueError:
        share = math.nan
    if not equals or not 0 <= share <= 1:
        raise SelectionError(f"{text!r} is no limit of a rule.", f"Write {name}=2% or {name}=0.02.")
    return name, share


def _rule(name: str) -> Rule:
    found = {rule.id: rule for rule in RULES}
    if name not in found:
        close = closest(name, [*found, _VERDICT], n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise SelectionError(f"There is no rule {name!r}.", f"{hint}`analyze rules` lists them all.")
    return found[name]


def explain(name: str, *, width: int, limits: Mapping[str, float] | None = None) -> str:
    """What a rule, the verdict or a word of the report means.

    Raises:
        SelectionError: there is no such rule or word.
    """
    if name == _VERDICT:
        return _page("verdict: Where does the window go?", _verdict(), width)
    rule = next((rule for rule in RULES if rule.id == name), None)
    if rule is not None:
        return _page(f"{rule.id}: {rule.question}", _sections(rule, limits), width) + _example(rule)
    term = find_term(name)
    if term is None:
        close = closest(name, [*(rule.id for rule in RULES), _VERDICT, *words()], n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise SelectionError(
            f"There is no rule or term {name!r}.",
            f"{hint}`analyze rules` lists the rules, `analyze explain` the terms.",
        )
    return "\n".join((term.name, "", *_wrapped(term.text, width), ""))


def list_terms(*, width: int) -> str:
    """Every word that can be explained."""
    rules = f"Rules: {', '.join(rule.id for rule in RULES)}, {_VERDICT}."
    terms = f"Terms: {'; '.join(term.name for term in all_terms().values())}."
    lines = ("Explain a rule or a word of the report: analyze explain WORD", "", *_wrapped((rules, terms), width))
    return "\n".join((*lines, ""))


def _wrapped(paragraphs: tuple[str, ...], width: int) -> list[str]:
    lines = [
        line for paragraph in paragraphs for line in (*textwrap.wrap(paragraph, width, break_on_hyphens=False), "")
    ]
    return lines[:-1]


def _page(title: str, sections: Iterator[tuple[str, str]], width: int) -> str:
    lines = [title]
    for heading, text in sections:
        lines += ["", heading, *textwrap.wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT)]
    return "\n".join((*lines, ""))


def _sections(rule: Rule, limits: Mapping[str, float] | None) -> Iterator[tuple[str, str]]:
    yield "What", rule.what
    yield "Why", rule.why
    yield "How to fix", rule.fix
    yield "Does not apply when", rule.exceptions
    yield "How it is measured", rule.measured
    yield "More", rule.link
    share = _limit(rule, limits)
    yield "Limit", f"{rule.of}." if share is None else f"{percent(share)} of the {rule.of}."


def _example(rule: Rule) -> str:
    lines = []
    for heading, code in (("Before", rule.code_before), ("After", rule.code_after)):
        lines += ["", heading, *(f"{_INDENT}{line}".rstrip() for line in code.split("\n"))]
    return "\n".join((*lines, ""))


def _limit(rule: Rule, limits: Mapping[str, float] | None) -> float | None:
    return (limits or {}).get(rule.id, rule.limit)


def _verdict() -> Iterator[tuple[str, str]]:
    definitions = Definitions()
    yield (
        "What",
        "Every nanosecond of the device's window has one owner. The largest state names the verdict when it has at "
        f"least {percent(definitions.headline_share)} of the window; below that it is mixed, and the two largest are "
        "named. Compute-bound says only that kernels cover the window, not that they are efficient.",
    )
    yield "States", "; ".join(f"{state.label}: {state.cause}" for state in STATES) + "."
    yield (
        "Steps",
        f"Where the window is shorter than {percent(1 - SPEAKS)} of the host row of the only step, shares are of the "
        "step, with the host time around the window as one more state: host-bound.",
    )
    yield (
        "Not judged",
        f"Idle time names no verdict when less than {percent(definitions.complete_share)} of launch calls have an "
        f"activity, the file is cut, or more than {percent(definitions.unexplained_share)} of the window is queued "
        "work that did not start.",
    )
