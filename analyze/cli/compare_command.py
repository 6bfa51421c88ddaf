"""`analyze compare A B ...`: traces and JSON reports in any mix, or two memory snapshots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyze.cli.deliver import Delivery, check_read_once, progress
from analyze.cli.options import CONTEXT, EPILOG, common_options, input_options, output_options
from analyze.errors import SelectionError, UnreadableError

if TYPE_CHECKING:
    from analyze.report.redact import Redaction
    from analyze.report.report import Document

_HELP = """Compare runs: A is the baseline, every change is B minus A.

Takes traces and JSON reports in any mix, at most 5, two memory snapshots, or two folders of ranks. Better and worse
are said only of changes that lie beyond the spread of the steps.

\b
Examples:
  analyze compare before.json.gz after.json.gz
  analyze compare baseline-report.json after.json.gz -o change.md
  analyze compare fp32.json.gz tf32.json.gz fp16.json.gz bf16.json.gz
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
@input_options
@common_options
def compare_command(
    paths: tuple[str, ...],
    top: int,
    jobs: int | None,
    trust_size: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
    **looks: Any,
) -> None:
    """Compare and write what changed."""
    delivery = Delivery(**looks).aimed(paths)
    delivery.check(paths)
    _check_paths(paths)
    if all(Path(path).is_dir() for path in paths):
        from analyze.cli.ranks_command import compare_folders

        delivery.deliver(compare_folders(paths))
        return
    from analyze.snapshot import is_snapshot

    if all(is_snapshot(path) for path in paths):
        delivery.deliver(_snapshots(paths, top, delivery.redaction()))
        return
    delivery.deliver(_traces(paths, top, jobs=jobs, trusted=trust_size, redaction=delivery.redaction()))


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
    from analyze.settings import Definitions

    if len(paths) > 2:
        raise SelectionError(f"{len(paths)} memory snapshots cannot be compared at once.", "Pass two.")
    first, second = (load_snapshot(path, redaction) for path in paths)
    return compare_snapshots(first, second, definitions=Definitions(top=top))


def _traces(
    paths: tuple[str, ...], top: int, *, jobs: int | None, trusted: bool, redaction: Redaction | None
) -> Document:
    from analyze.cli.inputs import load_side
    from analyze.compare import compare, labels_of, line_up, subject_of
    from analyze.report import Report
    from analyze.settings import Definitions

    choices = {"definitions": Definitions(top=top)}
    sides = []
    for path in paths:
        with progress() as tell:
            sides.append(load_side(path, choices, {"jobs": jobs, "trusted": trusted, "tell": tell}, redaction))
    names = paths if redaction is None else [redaction.file(path) for path in paths]
    labels = labels_of([Path(name) for name in names], folders=redaction is None)
    if len(paths) > 2:
        return line_up([subject_of(one) if isinstance(one, Report) else one for one in sides], labels)
    a, b = sides
    names = [one.trace.name for one in sides]
    told_by_label = names[0] == names[1] and labels != ["A", "B"]  # letters say less than a name twice
    return compare(a, b, names=labels if told_by_label else None, top=top)
