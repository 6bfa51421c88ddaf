"""What collectives could spare: those that computation could hide, and those that wait for other ranks."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec.structs import replace

from analyze.metrics.collectives import collectives, waits
from analyze.metrics.whatif.scenario import Scenario, WhatIfInputs, of_activities
from analyze.units import transfer

_ENOUGH_STEPS = 3  # to separate a collective's own time from its wait


def communication(inputs: WhatIfInputs) -> Scenario | None:
    """Collectives, hidden behind computation as a whole; those that do no more than wait cannot be hidden."""
    rows = collectives(inputs.work).filter(~waits())
    found = of_activities(rows, inputs.shortened(rows))
    return found and replace(found, kind=_most(rows))


def collective_latency(inputs: WhatIfInputs) -> Scenario | None:
    """Collectives whose bytes explain no more than a tenth of their time, at the time that these bytes need."""
    rows = collectives(inputs.work).filter(waits())
    named = rows.with_columns(name=pl.col("collective").fill_null("collective") + " of " + _bytes(rows), op="name")
    found = of_activities(named, inputs.shortened(rows, rows["own_ns"].to_numpy()))
    return found and replace(found, note=found.places[0].name.rpartition(" of ")[2], kind=_most(rows))


def collective_waits(inputs: WhatIfInputs) -> Scenario | None:
    """Collectives that last longer in some steps than in others: at the time of their shortest step.

    The k-th launch of one collective is the same message in every step; what it lasts beyond its shortest time is
    waiting for another rank. What `collective_latency` counts is not counted again.
    """
    steps = inputs.trace.steps
    rows = collectives(inputs.work).rename({"own_ns": "needed_ns"}).filter(pl.col("launch_start_ns").is_not_null())
    if steps.height < _ENOUGH_STEPS or not rows.height:
        return None
    at = np.searchsorted(steps["start_ns"].to_numpy(), rows["launch_start_ns"].to_numpy(), side="right") - 1
    rows = rows.with_columns(step=pl.Series(at)).filter(pl.col("step") >= 0)
    rows = rows.with_columns(turn=pl.int_range(pl.len()).over("device", "name", "step"))
    rows = rows.with_columns(
        own_ns=pl.col("dur_ns").min().over("device", "name", "turn"),
        seen=pl.len().over("device", "name", "turn"),
    )
    waited = rows.filter((pl.col("seen") >= _ENOUGH_STEPS) & (pl.col("dur_ns") > pl.col("own_ns")))
    waited = waited.filter(~waits("needed_ns"))
    excess = waited.with_columns(dur_ns=pl.col("dur_ns") - pl.col("own_ns"))
    return of_activities(excess, inputs.shortened(waited, waited["own_ns"].to_numpy()))


def _most(rows: pl.DataFrame) -> str:
    """The kind with most time."""
    kinds = rows.group_by("collective_kind").agg(pl.col("dur_ns").sum())
    return str(kinds.sort("dur_ns", "collective_kind", descending=[True, False])["collective_kind"][0])


def _bytes(rows: pl.DataFrame) -> pl.Series:
    return pl.Series([transfer(size) for size in rows["message_bytes"]], dtype=pl.String)
