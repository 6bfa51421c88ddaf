"""Every number that changes a result: its name, its unit and its reason. Echoed in each report."""

from __future__ import annotations

from msgspec import Struct

OP_SORTS = ("self_device", "total_device", "self_cpu", "total_cpu", "calls", "self_cpu_memory", "cpu_memory")


class Definitions(Struct, frozen=True):
    """What the figures mean. Reports with different definitions are not comparable.

    Attributes:
        long_gap_ns: a gap longer than this cannot be launch or kernel-to-kernel cost: `device_queue` and
            `launch_delay` in it are work that was queued and not started, and a single launch call this
            long is a first use (module load, compilation).
        short_kernel_ns: kernels below this are counted as short; a launch costs about as much host time.
        complete_share: below this share of launch calls with a recorded activity, the device records
            are incomplete and no advice on idle time is given. It is 1 on every complete trace seen.
        unexplained_share: above this share of the window in queued-but-not-started time, no idle
            advice is given.
        headline_share: a state with at least this share of the window names the verdict; below it
            the verdict is mixed.
        final_sync_slack_ns: the profiler's own last synchronisation ends at most this long before
            the end of the profiler span (measured 5 us to 4.8 ms on 35 files, 33 of them below 1 ms).
        top: how many gaps, calls and kernels the report lists.
    """

    long_gap_ns: int = 1_000_000
    short_kernel_ns: int = 10_000
    complete_share: float = 0.95
    unexplained_share: float = 0.05
    headline_share: float = 0.60
    final_sync_slack_ns: int = 1_000_000
    top: int = 10


class OpsView(Struct, frozen=True):
    """How ops are listed.

    Attributes:
        sort: one of `OP_SORTS`; empty for device time where there is some, host time otherwise.
        by_shape: calls with other input shapes make another row.
    """

    sort: str = ""
    by_shape: bool = False
