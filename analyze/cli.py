"""The command line: parse, call, write, exit code. No arithmetic and no frames."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click_default_group import DefaultGroup

from analyze.errors import GpuledgerError, OutputError, SelectionError
from analyze.settings import OP_SORTS

if TYPE_CHECKING:
    from analyze.report.to_json import AnyReport
    from analyze.settings import Definitions

EXIT_UNUSABLE, EXIT_INTERRUPTED = 2, 130
PROGRESS_AFTER_S, PROGRESS_EVERY_S = 0.5, 0.1
_EXAMPLES = """\b
Examples:
  analyze trace.json.gz                      one screen: verdict, ledger, largest gaps
  analyze trace.json.gz --report md          Markdown for a pull request or a mail
  analyze trace.json.gz -o report.json       every figure, for scripts
  analyze trace.json.gz --steps 2:5          steps 2, 3 and 4 of the profiler only
  analyze snapshot.pickle                    a CUDA memory snapshot: what filled the GPU
"""
_EPILOG = """\b
Version: analyze --version
Exit codes: 0 report made, 1 a gate failed, 2 unusable input, option or output, 130 interrupted.
Completion: _ANALYZE_COMPLETE=bash_source analyze   (or zsh_source, fish_source)
"""


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


class Analyze(DefaultGroup):  # type: ignore[misc]
    """A group whose help shows what it does without a command: report on a trace."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Usage of the default command."""
        return ["TRACE", "[OPTIONS]"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options of the default command, then the commands."""
        report_command.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(
    cls=Analyze,
    default="report-on",
    default_if_no_args=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ANALYZE"},
    help=f"Where the GPU time of a PyTorch profiler trace went: every nanosecond has one owner.\n\n{_EXAMPLES}",
    epilog=_EPILOG,
)
@click.version_option(package_name="gpuledger", prog_name="analyze")
def cli() -> None:
    """Run one of the commands, or report on a trace."""


@click.command("report-on", hidden=True, epilog=_EPILOG)
@click.argument("trace", metavar="TRACE")
@click.option(
    "--report",
    "report_format",
    type=click.Choice(["terminal", "md", "json", "html"]),
    help="Format on standard output. Default: terminal on a terminal, md into a pipe.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="Write to FILE: .txt, .md or .json. Repeats.",
)
@click.option("--force", is_flag=True, help="Replace files that this program did not make.")
@click.option(
    "--steps",
    type=StepsType(),
    help="Account for profiler steps A to B only, by their numbers; B is excluded.",
)
@click.option("--range", "range_name", metavar="NAME", help="Account for the user range NAME only.")
@click.option(
    "--top",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="How many gaps and kernels to list.",
)
@click.option("--sort", type=click.Choice(OP_SORTS), help="Sort ops by KEY. Default: self_device, else self_cpu.")
@click.option("--group-by-shape", is_flag=True, help="Ops of different input shapes make different rows.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours on the terminal; auto honours NO_COLOR and FORCE_COLOR.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only; the default where the terminal is not UTF-8.")
@click.option("--jobs", type=click.IntRange(1, 64), help="Processes to read a plain file with. Default: by its size.")
@click.option("--trust-size", is_flag=True, help="Let a compressed file grow without limit.")
@click.option("--redact", is_flag=True, help="Of every path keep the file's own name only.")
@click.option("--debug", is_flag=True, help="On an internal error print the traceback.")
def report_command(
    trace: str,
    report_format: str | None,
    outputs: tuple[str, ...],
    force: bool,  # noqa: FBT001 - click passes options by name
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
    top: int,
    sort: str | None,
    group_by_shape: bool,  # noqa: FBT001
    color: str,
    ascii_only: bool,  # noqa: FBT001
    jobs: int | None,
    trust_size: bool,  # noqa: FBT001
    redact: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
) -> None:
    """Make a report and write it."""
    _check_wishes(report_format, outputs, steps, range_name)
    from analyze.settings import Definitions
    from analyze.snapshot import is_snapshot

    definitions = Definitions(top=top)
    report: AnyReport
    if is_snapshot(trace):
        report = _snapshot_report(trace, definitions, selected=steps is not None or range_name is not None)
        _deliver(report, outputs, report_format, color, force=force, ascii_only=ascii_only, redact=redact)
        return
    from analyze.metrics import OpsView
    from analyze.report import build_report
    from analyze.trace import Trace

    with _progress() as tell:
        loaded = Trace.load(trace, jobs=jobs, trusted=trust_size, tell=tell)
        report = build_report(
            loaded,
            steps=steps,
            range=range_name,
            definitions=definitions,
            ops=OpsView(sort or "", group_by_shape),
        )
    _deliver(report, outputs, report_format, color, force=force, ascii_only=ascii_only, redact=redact)


def _snapshot_report(path: str, definitions: Definitions, *, selected: bool) -> AnyReport:
    from analyze.report.snapshot import build_snapshot_report
    from analyze.snapshot import Snapshot, recorded_beside

    if selected:
        raise SelectionError(
            f"{path} is a memory snapshot: --steps and --range select within traces.", "Leave them out."
        )
    return build_snapshot_report(Snapshot.load(path), noted=recorded_beside(path), definitions=definitions)


def _deliver(
    report: AnyReport,
    outputs: tuple[str, ...],
    report_format: str | None,
    color: str,
    *,
    force: bool,
    ascii_only: bool,
    redact: bool,
) -> None:
    """Write a report to its files, and print it where that is asked for or nothing was written."""
    from analyze.report import write

    if redact:
        from analyze.report.redact import redacted

        report = redacted(report)
    for output in outputs:
        write(report, output, force=force)
        click.echo(f"wrote {output}", err=True)
    if report_format or not outputs:
        _print(
            report,
            report_format or ("terminal" if sys.stdout.isatty() else "md"),
            color,
            ascii_only=ascii_only,
        )


cli.add_command(report_command)


@click.command("compare", short_help="Compare two memory snapshots: differences by stack.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--report",
    "report_format",
    type=click.Choice(["terminal", "md", "json"]),
    help="Format on standard output. Default: terminal on a terminal, md into a pipe.",
)
@click.option("-o", "--output", "outputs", multiple=True, metavar="FILE", help="Write to FILE: .txt, .md or .json.")
@click.option("--force", is_flag=True, help="Replace files that this program did not make.")
@click.option(
    "--top", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many differences to list."
)
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True, help="Colours."
)
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only.")
@click.option("--redact", is_flag=True, help="Of every path keep the file's own name only.")
def compare_command(
    first: str,
    second: str,
    report_format: str | None,
    outputs: tuple[str, ...],
    force: bool,  # noqa: FBT001
    top: int,
    color: str,
    ascii_only: bool,  # noqa: FBT001
    redact: bool,  # noqa: FBT001
) -> None:
    """Compare two memory snapshots, A before and B after: what each stack holds more or less of."""
    _check_wishes(report_format, outputs, None, None)
    from analyze.report.comparison import compare_snapshots
    from analyze.settings import Definitions
    from analyze.snapshot import Snapshot, is_snapshot

    for path in (first, second):
        if path == "-" or (Path(path).exists() and not is_snapshot(path)):
            raise SelectionError(
                f"{path} is no memory snapshot; traces cannot be compared yet.", "Pass two snapshots as files."
            )
    comparison = compare_snapshots(Snapshot.load(first), Snapshot.load(second), definitions=Definitions(top=top))
    _deliver(comparison, outputs, report_format, color, force=force, ascii_only=ascii_only, redact=redact)


cli.add_command(compare_command)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Bytes read so far, on a terminal's stderr, for work of over half a second; erased at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    begun, shown = time.monotonic(), 0.0

    def tell(done: int, whole: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begun > PROGRESS_AFTER_S and now - shown > PROGRESS_EVERY_S:
            shown = now
            of = f" of {whole / 1e6:,.0f}" if whole else ""
            sys.stderr.write(f"\r\x1b[Kread {done / 1e6:,.0f}{of} MB")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _check_wishes(
    report_format: str | None,
    outputs: tuple[str, ...],
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
) -> None:
    """Refuse what cannot be served before a long file is read."""
    from analyze.report.formats import HTML_LATER, format_of

    if report_format == "html":
        raise OutputError(HTML_LATER)
    for output in outputs:
        format_of(output)
        if not Path(output).absolute().parent.is_dir():
            raise OutputError(f"{output}: there is no such folder.", "Create it first.")
    if steps is not None and range_name is not None:
        raise SelectionError("Steps and a range cannot be selected together.", "Pass --steps or --range.")


def _print(report: AnyReport, report_format: str, color: str, *, ascii_only: bool) -> None:
    from analyze.report import render

    plain = ascii_only or not _takes_utf8()
    if report_format == "terminal":
        from analyze.report import to_terminal

        text = to_terminal.render(report.page, width=_width(), color=_wants_color(color), ascii_only=plain)
    else:
        text = render(report, report_format)
    sys.stdout.write(text)
    sys.stdout.flush()


def _takes_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _width() -> int:
    from analyze.report.to_terminal import DEFAULT_WIDTH, MAX_WIDTH

    if not sys.stdout.isatty():
        return DEFAULT_WIDTH
    return min(os.get_terminal_size(sys.stdout.fileno()).columns, MAX_WIDTH)


def _wants_color(color: str) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def main() -> NoReturn:
    """Run the command line; every way out has a defined exit code and no traceback."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _fail("Interrupted; no report was made.", EXIT_INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        _fail(error.format_message())
    except click.ClickException as error:
        _fail(f"Error: {error.format_message()}\nHint: `analyze -h` lists the options.")
    except GpuledgerError as error:
        _fail(f"Error: {error}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("Error: not enough memory for this trace.\nHint: use a machine with more, or record fewer steps.")
    except Exception as error:  # noqa: BLE001 - exit code 1 would read as a failed gate
        if "--debug" in sys.argv:
            traceback.print_exc()
        _fail(
            f"Internal error ({type(error).__name__}), please report it.\n"
            "Hint: run again with --debug for the traceback."
        )
    sys.exit(0)


def _fail(message: str, code: int = EXIT_UNUSABLE) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
