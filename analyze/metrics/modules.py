"""Device time by nn.Module, where Python frames were recorded: attention, its projections, the MLP."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from analyze.blocks import Column, Kind, Section, Table
from analyze.metrics.attribution import Attribution
from analyze.metrics.callers import MODULE_PREFIX
from analyze.timeline.calls import FRAME, NONE

_INSTANCE = re.compile(r"_\d+$")
_LISTED = 30
_FEW = 4  # the layers of a stack are one row, the projections of an attention are several


@dataclass(frozen=True, slots=True)
class Module:
    """Calls of modules of one class at one place.

    Attributes:
        module: class with the class around it: `ViTAttention > Linear #2` is the second Linear called in it.
        calls: how many.
        self_device_ns: device time of what they launched outside the modules in them.
        total_device_ns: the same with the modules in them.
        share: `total_device_ns` of the added-up time of all activities, 0..1.
    """

    module: str
    calls: int
    self_device_ns: int
    total_device_ns: int
    share: float


def measure_modules(found: Attribution) -> tuple[Module, ...]:
    """Modules with device time, most total time first; empty without module frames."""
    tree = found.tree
    names = tree.calls["name"].cast(pl.String)
    is_module = ((tree.kind == FRAME) & names.str.starts_with(MODULE_PREFIX).to_numpy()) & tree.counted
    calls = np.flatnonzero(is_module)
    if not calls.size or not found.total_ns:
        return ()
    above = np.append(tree.nearest(is_module), NONE)
    own = np.zeros(len(tree), dtype=np.int64)
    inside = np.flatnonzero((found.device_ns > 0) & (above[:-1] != NONE))
    np.add.at(own, above[inside], found.device_ns[inside])
    frame = pl.DataFrame(
        {
            "class": [_INSTANCE.sub("", n.removeprefix(MODULE_PREFIX)) for n in names.gather(calls).to_list()],
            "around": above[tree.caller[calls]],
            "call": calls,
            "own": own[calls],
            "total": tree.subtree_sum(found.device_ns)[calls],
        }
    )
    return _grouped(_placed(frame), found.total_ns)


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
        .agg(calls=pl.len(), own=pl.col("own").sum(), total=pl.col("total").sum())
        .filter(pl.col("total") > 0)
        .sort("total", "own", "module", descending=[True, True, False])
    )
    return tuple(Module(name, calls, own, total, total / whole_ns) for name, calls, own, total in grouped.iter_rows())


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
        ),
        rows=tuple((m.module, m.calls, m.self_device_ns, m.total_device_ns, m.share) for m in modules[:_LISTED]),
        note="A module's total contains the modules in it: rows of different depth are never added.",
        total=len(modules),
    )
    return Section("modules", "Modules", (table,))
