"""Steps: wall time, device work by launch attribution, spread (metrics.md, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from analyze.blocks import Column, Kind, Section, Stat, Table
from analyze.timeline import Selection, launched_within, union
from analyze.units import duration


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: range name.
        wall_ns: distance to the next step's start, or for the last one its own duration.
        device_ns: time during which activities launched in the step run, on any device.
        activities: how many they are.
        edge: "first" or "last": the first holds residual work, the last lacks a successor; empty otherwise.
    """

    name: str
    wall_ns: int
    device_ns: int
    activities: int
    edge: str


def measure_steps(selection: Selection) -> tuple[Step, ...]:
    """The selected steps in order; empty when the trace has none."""
    steps = selection.steps
    last = steps.height - 1
    return tuple(
        _measure(row, selection.activities, "only" if last == 0 else {0: "first", last: "last"}.get(i, ""))
        for i, row in enumerate(steps.iter_rows(named=True))
    )


def _measure(row: dict[str, object], activities: pl.DataFrame, edge: str) -> Step:
    start, wall = int(row["start_ns"]), int(row["wall_ns"])  # type: ignore[call-overload]
    mine = launched_within(activities, np.array([start]), np.array([start + wall])).filter("timed")
    runs = union(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy())
    return Step(str(row["name"]), wall, runs.total_ns, mine.height, edge)


def median_wall(steps: tuple[Step, ...]) -> tuple[int, int, int] | None:
    """Median, minimum and maximum of the wall times; None without steps. Even counts take the lower middle."""
    walls = sorted(step.wall_ns for step in steps)
    return (walls[(len(walls) - 1) // 2], walls[0], walls[-1]) if walls else None


def section(steps: tuple[Step, ...]) -> Section:
    """The steps with their spread."""
    table = Table(
        title="Steps",
        columns=(
            Column("step", Kind.CODE),
            Column("wall", Kind.TIME),
            Column("device", Kind.TIME),
            Column("of wall", Kind.SHARE),
            Column("activities", Kind.COUNT),
        ),
        rows=tuple(
            (_named(s), s.wall_ns, s.device_ns, s.device_ns / s.wall_ns if s.wall_ns else None, s.activities)
            for s in steps
        ),
        note="Device work is attributed to the step that launched it and may run after the step's end.",
    )
    return Section("steps", "Steps", (Stat("Step", spread_text(steps), brief=bool(steps)), table))


def spread_text(steps: tuple[Step, ...]) -> str:
    """Median with minimum and maximum; one step has no spread."""
    middle = median_wall(steps)
    if middle is None:
        return "no steps in this file"
    median, low, high = middle
    if len(steps) == 1:
        return f"{duration(median)} (1 step, no spread; its own duration)"
    return f"{duration(median)} (median of {len(steps)}; {duration(low)} to {duration(high)})"


def _named(step: Step) -> str:
    return f"{step.name} ({step.edge})" if step.edge else step.name
