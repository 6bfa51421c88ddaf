"""The commands together, and every way out of the program."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

import click
from click_default_group import DefaultGroup

from analyze.cli.compare_command import compare_command
from analyze.cli.open_command import open_command
from analyze.cli.options import CONTEXT, EPILOG
from analyze.cli.report_command import report_command
from analyze.cli.rules_command import explain_command, rules_command
from analyze.cli.share_command import export_command, redact_command
from analyze.cli.streams import abandon_output, output_lost, prepare_streams, say
from analyze.errors import GpuledgerError

EXIT_UNUSABLE, EXIT_INTERRUPTED = 2, 130
INTERRUPTED = "Interrupted; no report was made."
_EXAMPLES = """\b
Examples:
  analyze trace.json.gz                      one screen: verdict, ledger, what to do first
  analyze trace.json.gz --report md          Markdown for a pull request or a mail
  analyze trace.json.gz -o report.html       a page to look at, zoom and send on: timeline, stacks, tables
  analyze trace.json.gz -o report.json       every figure, for scripts
  analyze trace.json.gz --steps 2:5          steps 2, 3 and 4 of the profiler only
  analyze trace.json.gz --fail-if 'idle_share > 10%'   a gate for CI: exit code 1
  analyze compare before.json after.json.gz  what changed, and what is spread
  analyze explain sync-stall                 what a finding means and how it is measured
  analyze FOLDER                             a job of many ranks: who is late, who waits for whom
  analyze open trace.json.gz                 the same trace in Perfetto, with the ledger as tracks
  analyze snapshot.pickle                    a CUDA memory snapshot: what filled the GPU
"""


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
    context_settings=CONTEXT,
    help=f"Where the GPU time of a PyTorch profiler trace went: every nanosecond has one owner.\n\n{_EXAMPLES}",
    epilog=EPILOG,
)
@click.version_option(package_name="gpuledger", prog_name="analyze")
def cli() -> None:
    """Run one of the commands, or report on a trace."""


cli.add_command(report_command)
cli.add_command(compare_command)
cli.add_command(rules_command)
cli.add_command(explain_command)
cli.add_command(export_command)
cli.add_command(open_command)
cli.add_command(redact_command)


def main() -> NoReturn:
    """Run the command line; every way out has a defined exit code and no traceback."""
    gc.disable()  # a run makes next to no cycles, and looking for them takes a tenth of its time
    atexit.register(gc.freeze)  # the last look, at exit, too: all memory goes with the process
    interrupted = _note_interrupts()
    prepare_streams()
    if "--debug" in sys.argv:
        _print_tracebacks()
    try:
        code = cli.main(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        _end_interrupted()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - exit code 1 would read as a failed gate
        if interrupted:  # some libraries turn an interrupt into an error of their own
            _end_interrupted()
        code = _code_of(error)
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to say
    sys.exit(code if isinstance(code, int) else 0)


def _note_interrupts() -> list[int]:
    """Raise KeyboardInterrupt as ever, and note that it was raised."""
    found: list[int] = []

    def note(number: int, _frame: object) -> NoReturn:
        found.append(number)
        raise KeyboardInterrupt

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, note)
    return found


def _code_of(error: BaseException) -> int:
    """The exit code of what ended a command early; what it is goes to standard error."""
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else 0
        case click.exceptions.Exit():
            return error.exit_code
        case click.exceptions.NoArgsIsHelpError():
            message = error.format_message()
        case click.ClickException():
            message = f"Error: {error.format_message()}\nHint: `analyze -h` lists the options."
        case GpuledgerError():
            message = f"Error: {error}"
        case BrokenPipeError():
            abandon_output()
            return 0
        case OSError() if error.filename is None:  # what is written to a file has its own error
            message = f"Error: {output_lost(error)}"
        case MemoryError():
            message = "Error: not enough memory for this trace.\nHint: use a machine with more, or record fewer steps."
        case _:
            if "--debug" in sys.argv:
                say("".join(traceback.format_exception(error)))
            message = (
                f"Internal error ({type(error).__name__}), please report it.\n"
                "Hint: run again with --debug for the traceback."
            )
    say(message)
    return EXIT_UNUSABLE


def _print_tracebacks() -> None:
    """Print what parts of a report raised, while the rest of it is made."""
    from analyze.guard import LOG

    LOG.addHandler(logging.StreamHandler())
    LOG.setLevel(logging.DEBUG)


def _end_interrupted() -> NoReturn:
    """End at once: an interpreter that was interrupted in the middle of an exec() would end itself by the signal."""
    say(INTERRUPTED)
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
