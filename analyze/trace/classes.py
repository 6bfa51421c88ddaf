"""Which table a row belongs to: by its category, over all PyTorch versions and vendors."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache


class RowKind(Enum):
    """The tables of a trace, and the rows that belong to none."""

    OP = "op"
    API = "api"
    ACTIVITY = "activity"
    RANGE = "range"
    FRAME = "frame"
    OVERHEAD = "overhead"
    SPAN = "span"
    MEMORY = "memory"
    META = "meta"
    IGNORED = "ignored"
    LOST = "lost"
    UNKNOWN = "unknown"


_ACTIVITY_KINDS = {
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "memcpy": "memcpy",
    "gpu_memcpy": "memcpy",
    "memset": "memset",
    "gpu_memset": "memset",
}

_API = (
    "runtime cuda_runtime cuda_driver xpu_runtime xpu_driver mtia_runtime privateuse1_runtime privateuse1_driver "
    "glow_runtime hpu_op"
)
_VIEWS = (
    "gpu_user_annotation cuda_sync xpu_sync cuda_event cuda_profiler_range hardware_counters mtia_counters "
    "xpu_scope_profiler mtia_insight collective_comm user cpu_instant_event"
)
_CATEGORIES: dict[str, RowKind] = {
    "operator": RowKind.OP,
    "cpu_op": RowKind.OP,
    "user_annotation": RowKind.RANGE,
    **dict.fromkeys(_ACTIVITY_KINDS, RowKind.ACTIVITY),
    "overhead": RowKind.OVERHEAD,
    "python_function": RowKind.FRAME,
    "trace": RowKind.SPAN,
    **dict.fromkeys(_API.split(), RowKind.API),
    **dict.fromkeys(_VIEWS.split(), RowKind.IGNORED),
}


def activity_kind(cat: str) -> str:
    """Kernel, memcpy or memset: what the category of an activity row says it is."""
    return _ACTIVITY_KINDS[cat.lower()]


TRACK_CATEGORY = "gpuledger"  # of all rows that `analyze export` adds to a trace
TRACKS = "added by analyze export"
FLOWS = "flow arrows"
_FLOWS = frozenset(
    ("ac2g", "fwdbwd", "async_cpu_to_gpu", "async_gpu", "async", "launch", "forward_backward", "fwd_bwd", "cpu_to_cuda")
)
MEMORY_NAME, MEMORY_PHASES = "[memory]", ("i", "I", "X")
COUNTER_RANGES = "cuda_profiler_range"
NO_FIGURE = (FLOWS, "metadata", "counters")  # whatever category such a row has
LEGACY_PID = "CPU functions"


@lru_cache(maxsize=256)
def table_of(cat: str) -> RowKind:
    """The table of a category's complete events; `IGNORED` for flows, `UNKNOWN` where the category does not say."""
    low = cat.lower()
    if low in _FLOWS:
        return RowKind.IGNORED
    row = _CATEGORIES.get(low, RowKind.UNKNOWN)
    return RowKind.UNKNOWN if row is RowKind.IGNORED else row


def row_of(ph: str, cat: str, name: str, pid: object) -> RowKind:
    """The table of a row, or why it has none.

    Views of work that other rows already hold (annotations on the GPU, synchronisation views) have no table.
    Rows without a category are ops only where the exporter without Kineto wrote them.
    """
    if ph == "X":
        if name == MEMORY_NAME:
            return RowKind.MEMORY
        if not cat and pid == LEGACY_PID:
            return RowKind.OP
        return _CATEGORIES.get(cat.lower(), RowKind.UNKNOWN)
    if ph in MEMORY_PHASES and name == MEMORY_NAME:
        return RowKind.MEMORY
    if ph == "M":
        return RowKind.META
    return RowKind.IGNORED


_TABLES = frozenset(
    (RowKind.OP, RowKind.API, RowKind.ACTIVITY, RowKind.RANGE, RowKind.FRAME, RowKind.OVERHEAD, RowKind.SPAN)
)
_KINDS = {
    "X": "views of other rows",
    **dict.fromkeys("stf", FLOWS),
    "M": "metadata",
    "C": "counters",
    **dict.fromkeys("iIR", "instants"),
    **dict.fromkeys("BE", "rows that begin or end something (B, E)"),
    **dict.fromkeys("bneSTpF", "asynchronous rows"),
    **dict.fromkeys("PNODvVcLrga(),", "rows of other kinds"),
}


def kind_of(ph: str) -> str:
    """What a row that no figure needs is, by its phase."""
    return _KINDS.get(ph, "rows of other kinds")


@lru_cache(maxsize=256)
def unused_kind(ph: str, cat: str) -> str:
    """What a row is that no figure needs whatever else it holds, empty for other rows."""
    if cat.lower() == COUNTER_RANGES:
        return COUNTER_RANGES
    if ph == "X":
        return kind_of(ph) if _CATEGORIES.get(cat.lower()) is RowKind.IGNORED else ""
    if ph == "M" or not is_phase(ph) or (belongs(cat) and kind_of(ph) not in NO_FIGURE):
        return ""
    return kind_of(ph)


def is_phase(ph: str) -> bool:
    """Whether the format knows a phase."""
    return ph in _KINDS


def belongs(cat: str) -> bool:
    """Whether the complete rows of a category are in some table."""
    return _CATEGORIES.get(cat.lower(), RowKind.UNKNOWN) in _TABLES


def device_category(name: str) -> str:
    """The category of a row that runs on a device, by its name."""
    low = name.lower()
    return next((kind for kind in ("memcpy", "memset") if low.startswith(kind)), "kernel")
