"""`analyze redact` and `analyze export`: a trace in, another trace out."""

from __future__ import annotations

import click

from analyze.cli.deliver import progress
from analyze.cli.options import CONTEXT, EPILOG, check_selection, common_options, selection_options
from analyze.cli.streams import put, say
from analyze.inert import printable

TRUST = click.option("--trust-size", is_flag=True, help="Let a compressed file grow without limit.")
_FORCE = click.option("--force", is_flag=True, help="Replace a file that this program did not make.")
_OUTPUT = click.option("-o", "--output", metavar="FILE", required=True, help="Where to: a .json or a .json.gz file.")


@click.command("redact", short_help="Write a trace that can be given away.", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("trace", metavar="TRACE")
@_OUTPUT
@click.option("--redact-names", is_flag=True, help="Number user ranges, modules and functions too.")
@_FORCE
@TRUST
@common_options
def redact_command(
    trace: str,
    output: str,
    redact_names: bool,  # noqa: FBT001 - click passes options by name
    force: bool,  # noqa: FBT001
    trust_size: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
) -> None:
    r"""Write a copy of TRACE without folders, hosts, users, environment and free text, and with the same figures.

    Names of kernels, ops and API calls stay. Both files are analysed: if any figure differs, nothing is written and the
    exit code is 2.

    \b
    Example:
      analyze redact trace.json.gz -o shared.json.gz
    """
    from analyze.report.files import refuse_inputs
    from analyze.report.share.redact_file import redact_file

    refuse_inputs([output], [trace])
    done = redact_file(trace, output, names=redact_names, force=force, trusted=trust_size)
    put("\n".join(done.lines()) + "\n", lambda text: text)
    say(f"wrote {printable(output)}")


@click.command("export", short_help="Add the ledger to a trace, for Perfetto.", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("trace", metavar="TRACE")
@_OUTPUT
@selection_options
@_FORCE
@TRUST
@common_options
def export_command(
    trace: str,
    output: str,
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
    force: bool,  # noqa: FBT001 - click passes options by name
    trust_size: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
) -> None:
    r"""Write a copy of TRACE with tracks for ui.perfetto.dev and chrome://tracing.

    They are the ledger of each device, its longest gaps with their causes, the findings at their places, the depth of
    the launch queue, and memory. The rows of the trace stay as they are, byte by byte.

    \b
    Example:
      analyze export trace.json.gz -o annotated.json.gz
    """
    from analyze.report.files import refuse_inputs
    from analyze.report.share.export import export_file

    check_selection(steps, range_name)
    refuse_inputs([output], [trace])
    with progress() as on_progress:
        done = export_file(
            trace, output, steps=steps, range=range_name, force=force, trusted=trust_size, on_progress=on_progress
        )
    put("\n".join(done.lines()) + "\n", lambda text: text)
    say(f"wrote {printable(output)}")
