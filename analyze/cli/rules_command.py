"""`analyze rules` and `analyze explain RULE`: what is judged, by which limit, and what it means."""

from __future__ import annotations

import shutil

import click

from analyze.cli.options import CONTEXT, EPILOG, common_options, limit_option

MAX_WIDTH = 100


@click.command("rules", short_help="List the rules and their limits.", epilog=EPILOG, context_settings=CONTEXT)
@limit_option
@common_options
def rules_command(limits: tuple[tuple[str, float], ...], debug: bool) -> None:  # noqa: ARG001, FBT001 - read by main
    """List the rules and the limits in force, a line each."""
    from analyze.report.rules import list_rules

    click.echo(list_rules(width=_width(), limits=dict(limits)), nl=False)


@click.command("explain", short_help="Explain a rule or the verdict.", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("rule", metavar="RULE")
@limit_option
@common_options
def explain_command(rule: str, limits: tuple[tuple[str, float], ...], debug: bool) -> None:  # noqa: ARG001, FBT001
    """Explain a rule: what it means, why it costs, how to fix it and how it is measured. Or: explain verdict."""
    from analyze.report.rules import explain

    click.echo(explain(rule, width=_width(), limits=dict(limits)), nl=False)


def _width() -> int:
    return min(shutil.get_terminal_size((80, 24)).columns, MAX_WIDTH)
