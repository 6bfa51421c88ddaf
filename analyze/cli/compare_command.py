"""`analyze compare A B ...`: traces and JSON reports in any mix, or two memory snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from analyze.cli.choices import Measuring, Reading
from analyze.cli.deliver import Delivery, check_read_once, progress
from analyze.cli.options import (
    CONTEXT,
    EPILOG,
    check_selection,
    common_options,
    from_settings,
    gate_options,
    input_options,
    output_options,
    selection_options,
)
from analyze.errors import SelectionError, UnreadableError
from analyze.settings import Definitions

if TYPE_CHECKING:
    from analyze.compare import Comparable
    from analyze.compare.gates import Gate
    from analyze.compare.judged import JudgedComparison
    from analyze.report.redact import Redaction
    from analyze.report.report import Document

_HELP = """Compare runs: A is the baseline, every change is B minus A.

Takes traces, JSON reports and recordings of capture (their folders, or run.json) in any mix, at most 5, two memory
snapshots, or two folders of ranks. Better and worse are said only of changes that lie beyond the spread of the steps.

\b
Examples:
  analyze compare before.json.gz after.json.gz
  analyze compare baseline-report.json after.json.gz -o change.md
  analyze compare fp32.json.gz tf32.json.gz fp16.json.gz bf16.json.gz
  analyze compare before.json.gz after.json.gz --fail-if 'step_time +5%'
  analyze compare runs/fp32 runs/bf16
  analyze compare before.pickle after.pickle
"""


@click.command(
    "compare",
    short_help="Compare traces, JSON reports of them, or two memory snapshots.",
    help=_HELP,
    epilog=EPILOG,
    context_settings=CONTEXT,
)
@click.argument("paths", metavar="A B [C ...]", nargs=-1, required=True)
@output_options
@selection_options
@gate_options
@input_options
@common_options
def compare_command(
    paths: tuple[str, ...],
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
    gates: tuple[Gate, ...],
    junit: str | None,
    top: int,
    jobs: int | None,
    trust_size: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
    **looks: Any,
) -> int:
    """Compare and write what changed; 1 where a gate failed."""
    from analyze.compare.run_json import recorded_file

    paths = tuple(recorded_file(path) for path in paths)
    delivery = Delivery(**looks).aimed(paths)
    delivery.check(paths, junit)
    _check_paths(paths)
    check_selection(steps, range_name)
    if from_settings("gates"):
        gates = ()  # budgets of a project are for single runs of it
    measuring = Measuring(steps, range_name, Definitions(top=top))
    if all(Path(path).is_dir() for path in paths):
        from analyze.cli.ranks_command import compare_folders

        _only_traces("folders of ranks", steps or range_name, gates, junit)
        delivery.deliver(compare_folders(paths))
        return 0
    from analyze.snapshot import is_snapshot

    if all(is_snapshot(path) for path in paths):
        _only_traces("memory snapshots", steps or range_name, gates, junit)
        delivery.deliver(_snapshots(paths, top, delivery.redaction()))
        return 0
    made = _traces(paths, measuring, gates, Reading(jobs, trust_size), delivery.redaction(), drawn=bool(delivery.pages))
    if junit is not None:  # first, so that a standard output that is full costs no file
        from analyze.compare.junit import write_junit

        write_junit(made, junit, force=delivery.force)
    delivery.deliver(made)
    return int(made.failed)


def _only_traces(what: str, selected: object, gates: tuple[Gate, ...], junit: str | None) -> None:
    """Refuse options that mean nothing for other inputs than traces."""
    for option, given in (("--steps and --range select", selected), ("--fail-if judges", gates or junit)):
        if given:
            raise SelectionError(f"The inputs are {what}: {option} traces.", "Leave the option out.")


def _check_paths(paths: tuple[str, ...]) -> None:
    """Refuse what cannot be compared before long files are read."""
    if len(paths) < 2:
        raise SelectionError("There is one input: nothing to compare it with.", "Pass two or more files.")
    check_read_once(paths)
    for path in paths:
        if path != "-" and not os.path.exists(path):
            raise UnreadableError(f"{path} does not exist.", "Check the path.")


def _snapshots(paths: tuple[str, ...], top: int, redaction: Redaction | None) -> Document:
    from analyze.cli.inputs import load_snapshot
    from analyze.compare.snapshots import compare_snapshots

    if len(paths) > 2:
        raise SelectionError(f"{len(paths)} memory snapshots cannot be compared at once.", "Pass two.")
    first, second = (load_snapshot(path, redaction) for path in paths)
    return compare_snapshots(first, second, definitions=Definitions(top=top))


def _traces(
    paths: tuple[str, ...],
    measuring: Measuring,
    gates: tuple[Gate, ...],
    reading: Reading,
    redaction: Redaction | None,
    *,
    drawn: bool,
) -> JudgedComparison:
    """Compare traces. Whole reports, which hold their traces, are kept only to be drawn beside each other."""
    from analyze.cli.inputs import load_comparable, load_side
    from analyze.compare import comparable_of, compare, labels_of, line_up
    from analyze.compare.judged import judged_comparison
    from analyze.report import Report
    from analyze.report.stored import read_stored

    if measuring.selects and all(read_stored(path) is not None for path in paths):
        hint = "Make the reports anew from the traces with the option, or leave it out."
        raise SelectionError("The inputs are reports: --steps and --range select traces.", hint)
    load: Callable[..., Comparable | Report] = load_side if drawn and len(paths) == 2 else load_comparable
    sides: list[Comparable | Report] = []
    for path in paths:
        with progress() as on_progress:
            sides.append(load(path, measuring, replace(reading, on_progress=on_progress), redaction))
    names = paths if redaction is None else [redaction.file(path) for path in paths]
    labels = labels_of([Path(name) for name in names], folders=redaction is None)
    subjects = [comparable_of(one) if isinstance(one, Report) else one for one in sides]
    if len(paths) > 2:
        return judged_comparison(line_up(subjects, labels), subjects, labels, gates)
    named_by_label = subjects[0].name == subjects[1].name and labels != ["A", "B"]  # letters say less than a name twice
    made = compare(*subjects, names=labels if named_by_label else None, top=measuring.definitions.top)
    a, b = sides
    if isinstance(a, Report) and isinstance(b, Report):
        made = replace(made, sides=(a, b))
    return judged_comparison(made, subjects, labels, gates)
