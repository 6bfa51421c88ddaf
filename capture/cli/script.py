"""`capture run`: records a script of the user's own, without edits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from capture.cli.ending import explained, naming_missing_packages
from capture.cli.options import RenamedOption

_HELP = """Run a Python script and record its steps, without edits.

\b
Examples:
  capture run train.py --epochs 1
  capture run --warmup 20 --traced-steps 5 --stop train.py
  torchrun --nproc-per-node 2 --no-python capture run train.py

A step ends where the first optimizer of the script has stepped; in a script
without an optimizer, where the outermost torch.nn.Module has returned. The
summary says which it was. The passes are those of `from capture import record`:
warm-up until steady, latency without the profiler, trace, memory snapshot; so
are the names of their options.

A script that calls record() itself keeps its own options. A script that uses
torch.profiler keeps its own schedule and files; what capture knows of the run
is added to each trace that it exports.

The exit code is the script's: 1 after an exception; 2 where the script cannot
be run or nothing was recorded.
"""


@click.command(
    help=_HELP,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    },
)
@click.option(
    "--warmup",
    "--after",
    cls=RenamedOption,
    type=click.IntRange(min=0),
    help="Exactly N warm-up steps.  [default: until steady]",
)
@click.option(
    "--timed-steps",
    "--iterations",
    cls=RenamedOption,
    type=click.IntRange(min=0),
    default=20,
    help="Steps timed without the profiler.",
)
@click.option(
    "--traced-steps",
    "--steps",
    cls=RenamedOption,
    type=click.IntRange(min=0),
    default=5,
    help="Steps in the trace.",
)
@click.option(
    "--snapshot-steps",
    type=click.IntRange(min=0),
    help="Steps with the CUDA allocator's history.  [default: 1 on CUDA]",
)
@click.option(
    "--hook",
    type=click.Choice(["auto", "optimizer", "forward"]),
    default="auto",
    help="What ends a step; auto takes the optimizer where there is one.",
)
@click.option("--stop", is_flag=True, help="End the script when all passes are done.")
@click.option("--stacks", is_flag=True, help="Python stacks in the trace.")
@click.option("--no-shapes", is_flag=True, help="No operand shapes.")
@click.option("--no-memory-events", is_flag=True, help="No allocations and frees.")
@click.option("--device", default="auto", metavar="DEVICE", help="cpu, cuda or cuda:N; auto takes what is used.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of the recording.  [default: runs/NAME for NAME.py]",
)
@click.option("--force", is_flag=True, help="Overwrite an earlier recording.")
@click.option("--debug", is_flag=True, help="Show a traceback with an internal error.")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run_script(script: Path, args: tuple[str, ...], *, debug: bool, **options: Any) -> None:
    """Record a script; the help text is above."""
    with explained(debug=debug):
        sys.exit(_run(script, args, options))


def _run(script: Path, args: tuple[str, ...], options: dict[str, Any]) -> int:
    with naming_missing_packages():
        from capture import follow
        from capture.device import check_present
        from capture.recorder import record
    check_present(options["device"])
    recorder = record(
        options["out"] or Path("runs") / script.stem,
        timed_steps=options["timed_steps"],
        traced_steps=options["traced_steps"],
        snapshot_steps=options["snapshot_steps"],
        warmup=options["warmup"],
        stacks=options["stacks"],
        shapes=not options["no_shapes"],
        memory_events=not options["no_memory_events"],
        device=options["device"],
        force=options["force"],
    )
    return follow.run_script(script, args, recorder, hook=options["hook"], stop=options["stop"])
