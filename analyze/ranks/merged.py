"""What single ranks suffer from, together: 14 of 16 ranks are launch-bound."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from analyze.ranks.joined import Joined
from analyze.ranks.tables import NO_FINDING, PASSED, UNMEASURED

_SEVERITIES = ("high", "medium", "low")


class MergedFinding(Struct, frozen=True):
    """One rule's finding on several ranks.

    Attributes:
        id: the rule.
        ranks: on which ranks.
        of_ranks: of how many.
        title: that of the first of these ranks.
        alike: all of them have that title, word by word.
        severity: the highest on any rank.
        saved_share: lower median over these ranks of what the change would save, of each rank's own window; None
            where no rank has a number.
        saved_ns: the same in ns.
        change: what to change, in the words of most ranks.
    """

    id: str
    ranks: tuple[int, ...]
    of_ranks: int
    title: str
    alike: bool
    severity: str
    saved_share: float | None
    saved_ns: int | None
    change: str


def merge_findings(joined: Joined) -> tuple[MergedFinding, ...]:
    """Findings by rule: by severity, then by what they would save on all ranks together."""
    rows: dict[str, list[tuple[int, str, str, int | None, float | None, str]]] = {}
    for one in joined.files:
        for rule, title, severity, saved_ns, share, change in one.frames["finding"].iter_rows():
            if severity in NO_FINDING:
                continue
            rows.setdefault(rule, []).append((int(one.file.rank or 0), title, severity, saved_ns, share, change))
    found = []
    for rule, mine in rows.items():
        shares = sorted(share for *_, share, _ in mine if share is not None)
        amounts = sorted(ns for *_, ns, _, _ in mine if ns is not None)
        found.append(
            MergedFinding(
                id=rule,
                ranks=tuple(rank for rank, *_ in mine),
                of_ranks=len(joined.files),
                title=mine[0][1],
                alike=len({title for _, title, *_ in mine}) == 1,
                severity=min((severity for _, _, severity, *_ in mine), key=_SEVERITIES.index),
                saved_share=shares[(len(shares) - 1) // 2] if shares else None,
                saved_ns=amounts[(len(amounts) - 1) // 2] if amounts else None,
                change=Counter(change for *_, change in mine).most_common(1)[0][0],
            )
        )
    return tuple(sorted(found, key=_order))


def _order(one: MergedFinding) -> tuple[int, float, str]:
    return _SEVERITIES.index(one.severity), -(one.saved_share or 0) * len(one.ranks), one.id


def other_rules(joined: Joined) -> tuple[dict[str, str], dict[str, str]]:
    """Rules that found nothing on any rank, and rules that no rank's records can answer, each with a reason.

    Where ranks have different reasons, that of the first rank is given, with its number.
    """
    outcomes: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for one in joined.files:
        rank = int(one.file.rank or 0)
        for rule, text, severity in one.frames["finding"].select("id", "title", "severity").iter_rows():
            outcomes.setdefault(rule, {}).setdefault(severity, []).append((rank, text))
    passed, unmeasured = {}, {}
    for rule, said in outcomes.items():
        if PASSED in said and set(said) <= set(NO_FINDING):
            passed[rule] = _first(said[PASSED])
        elif set(said) == {UNMEASURED}:
            unmeasured[rule] = _first(said[UNMEASURED])
    return passed, unmeasured


def _first(reasons: list[tuple[int, str]]) -> str:
    rank, text = reasons[0]
    return text if len({reason for _, reason in reasons}) == 1 else f"on rank {rank}: {text}"
