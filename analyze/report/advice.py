"""The diagnosis as a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyze.blocks import Advice, Column, Kind, Section, Suggestion, Table
from analyze.findings import Diagnosis, Finding, Hidden
from analyze.units import duration, percent

TITLE = "What to do first"


def section(diagnosis: Diagnosis) -> Section:
    """Findings by saving, and the rules that found nothing or could not be asked."""
    place = {finding.id: i + 1 for i, finding in enumerate(diagnosis.findings)}
    return Section(
        "findings",
        TITLE,
        (
            Advice(
                TITLE,
                "of window",
                tuple(_suggestion(finding, place) for finding in diagnosis.findings),
                _note(diagnosis, place),
                tuple((passed.id, passed.reason) for passed in diagnosis.passed),
                tuple((missing.id, missing.reason) for missing in diagnosis.unmeasured),
            ),
            *_behind(diagnosis.hidden, place),
        ),
    )


def _behind(hidden: tuple[Hidden, ...], place: Mapping[str, int]) -> Iterator[Table]:
    """Costs that save next to nothing by themselves, with the finding to solve first."""
    if hidden:
        yield Table(
            title="Costs that show once another one is gone",
            columns=(
                Column("cost", Kind.TEXT),
                Column("time", Kind.TIME),
                Column("shows without", Kind.TEXT),
                Column("then saves", Kind.TIME),
                Column("of window", Kind.SHARE),
            ),
            rows=tuple(
                (one.id, one.time_ns, f"{place[one.behind]} {one.behind}", one.saving.ns, one.saving.share)
                for one in hidden
            ),
        )


def _note(diagnosis: Diagnosis, place: Mapping[str, int]) -> str:
    """What hides behind the findings, what all would save, and limits that are not the rules' own."""
    parts = []
    if diagnosis.hidden:
        parts.append(_named(diagnosis.hidden, place))
    together = diagnosis.together
    if together:
        most = f"{duration(together.ns)}, {percent(together.share)} of the window"
        parts.append(f"All changes save at most {most}.")
    if diagnosis.limits:
        set_here = ", ".join(f"{rule} {percent(share)}" for rule, share in diagnosis.limits.items())
        parts.append(f"Limits set: {set_here}.")
    return " ".join(parts)


def _named(hidden: tuple[Hidden, ...], place: Mapping[str, int]) -> str:
    """The largest cost that shows once a finding is gone, and how many others there are."""
    one = hidden[0]
    bound = "at most " if one.saving.bound else ""
    others = f" ({len(hidden) - 1:,} more)" if hidden[1:] else ""
    saves = f"{bound}{duration(one.saving.ns)}, {percent(one.saving.share)}"
    return f"Once {place[one.behind]} is gone, {one.id} saves {saves}{others}."


def _suggestion(finding: Finding, place: Mapping[str, int]) -> Suggestion:
    saving = finding.saving
    idle = "idle " if finding.same_idle else ""
    shared = f"mostly the same {idle}time as {place[finding.same_as]}" if finding.same_as else ""
    basis = saving.basis if saving else "No saving is stated: the records do not support a number."
    return Suggestion(
        finding.id,
        finding.title,
        finding.severity,
        saving.ns if saving else None,
        saving.share if saving else None,
        saving.bound if saving else False,
        finding.change,
        (
            ("Seen", finding.observed),
            ("Why it costs", finding.why),
            ("Estimate", basis),
            ("Does not apply when", finding.exceptions),
        ),
        finding.evidence,
        finding.link,
        shared,
    )
