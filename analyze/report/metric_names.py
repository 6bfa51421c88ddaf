"""The metrics that gates can name: unit and polarity of each. A test holds the list against a real report."""

from __future__ import annotations

from typing import NamedTuple


class Named(NamedTuple):
    """What a metric is: its unit and whether lower or higher is better."""

    unit: str
    better: str = "lower"


# Of a job of many ranks; `min_busbw:KIND` is there per kind of collective.
RANK_METRICS: dict[str, Named] = {
    "exposed_wait_share": Named("share"),
    "missing_ranks": Named("count"),
    "rank_spread": Named("share"),
    "straggler_own_share": Named("share"),
}
MIN_BUSBW = "min_busbw"
METRICS: dict[str, Named] = {
    "blocked_time": Named("ns"),
    "blocking_calls": Named("count"),
    "busy_share": Named("share", "higher"),
    "computation_share": Named("share", "higher"),
    "exposed_communication_share": Named("share"),
    "exposed_copy_share": Named("share"),
    "exposed_sync_time": Named("ns"),
    "idle_allocator_share": Named("share"),
    "idle_capture_share": Named("share"),
    "idle_compilation_share": Named("share"),
    "idle_first_use_share": Named("share"),
    "idle_input_wait_share": Named("share"),
    "idle_kernel_gap_share": Named("share"),
    "idle_launch_bound_share": Named("share"),
    "idle_pause_share": Named("share"),
    "idle_profiler_share": Named("share"),
    "idle_queued_share": Named("share"),
    "idle_share": Named("share"),
    "idle_sync_share": Named("share"),
    "idle_unlinked_share": Named("share"),
    "launch_latency_p50": Named("ns"),
    "launches": Named("count"),
    "memory_peak": Named("bytes"),
    "step_time": Named("ns"),
    "window_time": Named("ns"),
}


def named(name: str) -> Named | None:
    """What a metric of a trace or of a job is, None for an unknown one."""
    if name.partition(":")[0] == MIN_BUSBW and name.partition(":")[2]:
        return Named("per_s", "higher")
    return METRICS.get(name) or RANK_METRICS.get(name)
