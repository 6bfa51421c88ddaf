"""`analyze open TRACE`: a trace in Perfetto, without giving it away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyze.cli.deliver import progress
from analyze.cli.options import CONTEXT, EPILOG, check_selection, common_options, selection_options
from analyze.cli.share_command import TRUST
from analyze.cli.streams import put, say
from analyze.errors import OutputError, SelectionError

if TYPE_CHECKING:
    from analyze.report.share.serve import Offer

_ENDS = re.compile(r"\.json(\.gz)?$|\.(gz|zst|zip)$", re.IGNORECASE)
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LIMIT = 80


@click.command("open", short_help="Open a trace in Perfetto.", epilog=EPILOG, context_settings=CONTEXT)
@click.argument("trace", metavar="TRACE")
@click.option("--plain", is_flag=True, help="Serve the file as it is, without tracks of this program.")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up after so long. Default: never.")
@selection_options
@TRUST
@common_options
def open_command(
    trace: str,
    plain: bool,  # noqa: FBT001 - click passes options by name
    no_browser: bool,  # noqa: FBT001
    wait: float | None,
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
    trust_size: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
) -> None:
    r"""Show TRACE in Perfetto (ui.perfetto.dev), with the tracks that `analyze export` adds.

    Nothing is uploaded: the viewer's page comes from the network, and your browser reads the trace from this machine.
    It is served once, on 127.0.0.1:9001, and the command ends when the browser has it.

    \b
    Examples:
      analyze open trace.json.gz
      analyze open trace.json.gz --no-browser    print the link only
      analyze open trace.json.gz --plain         without tracks of this program
    """
    import tempfile
    import webbrowser

    from analyze.report.share.serve import OneFile

    check_selection(steps, range_name)
    if plain and (steps is not None or range_name is not None):
        raise SelectionError("--plain serves the whole file as it is.", "Leave out --plain, or --steps and --range.")
    with tempfile.TemporaryDirectory(prefix="gpuledger-") as folder:
        offer = _plain(trace) if plain else _annotated(trace, folder, steps, range_name, trusted=trust_size)
        with OneFile(offer) as server:
            say("ui.perfetto.dev needs the network. The trace stays on this machine: your browser reads it.")
            put(f"{offer.link()}\n", lambda text: text)
            if not no_browser:
                webbrowser.open(offer.link())
            say("Waiting for the browser to read the trace, once. Ctrl-C ends this.")
            if not server.wait(wait):
                raise OutputError(f"No browser has read the trace in {wait:g} s.", "Open the link sooner.")
        say("The browser has the trace.")


def _plain(trace: str) -> Offer:
    """The file itself.

    Raises:
        UnreadableError: it cannot be opened, or is empty.
        NotATraceError: it is no JSON document.
    """
    from analyze.report.share.serve import Offer
    from analyze.trace.source import Source
    from analyze.trace.stream import is_stream

    if is_stream(trace):
        raise SelectionError("Only a file can be served.", "Pass a file.")
    next(Source(trace).blocks())  # refuses what is none
    return Offer(Path(trace).resolve(), _served(Path(trace).name))


def _annotated(
    trace: str,
    folder: str,
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
    *,
    trusted: bool,
) -> Offer:
    """A copy with tracks, packed where the trace is."""
    from analyze.report.share.export import export_file
    from analyze.report.share.serve import Offer

    packed = not trace.lower().endswith(".json")
    name = f"{_served(_ENDS.sub('', _ENDS.sub('', Path(trace).name)))}_annotated.json{'.gz' if packed else ''}"
    with progress() as on_progress:
        done = export_file(
            trace, Path(folder) / name, steps=steps, range=range_name, trusted=trusted, on_progress=on_progress
        )
    return Offer(Path(folder) / name, name, done.tracks.window)


def _served(name: str) -> str:
    """A name that an address can hold as it is."""
    return _ODD.sub("_", name)[-_NAME_LIMIT:] or "trace"
