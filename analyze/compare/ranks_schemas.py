"""The contracts of documents on many ranks as JSON Schemas. All times are integer ns, rates bytes per s."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict

from analyze.blocks import Breakdown
from analyze.compare.gates import GateResult
from analyze.compare.ranks import MedianChange
from analyze.notices import Notice
from analyze.ranks.merged import MergedFinding
from analyze.report.plain import contract
from analyze.report.ranks.verdict import RanksVerdict
from analyze.settings import Definitions


class RankFigures(TypedDict):
    """One rank; see `ranks.tables.RANKS`."""

    path: str
    rank_from: str
    clock_offset_ns: int
    clock_component: int
    window_ns: int
    window_start_ns: int
    computation_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: int
    communication_ns: int
    exposed_wait_ns: int
    exposed_transfer_ns: int
    exposed_unsplit_ns: int
    steps: dict[str, int]
    late_because_ns: dict[str, int]
    collectives: int
    communication_sum_ns: int
    wait_ns: int
    transfer_ns: int
    unsplit_ns: int
    times_last: int
    times_last_decided: int
    caused_wait_ns: int
    caused_exposed_wait_ns: int
    alone_ns: int
    own_ns: int | None


class CollectiveFigures(TypedDict):
    """One collective; what is by rank has the rank as its key. Without `split`, the keys behind it are absent."""

    group: str
    dimension: str
    index: int
    kind: str
    kind_from: str
    description: str | None
    bytes: int | None
    ranks: list[int]
    missing: list[int] | None
    matched_by: str
    split: bool
    start_ns: dict[str, int]
    duration_ns: dict[str, int]
    end_spread_ns: int
    mismatch: NotRequired[list[str]]
    last: NotRequired[int]
    last_arrival_ns: NotRequired[int]
    lead_ns: NotRequired[int]
    wait_ns: NotRequired[dict[str, int]]
    early_end_ns: NotRequired[int]
    data_ns: NotRequired[int]
    transfer_ns: NotRequired[dict[str, int]]
    exposed_wait_ns: NotRequired[dict[str, int]]
    decided: NotRequired[bool]
    before_ns: NotRequired[dict[str, int]]
    excess_ns: NotRequired[dict[str, int]]
    inherited_ns: NotRequired[int | None]
    own_ns: NotRequired[int | None]
    algbw_bytes_per_s: NotRequired[int]
    busbw_bytes_per_s: NotRequired[int]


class StageStepFigures(TypedDict):
    """One step of one pipeline stage; see `ranks.pipeline.StageStep`."""

    name: str
    length_ns: int
    busy_ns: int
    wait_ns: int | None
    idle_ns: int
    bubble_ns: int | None


class StageFigures(TypedDict):
    """One pipeline stage; see `ranks.pipeline.Stage`."""

    rank: int
    group: str
    stage: int
    stages: int
    steps: list[StageStepFigures]
    microbatches: int | None


class JobFigures(TypedDict):
    """A job; with ranks missing nobody is blamed: `stragglers` is empty, own and inherited lateness are null."""

    world_size: int | None
    ranks_present: list[int]
    ranks_missing: int | None
    left_out: list[list[str]]
    matched_by: dict[str, str]
    common_window_ns: int | None
    clock_uncertainty_ns: int | None
    waits_fit: bool
    stragglers: list[int]
    ranks: dict[str, RankFigures]
    collectives: list[CollectiveFigures]
    pipeline: list[StageFigures]


class OwnLateness(TypedDict):
    """A late rank."""

    rank: int
    own_ns: int


_FRAME: dict[str, Any] = {"tool": dict[str, str], "sections": list[dict[str, Any]]}


def ranks_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a report on a job of many ranks."""
    keys = {
        **_FRAME,
        "kind": Literal["ranks"],
        "name": str,
        "job": JobFigures,
        "verdict": RanksVerdict,
        "metrics": dict[str, float | int | None],
        "findings": list[MergedFinding],
        "gates": list[GateResult],
        "ledger": Breakdown | None,
        "notices": list[Notice],
        "definitions": Definitions,
    }
    return contract("report on many ranks", keys)


def ranks_comparison_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a comparison of two jobs."""
    keys = {
        **_FRAME,
        "kind": Literal["ranks-comparison"],
        "names": list[str],
        "changes": list[MedianChange],
        "stragglers": list[list[OwnLateness]],
    }
    return contract("comparison of two jobs", keys)
