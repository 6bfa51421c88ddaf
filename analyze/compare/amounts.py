"""What gates can say of one kernel, category or op: its time, its share and how often it ran."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import Struct

from analyze.errors import closest

Kind = Literal["kernel", "category", "op"]
Part = Literal["sum", "share", "count"]
Row = tuple[str, int, int]
UNITS: dict[Part, str] = {"sum": "ns", "share": "share", "count": "count"}
_NAMED = re.compile(rf"({'|'.join(get_args(Kind))}):(.+) ({'|'.join(get_args(Part))})")
_WILD = "*"


class Amount(Struct, frozen=True):
    """What a gate asks of some names.

    Attributes:
        kind: kernel (any activity of a device), category or op.
        name: the name; with `*` for any characters, it stands for all that match.
        part: "sum" (time over all calls), "share" (of the time of all activities; of ops on a file without device
            activity, of all self CPU time) or "count".
    """

    kind: Kind
    name: str
    part: Part

    @property
    def label(self) -> str:
        """As it is written in a gate."""
        return f"{self.kind}:{self.name} {self.part}"


def parse_amount(text: str) -> Amount | None:
    """The amount that a text names, None for other texts."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return None
    kind, name, part = found.groups()
    return Amount(kind, name, part)  # type: ignore[arg-type]


def measure_amount(amount: Amount, rows: Sequence[Row]) -> tuple[float | int | None, str]:
    """The figure in ns, as a share of 1 or as a count; without one, why.

    A name with `*` that matches nothing has none of it; one without must be there, since a misspelt one would pass.

    Args:
        amount: what is asked.
        rows: name, time in ns and count of all kernels, categories or ops.
    """
    if not rows:
        return None, f"the file holds no {amount.kind if amount.kind == 'op' else 'device activity'}"
    mine = [row for row in rows if _matches(amount.name, row[0])]
    if not mine and _WILD not in amount.name:
        close = closest(amount.name, [row[0] for row in rows], n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        return None, f"no {amount.kind} of this name ran{meant}"
    if amount.part == "count":
        return sum(row[2] for row in mine), ""
    ns, whole = sum(row[1] for row in mine), sum(row[1] for row in rows)
    if amount.part == "sum":
        return ns, ""
    return (ns / whole, "") if whole else (None, "no time was measured")


def _matches(pattern: str, name: str) -> bool:
    """Whether a name is meant; only `*` stands for others, since names of kernels hold brackets."""
    if _WILD not in pattern:
        return pattern == name
    plain = re.sub(r"([\[\]?])", r"[\1]", pattern)
    return fnmatch.fnmatchcase(name, plain)
