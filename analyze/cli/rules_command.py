"""`analyze rules` and `analyze explain RULE`: what is judged, by which limit, and what it means."""

from __future__ import annotations

import click

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


@click.command("explain", short_help="Explain a rule or the verdict.", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("rule", metavar="RULE")
@limit_option
@common_options
def explain_command(rule: str, limits: tuple[tuple[str, float], ...], debug: bool) -> None:  # noqa: ARG001, FBT001
    """Explain a rule: what it means, why it costs, how to fix it and how it is measured. Or: explain verdict."""
    from analyze.report.rules import explain

    _print(explain(rule, width=terminal_width(MAX_WIDTH), limits=dict(limits)))


def _print(text: str) -> None:
    from analyze.report.text import to_ascii

    put(text, to_ascii)
