"""`analyze TRACE`: a report on a trace or a memory snapshot, with a baseline and gates where asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from analyze.cli.choices import Measuring, Reading
from analyze.cli.deliver import Delivery, check_read_once, progress
from analyze.cli.extras import Extras, extra_options
from analyze.cli.options import (
    CONTEXT,
    EPILOG,
    check_selection,
    common_options,
    from_settings,
    gate_options,
    input_options,
    limit_option,
    output_options,
    selection_options,
    was_given,
)
from analyze.cli.ranks_command import RanksOptions, is_job, only_trace, path_of_rank, rank_options, report_on_ranks
from analyze.cli.threads import spare_threads
from analyze.errors import GateError, SelectionError
from analyze.settings import OP_SORTS, Definitions, OpsView

if TYPE_CHECKING:
    from analyze.blocks import Page
    from analyze.compare.gates import Gate
    from analyze.report.redact import Redaction
    from analyze.report.report import Document, Report


_OF_RANKS = ("rank", "job", "store", "workers", "cluster", "shard", "from_store")


@click.command("report-on", hidden=True, epilog=EPILOG, context_settings=CONTEXT)
@click.argument("trace", metavar="TRACE", required=False)
@click.argument("others", metavar="", nargs=-1)
@output_options
@selection_options
@click.option("--sort", type=click.Choice(OP_SORTS), help="Sort ops by KEY. Default: self_device, else self_cpu.")
@click.option("--group-by-shape", is_flag=True, help="Ops of different input shapes make different rows.")
@click.option("--baseline", metavar="FILE", help="Compare with FILE, a trace or a JSON report of one.")
@gate_options
@limit_option
@extra_options
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict, the findings' ids and the gates only.")
@input_options
@rank_options
@common_options
def report_command(
    trace: str | None,
    others: tuple[str, ...],
    steps: tuple[int | None, int | None] | None,
    range_name: str | None,
    top: int,
    sort: str | None,
    group_by_shape: bool,  # noqa: FBT001 - click passes options by name
    baseline: str | None,
    gates: tuple[Gate, ...],
    junit: str | None,
    limits: tuple[tuple[str, float], ...],
    jobs: int | None,
    trust_size: bool,  # noqa: FBT001
    debug: bool,  # noqa: FBT001, ARG001 - read by main
    round_: int | None,
    **looks: Any,
) -> int:
    """Make a report and write it."""
    spare_threads([path for path in (trace, baseline) if path is not None])
    of_ranks = RanksOptions(round=round_, **{name: looks.pop(name) for name in _OF_RANKS})
    extras = Extras(looks.pop("tables"), looks.pop("table_form"), looks.pop("svg"), force=looks["force"])
    delivery = Delivery(**looks).aimed([path for path in (trace, *others) if path is not None])
    if is_job(trace, others, of_ranks):
        paths = [path for path in (trace, *others) if path is not None]
        found = _one_of(paths, of_ranks)
        if found is None:
            _refuse_for_ranks(steps=steps, range_name=range_name, baseline=baseline, extras=extras)
            return report_on_ranks(paths, of_ranks, gates, delivery, top=top, junit=junit)
        trace = found
    if trace is None:
        raise click.MissingParameter(param_hint="'TRACE'", param_type="argument")
    if from_settings("gates") and _is_snapshot(trace):
        gates = ()  # budgets of a project are for its traces
    delivery.check([trace, *([] if baseline is None else [baseline])], junit)
    check_read_once([trace, *([] if baseline is None else [baseline])])
    check_selection(steps, range_name)
    extras.check()
    _check_gates(gates, baseline=baseline)
    definitions = Definitions(top=top)
    other = _other_document(trace, definitions, delivery, (steps or range_name, baseline, gates, extras))
    if other is not None:
        delivery.deliver(other)
        return 0
    from analyze.cli.inputs import load_comparable, load_report
    from analyze.compare.judged import judged_report

    view = OpsView(sort or "", group_by_shape)
    one_screen = delivery.one_screen_only and not extras.asked
    measuring = Measuring(steps, range_name, definitions, dict(limits), view, one_screen)
    with progress() as on_progress:
        reading = Reading(jobs, trust_size, on_progress)
        redaction = delivery.redaction()
        before = load_comparable(baseline, measuring, reading, redaction) if baseline is not None else None
        report = load_report(trace, measuring, reading, redaction)
    extras.write(report)
    report = _with_lists(report, delivery, top)
    judged = judged_report(report, before, gates, top=top)
    if junit is not None:  # first, so that a standard output that is full costs no file
        from analyze.compare.junit import write_junit

        write_junit(judged, junit, force=delivery.force)
    delivery.deliver(judged)
    return int(judged.failed)


def _with_lists(report: Report, delivery: Delivery, top: int) -> Report:
    """The report with lists as long as they were asked for; raises where no list is shown that was asked for."""
    from analyze.report.lists import at_most

    if was_given("top"):
        report = replace(report, page=at_most(report.page, top))
    if delivery.one_screen_only:
        _check_lists(report.page)
    return report


def _check_lists(page: Page) -> None:
    """Refuse options of lists where one screen shows no such list.

    Raises:
        SelectionError: one of them was given, and would change nothing.
    """
    from analyze.report.lists import OPS, lists_on_screen

    shown = lists_on_screen(page)
    wanted = {"sort": ("--sort", "ops", OPS in shown), "group_by_shape": ("--group-by-shape", "ops", OPS in shown)}
    wanted["top"] = ("--top", "gaps, kernels or ops", bool(shown))
    for name, (option, what, there) in wanted.items():
        if was_given(name) and not there:
            raise SelectionError(
                f"The report on one screen has no list of {what}: {option} would change nothing.",
                "Add --full, --report md or -o FILE.",
            )


def _one_of(paths: list[str], options: RanksOptions) -> str | None:
    """The one trace to report on: that of a rank, or the only one of a folder; None for a job."""
    if options.rank is not None and paths:
        return path_of_rank(paths, options)
    if options.from_store is not None or options.shard is not None:
        return None
    return only_trace(paths[0], paths[1:])


def _refuse_for_ranks(*, steps: object, range_name: object, baseline: object, extras: Extras) -> None:
    """Options that are for one trace."""
    given = {"--steps": steps, "--range": range_name, "--baseline": baseline, **extras.asked}
    for option, value in given.items():
        if value:
            raise SelectionError(f"{option} is for one trace, not for a job of many ranks.", "Add --rank N.")


def _refuse_for(what: str, selected: object, baseline: object, gates: object, extras: Extras) -> None:
    """Options that are for traces."""
    for option, given in (
        ("--steps and --range select", selected),
        ("--baseline compares", baseline is not None),
        ("--fail-if judges", gates),
        *((f"{option} takes", True) for option in extras.asked),
    ):
        if given:
            raise SelectionError(f"{what}: {option} traces.", "Leave the option out.")


def _is_snapshot(path: str) -> bool:
    from analyze.snapshot import is_snapshot

    return is_snapshot(path)


def _other_document(
    path: str, definitions: Definitions, delivery: Delivery, of_traces: tuple[object, object, object, Extras]
) -> Document | None:
    """The report on a memory snapshot or a batch sweep, None where the file is neither.

    Raises:
        SelectionError: an option was given that is for traces.
    """
    from analyze.report.sweep import read_sweep

    if _is_snapshot(path):
        _refuse_for(f"{path} is a memory snapshot", *of_traces)
        return _snapshot_report(path, definitions, delivery.redaction())
    sweep = read_sweep(path, redact=delivery.redaction() is not None)
    if sweep is not None:
        _refuse_for(f"{path} is a batch sweep", *of_traces)
    return sweep


def _check_gates(gates: tuple[Gate, ...], *, baseline: str | None) -> None:
    """Refuse what cannot be served before a long file is read."""
    for gate in gates:
        if gate.relative and baseline is None:
            raise GateError(f"The gate {gate.expression!r} needs a baseline.", "Pass --baseline FILE, or --no-config.")


def _snapshot_report(path: str, definitions: Definitions, redaction: Redaction | None) -> Document:
    from analyze.cli.inputs import load_snapshot
    from analyze.report.snapshot import build_snapshot_report
    from analyze.snapshot import recorded_beside

    return build_snapshot_report(load_snapshot(path, redaction), noted=recorded_beside(path), definitions=definitions)
