"""What kind a collective is, how many bytes it moves, and whether they explain how long it takes."""

from __future__ import annotations

import re

import polars as pl

from analyze.timeline.attribution import Attribution
from analyze.timeline.callers import chains
from analyze.trace.nesting import NO_ROW

# What few bytes need in a large group, and a rate that even a gigabit network reaches a tenth of: a collective that
# takes ten times as long waits.
LATENCY_NS, BYTES_PER_S = 100_000, 500_000_000
WAITS = 10
EXCHANGE = "sendrecv"

# The first that is found counts: an all-reduce is no reduce, and a custom kernel's name says "reduce" for it.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("all_reduce", r"all_?reduce|cross_device_reduce|multimem.*reduce"),
        ("reduce_scatter", r"reduce_?scatter"),
        ("all_gather", r"all_?gather"),
        ("all_to_all", r"all_?to_?all|deep_?ep\b|internode::|intranode::"),
        ("broadcast", r"broadcast"),
        ("barrier", r"barrier"),
        ("send", r"send(?!_?recv)"),
        ("recv", r"(?<!send)(?<!send_)recv"),
        ("gather", r"gather"),
        ("scatter", r"scatter"),
        ("reduce", r"reduce"),
        (EXCHANGE, r"send_?recv"),
    )
)
_GROUP_CALL = re.compile(r"(nccl|rccl|xccl|gloo|ucc|mpi|_?c10d\w*):", re.IGNORECASE)
ELEMENT_BYTES = {
    "byte": 1, "char": 1, "bool": 1, "short": 2, "half": 2, "bfloat16": 2, "int": 4, "float": 4, "long": 8,
    "double": 8, "complexhalf": 4, "complexfloat": 8, "complexdouble": 16, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip


def kind_of(*names: str | None) -> str:
    """The kind of a collective by the first name that says one; point-to-point or all-to-all where none does.

    Source: docs/ranks.md.
    """
    for name in names:
        kind = next((kind for kind, pattern in _KINDS if name and pattern.search(name)), "")
        if kind and kind != EXCHANGE:
            return kind
    return EXCHANGE


def collectives(found: Attribution) -> pl.DataFrame:
    """The collectives of an attribution with `collective_kind`, `message_bytes` (null where not recorded), `own_ns`.

    The bytes are the larger of what a rank gives and gets; `own_ns` is what they need on a slow network.
    """
    rows = found.work.filter(pl.col("category").cast(pl.String) == "communication")
    rows = rows.with_columns(pl.col("name", "category", "kind", "op", "collective", "element_type").cast(pl.String))
    size = element_bytes(rows["element_type"])
    elements = pl.max_horizontal("in_elements", "out_elements")
    return rows.with_columns(
        collective_kind=_kinds(found, rows),
        message_bytes=pl.when(elements.is_between(1, 2**50)).then(elements * size),
    ).with_columns(own_ns=LATENCY_NS + (pl.col("message_bytes") / BYTES_PER_S * 10**9).cast(pl.Int64))


def element_bytes(types: pl.Series) -> pl.Series:
    """Bytes of one element of each type as c10::ScalarType names it, null for types that are not known."""
    found: pl.Series = types.str.to_lowercase().replace_strict(ELEMENT_BYTES, default=None, return_dtype=pl.Int64)
    return found


def waits(needed: str = "own_ns") -> pl.Expr:
    """Whether the bytes of a collective explain no more than a tenth of its time: the rest is waiting."""
    return (pl.col("dur_ns") >= WAITS * pl.col(needed)).fill_null(value=False)


def group_call(name: str) -> tuple[str, str] | None:
    """The library and the kind of collective that an op or a range of a process group says, None for any other."""
    found = _GROUP_CALL.match(name)
    if found is None:
        return None
    library = found[1].lower()
    return "c10d" if "c10d" in library else library, kind_of(name)


def _of_a_process_group(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if _GROUP_CALL.match(name))


def _kinds(found: Attribution, rows: pl.DataFrame) -> pl.Series:
    """Kinds by the process group's name, else its ops and ranges around the launch, else the kernel's name."""
    around = chains(found.tree, rows["call"].fill_null(NO_ROW).to_numpy(), found.tree.caller)
    kinds = [
        kind_of(collective, *_of_a_process_group(around.names[at]), name)
        for collective, name, at in zip(rows["collective"], rows["name"], around.number.tolist(), strict=True)
    ]
    return pl.Series(kinds, dtype=pl.String)
