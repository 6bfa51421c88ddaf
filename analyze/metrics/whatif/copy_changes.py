"""What copies could spare: those to the device that computation could hide, those inside it, changes of layout."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec.structs import replace

from analyze.arrays import Int64
from analyze.metrics.whatif.scenario import INBOUND, Scenario, WhatIfInputs, of_activities
from analyze.timeline import union
from analyze.timeline.callers import chains
from analyze.trace.nesting import NO_ROW

_WITHIN = r"DtoD|DeviceToDevice|Device -> Device"
_PAGEABLE = "Pageable"
# Ops that only pass a copy on: the one around them is what copies.
_COPYING = ("aten::copy_", "aten::clone", "aten::contiguous", "aten::to", "aten::_to_copy")
# What cuDNN and MIOpen put around a convolution whose tensors have the other layout.
_LAYOUT = r"(?i)nchw_?to_?(?:folded_?)?nhwc|nhwc_?to_?(?:folded_?)?nchw|^batched_transpose_\d+x\d+_"


def inbound_copies(inputs: WhatIfInputs) -> Scenario | None:
    """Copies to the device, hidden behind computation.

    A copy can move to an earlier instant, beside computation that comes before it and that hides no other copy, and so
    the first of a recording stays. One of pageable memory goes as a whole: it would be shorter from pinned memory too,
    by how much the file does not hold.
    """
    inbound = (pl.col("kind") == "memcpy") & pl.col("name").str.contains(INBOUND)
    rows = inputs.rows.filter(inbound & (pl.col("dur_ns") > 0)).sort("start_ns", maintain_order=True)
    hidden = _hidden_ns(inputs, rows)
    rest = rows["dur_ns"].to_numpy() - hidden
    rest = np.where(rows["name"].str.contains(_PAGEABLE).to_numpy(), 0, rest)
    shorter = rest < rows["dur_ns"].to_numpy()
    found = of_activities(rows, inputs.shortened(rows.filter(pl.Series(shorter)), rest[shorter]))
    return found and replace(found, hidable_ns=int(hidden.sum()))


def _hidden_ns(inputs: WhatIfInputs, copies: pl.DataFrame) -> Int64:
    """How much of each copy the computation up to its end can hide, each instant of it one copy on one device."""
    found = np.zeros(copies.height, np.int64)
    device = copies["device"].fill_null(0).to_numpy()
    for one in np.unique(device):
        kernels = inputs.rows.filter((pl.col("kind") == "kernel") & (pl.col("device").fill_null(0) == int(one)))
        computing = union(kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy())
        at = np.flatnonzero(device == one)
        end, dur = copies["end_ns"].to_numpy()[at], copies["dur_ns"].to_numpy()[at]
        before = computing.covered_within(np.full(len(end), np.iinfo(np.int64).min // 2), end)
        used = 0
        for row, free, lasts in zip(at.tolist(), before.tolist(), dur.tolist(), strict=True):
            found[row] = min(lasts, max(free - used, 0))
            used += int(found[row])
    return found


def copies_inside(inputs: WhatIfInputs) -> Scenario | None:
    """Copies from one place of a device's memory to another, named by what copies."""
    rows = inputs.rows.filter((pl.col("kind") == "memcpy") & pl.col("name").str.contains(_WITHIN))
    found = of_activities(rows.with_columns(op=_copier(inputs, rows)), inputs.without(rows))
    return found and replace(found, dispatch=inputs.dispatch(rows, rows["dur_ns"]))


def _copier(inputs: WhatIfInputs, rows: pl.DataFrame) -> pl.Series:
    """What is around the ops that only pass a copy on, their own name where nothing is."""
    around = chains(inputs.work.tree, rows["call"].fill_null(NO_ROW).to_numpy(), inputs.work.around)
    copiers = [next((n for n in names if n not in _COPYING), names[0] if names else None) for names in around.names]
    return pl.Series(copiers, dtype=pl.String).gather(around.number)


def layout_changes(inputs: WhatIfInputs) -> Scenario | None:
    """Kernels that turn NCHW into NHWC or back around convolutions."""
    layout = (pl.col("category") == "copy_layout") & pl.col("name").str.contains(_LAYOUT)
    rows = inputs.rows.filter(layout & (pl.col("kind") == "kernel"))
    return of_activities(rows, inputs.without(rows))
