"""Options that commands share, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from analyze.cli import completion
from analyze.errors import SelectionError
from analyze.report.formats import NAMES, SUFFIXES

if TYPE_CHECKING:
    from analyze.compare.gates import Gate

_Command = TypeVar("_Command", bound=Callable[..., Any])
EPILOG = """\b
Version: analyze --version
Settings: command line, then ANALYZE_* variables, then [tool.gpuledger] of pyproject.toml, then defaults.
Exit codes: 0 report made, 1 a gate failed, 2 unusable input, option or output, 130 interrupted.
Completion: _ANALYZE_COMPLETE=bash_source analyze   (or zsh_source, fish_source)
"""
CONTEXT = {"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ANALYZE"}


class StepsType(click.ParamType):  # type: ignore[type-arg]
    """Steps as A:B, the last one excluded; either may be left out."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, int | None]:
        """The two numbers."""
        if isinstance(value, tuple):
            return value
        first, colon, last = str(value).partition(":")
        try:
            if not colon:
                raise ValueError
            return (int(first) if first else None, int(last) if last else None)
        except ValueError:
            self.fail(f"{value!r} is not A:B, as in 2:5 for steps 2, 3 and 4.", param, ctx)


class GateType(click.ParamType):  # type: ignore[type-arg]
    """A gate's expression. In ANALYZE_FAIL_IF several are separated by `;`."""

    name = "EXPR"
    envvar_list_splitter = ";"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Gate:  # noqa: ARG002
        """The gate, refused before a long file is read when it cannot be judged on any file."""
        from analyze.compare.gates import Gate, parse_gate

        return value if isinstance(value, Gate) else parse_gate(str(value))


class LimitType(click.ParamType):  # type: ignore[type-arg]
    """A rule's limit as RULE=SHARE."""

    name = "RULE=SHARE"
    envvar_list_splitter = ";"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> tuple[str, float]:
        """The rule and the share, refused before a long file is read."""
        from analyze.report.rules import parse_limit

        return value if isinstance(value, tuple) else parse_limit(str(value))


def _configure(ctx: click.Context, _param: click.Parameter, ignored: bool) -> None:  # noqa: FBT001 - click's signature
    """Put the settings of pyproject.toml below command line and environment, above the defaults."""
    if not ignored:
        from analyze.cli.config import read_config

        known = {param.name for param in ctx.command.params}
        ctx.default_map = {name: value for name, value in read_config().items() if name in known}


def input_options(command: _Command) -> _Command:
    """How files are read."""
    for decorate in (
        click.option("--trust-size", is_flag=True, help="Let a compressed file grow without limit."),
        click.option(
            "--jobs", type=click.IntRange(1, 64), help="Processes to read a plain file with. Default: by its size."
        ),
    ):
        command = decorate(command)
    return command


def output_options(command: _Command) -> _Command:
    """Where a report goes and how it looks."""
    for decorate in reversed(_output_options()):
        command = decorate(command)
    return command


def _output_options() -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option(
            "--report",
            "report_format",
            type=click.Choice(NAMES),
            help="Format on standard output; html goes to TRACE.html. Default: terminal on a terminal, md into a pipe.",
        ),
        click.option(
            "-o",
            "--output",
            "outputs",
            multiple=True,
            metavar="FILE",
            help=f"Write to FILE, in the format of its suffix: {', '.join(SUFFIXES)}. Repeats.",
        ),
        click.option("--open", "open_page", is_flag=True, help="Show the HTML page in the browser."),
        click.option(
            "--full", is_flag=True, help="Everything that Markdown holds, laid out for a terminal or a pager: | less."
        ),
        click.option("--force", is_flag=True, help="Replace files that this program did not make."),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            help="Colours on the terminal; auto honours NO_COLOR and FORCE_COLOR.",
        ),
        click.option(
            "--ascii", "ascii_only", is_flag=True, help="ASCII only; the default where the terminal is not UTF-8."
        ),
        click.option(
            "--redact",
            is_flag=True,
            help="Leave out folders, hosts, users, processes, threads and free text; names of ops, kernels, code files "
            "and ranges stay.",
        ),
        click.option("--redact-names", is_flag=True, help="The same, and number user ranges, modules and functions."),
        click.option(
            "--top",
            type=click.IntRange(1, 1000),
            default=10,
            show_default=True,
            help="How many gaps, kernels, ops and differences to list.",
        ),
        click.option("--summary-github", is_flag=True, help="Append the Markdown to $GITHUB_STEP_SUMMARY when set."),
    )


def selection_options(command: _Command) -> _Command:
    """What is accounted for."""
    for decorate in (
        click.option(
            "--range",
            "range_name",
            metavar="NAME",
            shell_complete=completion.ranges,
            help="Account for the user range NAME only.",
        ),
        click.option(
            "--steps",
            type=StepsType(),
            help="Account for profiler steps A to B only, by their numbers; B is excluded.",
        ),
    ):
        command = decorate(command)
    return command


def check_selection(steps: tuple[int | None, int | None] | None, range_name: str | None) -> None:
    """Refuse steps and a range at once.

    Raises:
        SelectionError: both were asked for.
    """
    if steps is not None and range_name is not None:
        raise SelectionError("Steps and a range cannot be selected together.", "Pass --steps or --range.")


def from_settings(name: str) -> bool:
    """Whether an option's value stands in pyproject.toml rather than on the command line or in the environment."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT_MAP


def was_given(name: str) -> bool:
    """Whether an option was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def gate_options(command: _Command) -> _Command:
    """Gates for CI."""
    for decorate in (
        click.option("--junit", metavar="FILE", help="Write the gates to FILE as JUnit XML, one test case each."),
        click.option(
            "--fail-if",
            "gates",
            multiple=True,
            type=GateType(),
            envvar="ANALYZE_FAIL_IF",
            shell_complete=completion.gates,
            help="Exit with 1 if EXPR holds: 'idle_share > 10%', 'finding:high', with a baseline 'step_time +5%'. "
            "'kernel:NAME sum > 5 ms', 'category:gemm share < 40%'. Repeats.",
        ),
    ):
        command = decorate(command)
    return command


def limit_option(command: _Command) -> _Command:
    """Limits of rules."""
    return click.option(
        "--limit",
        "limits",
        multiple=True,
        type=LimitType(),
        envvar="ANALYZE_LIMIT",
        shell_complete=completion.rules,
        help="Report RULE only if it would save at least SHARE: sync-stall=2%. `analyze rules` lists the limits. "
        "Repeats.",
    )(command)


def common_options(command: _Command) -> _Command:
    """Configuration and debugging."""
    for decorate in (
        click.option("--debug", is_flag=True, help="On an internal error print the traceback."),
        click.option(
            "--no-config",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_configure,
            help="Ignore [tool.gpuledger] of pyproject.toml.",
        ),
    ):
        command = decorate(command)
    return command
