"""Device time by nn.Module, where Python frames were recorded: attention, its projections, the MLP."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from analyze.arrays import Int64
from analyze.blocks import Column, Kind, Section, Table
from analyze.metrics.foundations import ATTRIBUTION
from analyze.metrics.question import Answers, Question
from analyze.notices import NotMeasured
from analyze.timeline.attribution import Attribution
from analyze.timeline.callers import MODULE, MODULE_PREFIX
from analyze.timeline.calls import FRAME
from analyze.trace import matching
from analyze.trace.nesting import NO_ROW

_INSTANCE = re.compile(r"_\d+$")
_LISTED = 30
_NUMBERS = ("total_device_ns", "self_device_ns", "backward_device_ns", "calls")  # the order of rows
_FEW = 4  # the layers of a stack are one row, the projections of an attention are several


class Module(Struct, frozen=True):
    """Calls of modules of one class at one place.

    Attributes:
        module: class with the class around it: `ViTAttention > Linear #2` is the second Linear called in it.
        calls: how many.
        self_device_ns: device time of what they launched outside the modules in them.
        total_device_ns: the same with the modules in them.
        backward_device_ns: of the total, what the backward engine launched for their forward ops.
        share: `total_device_ns` of the added-up time of all activities, 0..1.
    """

    module: str
    calls: int
    self_device_ns: int
    total_device_ns: int
    backward_device_ns: int
    share: float


def measure_modules(found: Attribution) -> tuple[Module, ...]:
    """Modules with device time, most total time first; empty without module frames.

    What the backward engine launches belongs to the module of the forward op, where that is known.
    """
    tree = found.tree
    names = tree.calls["name"]
    is_module = (tree.kind == FRAME) & matching(names, MODULE).to_numpy() & tree.counted
    calls = np.flatnonzero(is_module)
    if not calls.size or not found.total_ns:
        return ()
    # A module that runs inside a backward call is run again for it: it belongs to no forward op.
    caller = np.append(tree.nearest(is_module), NO_ROW)
    above = tree.nearest(is_module, found.around)
    inside = np.flatnonzero((found.device_ns > 0) & (above != NO_ROW))
    own, backward = np.zeros(len(tree), dtype=np.int64), np.zeros(len(tree), dtype=np.int64)
    np.add.at(own, above[inside], found.device_ns[inside])
    np.add.at(backward, above[inside], np.where(above == caller[:-1], 0, found.device_ns)[inside])
    around = caller[tree.caller[calls]]
    parent = np.where(around == NO_ROW, NO_ROW, np.searchsorted(calls, around))
    frame = pl.DataFrame(
        {
            "class": [_INSTANCE.sub("", n.removeprefix(MODULE_PREFIX)) for n in names.gather(calls).to_list()],
            "around": around,
            "call": calls,
            "own": own[calls],
            "total": _with_inner(own[calls], parent),
            "backward": _with_inner(backward[calls], parent),
        },
        schema_overrides={"class": pl.String},
    )
    return _grouped(_placed(frame), found.total_ns)


def _with_inner(own: Int64, parent: Int64) -> Int64:
    """Per module its own amount and that of all modules in it."""
    total: Int64 = own.copy()
    at = parent
    while (at != NO_ROW).any():
        inside = np.flatnonzero(at != NO_ROW)
        np.add.at(total, at[inside], own[inside])
        at = np.append(parent, NO_ROW)[at]
    return total


def _placed(frame: pl.DataFrame) -> pl.DataFrame:
    """Name each call by its class, the class around it, and its turn among its like where there are several."""
    frame = frame.with_columns(
        turn=pl.int_range(1, pl.len() + 1).over("around", "class"),
        alike=pl.len().over("around", "class"),
    )
    outer = frame.select(pl.col("call").alias("around"), pl.col("class").alias("outer"))
    frame = frame.join(outer, on="around", how="left", maintain_order="left")
    several = (pl.col("alike") > 1) & (pl.col("alike") <= _FEW) & pl.col("outer").is_not_null()
    turn = pl.when(several).then(pl.format(" #{}", "turn")).otherwise(pl.lit(""))
    place = pl.when(pl.col("outer").is_null()).then(pl.lit("")).otherwise(pl.format("{} > ", "outer"))
    return frame.with_columns(module=place + pl.col("class") + turn)


def _grouped(frame: pl.DataFrame, whole_ns: int) -> tuple[Module, ...]:
    grouped = (
        frame.group_by("module")
        .agg(
            calls=pl.len(),
            self_device_ns=pl.col("own").sum(),
            total_device_ns=pl.col("total").sum(),
            backward_device_ns=pl.col("backward").sum(),
        )
        .filter(pl.col("total_device_ns") > 0)
        .sort(*_NUMBERS, "module", descending=[*(True for _ in _NUMBERS), False])
    )
    return tuple(Module(**row, share=row["total_device_ns"] / whole_ns) for row in grouped.iter_rows(named=True))


def section(modules: tuple[Module, ...]) -> Section:
    """Modules with most device time."""
    table = Table(
        title="Device time by module",
        columns=(
            Column("module", Kind.CODE),
            Column("calls", Kind.COUNT),
            Column("self", Kind.TIME),
            Column("total", Kind.TIME),
            Column("total, of activity time", Kind.SHARE),
            Column("backward", Kind.TIME),
        ),
        rows=tuple(
            (m.module, m.calls, m.self_device_ns, m.total_device_ns, m.share, m.backward_device_ns)
            for m in modules[:_LISTED]
        ),
        note=(
            "A module's total contains the modules in it: rows of different depth are never added. Backward is the "
            "part of the total that autograd launched for their ops."
        ),
        total=len(modules),
    )
    return Section("modules", "Modules", (table,))


def _section(answers: Answers) -> Section | None:
    modules = answers.ask(QUESTION)
    return section(modules) if modules else None


def _not_measured(answers: Answers) -> Iterator[NotMeasured]:
    if not answers.trace.frames.height:
        yield NotMeasured("python-frames", "no Python frames", "record with with_stack=True, or capture --stacks")


QUESTION = Question(
    "modules",
    lambda a: measure_modules(a.ask(ATTRIBUTION)),
    answer=list[Module],
    section=_section,
    on_screen=False,
    not_measured=_not_measured,
)
