"""`analyze rules` and `analyze explain WORD`: what is judged, by which limit, and what every word means."""

from __future__ import annotations

import click

from analyze.cli import completion
from analyze.cli.options import CONTEXT, EPILOG, common_options, limit_option
from analyze.cli.streams import put, terminal_width

MAX_WIDTH = 100


@click.command("rules", short_help="List the rules and their limits.", epilog=EPILOG, context_settings=CONTEXT)
@limit_option
@common_options
def rules_command(limits: tuple[tuple[str, float], ...], debug: bool) -> None:  # noqa: ARG001, FBT001 - read by main
    """List the rules and the limits in force, a line each."""
    from analyze.report.rules import list_rules

    _print(list_rules(width=terminal_width(MAX_WIDTH), limits=dict(limits)))


@click.command("explain", short_help="Explain a rule or a word of the report.", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("words", metavar="[WORD]", nargs=-1, shell_complete=completion.words)
@limit_option
@common_options
def explain_command(words: tuple[str, ...], limits: tuple[tuple[str, float], ...], debug: bool) -> None:  # noqa: ARG001, FBT001
    """Explain a rule, the verdict, a metric or any other word of a report. Without a word: list them all."""
    from analyze.report.rules import explain, list_terms

    width = terminal_width(MAX_WIDTH)
    _print(explain(" ".join(words), width=width, limits=dict(limits)) if words else list_terms(width=width))


def _print(text: str) -> None:
    from analyze.report.text import to_ascii

    put(text, to_ascii)
