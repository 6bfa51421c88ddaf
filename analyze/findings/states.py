"""The states of a device window as readers know them: the ledger's parts, grouped by what a reader would change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from analyze.metrics.vocabulary import CAUSES

if TYPE_CHECKING:
    from analyze.arrays import Int64
    from analyze.metrics import DeviceTime
    from analyze.metrics.step_ledgers import Ledger

_Ns = TypeVar("_Ns", int, "Int64")


class State(Struct, frozen=True, kw_only=True):
    """One state of the window.

    Attributes:
        id: stable name.
        label: row label.
        cause: what happens in it, as a clause: "the host was inside DataLoader work".
        idle: the device idles in it.
        verdict: the verdict that it stands for, empty for states that enter none.
        ns: its time.
    """

    id: str
    label: str
    cause: str
    idle: bool = True
    verdict: str = ""
    ns: int = 0

    @property
    def name(self) -> str:
        """The label inside a sentence: input wait."""
        label = self.label.removeprefix("Idle: ")
        return label[0].lower() + label[1:]


STATES = (
    State(
        id="computation",
        label="Computation",
        cause="kernels other than collectives ran",
        idle=False,
        verdict="compute-bound",
    ),
    State(
        id="communication",
        label="Exposed communication",
        cause="only collectives ran",
        idle=False,
        verdict="communication-bound",
    ),
    State(id="copy", label="Exposed copies", cause="only copies ran", idle=False, verdict="copy-bound"),
    State(
        id="input-wait", label="Idle: input wait", cause="the host was inside DataLoader work", verdict="input-bound"
    ),
    State(
        id="sync",
        label="Idle: sync",
        cause="the host was inside a blocking call, or launching again after one",
        verdict="sync-bound",
    ),
    State(
        id="launch-bound",
        label="Idle: launch-bound",
        cause="the host was still preparing or launching work",
        verdict="launch-bound",
    ),
    State(
        id="pause",
        label="Idle: host pause",
        cause="the host was outside ops for over 1 ms at a time: Python, or not recorded",
        verdict="host-bound",
    ),
    State(
        id="allocator",
        label="Idle: allocator",
        cause="the host was inside the driver's allocator, getting memory or giving it back",
        verdict="allocator-bound",
    ),
    State(
        id="compilation",
        label="Idle: compilation",
        cause="the host was compiling",
        verdict="compilation-bound",
    ),
    State(
        id="first-use",
        label="Idle: first use",
        cause="the host was starting up, or inside launch calls of over 1 ms (module loading, compilation)",
        verdict="first-use",
    ),
    State(id="capture", label="Idle: graph capture", cause="the host was capturing a graph", verdict="first-use"),
    State(
        id="kernel-gap",
        label="Idle: kernel gap",
        cause="the next work was queued, and the device had not started it yet",
    ),
    State(id="queued", label="Idle: queued, not started", cause="work was queued, and did not start for over 1 ms"),
    State(id="unlinked", label="Idle: launch unknown", cause="the launch of the next work was not recorded"),
    State(id="profiler", label="Idle: profiler", cause="the profiler itself was at work"),
)

# What launch-bound time is split into by `causes`: reports that lack these cannot be compared in them.
SPLIT = ("sync", "launch-bound", "pause", "allocator", "compilation", "first-use", "capture")


def idle_states(
    idle: Mapping[str, _Ns], idle_long: Mapping[str, _Ns], first_use: _Ns, causes: Mapping[str, _Ns]
) -> dict[str, _Ns]:
    """Idle time by state: of a whole window, or of each of its gaps.

    Args:
        idle: nanoseconds per idle part.
        idle_long: `launch_delay` and `device_queue` in gaps over `long_gap_ns`.
        first_use: `launch_call` in launch calls over `long_gap_ns`.
        causes: nanoseconds of launch-bound time per cause. What they leave open is launch-bound: one cause has one word
            here and in findings.

    Source: docs/definitions.md.
    """
    not_begun, queued = idle_long["launch_delay_ns"], idle_long["device_queue_ns"]
    launching = idle["host_op_ns"] + idle["host_other_ns"] + idle["host_runtime_ns"]
    launching = launching + idle["launch_call_ns"] - first_use + idle["launch_delay_ns"] - not_begun
    for cause in causes.values():
        launching = launching - cause
    return {
        "input-wait": idle["host_data_loading_ns"],
        "sync": idle["host_sync_ns"] + causes["sync_ns"],
        "launch-bound": launching,
        "pause": causes["pause_ns"],
        "allocator": causes["allocator_ns"],
        "compilation": causes["compilation_ns"],
        "first-use": first_use + causes["first_use_ns"],
        "capture": causes["capture_ns"],
        "kernel-gap": idle["device_queue_ns"] - queued,
        "queued": queued + not_begun,
        "unlinked": idle["unlinked_ns"],
        "profiler": idle["profiler_ns"],
    }


def window_states(device: DeviceTime | Ledger) -> tuple[State, ...]:
    """The states of one device, or of one of its steps, in the order of `STATES`; they sum to its window exactly."""
    causes = {**dict.fromkeys(CAUSES, 0), **device.causes}  # reports of before they were split lack them
    amounts = {
        "computation": device.computation_ns,
        "communication": device.exposed_communication_ns,
        "copy": device.exposed_copy_ns,
        **idle_states(device.idle, device.idle_long, device.first_use_ns, causes),
    }
    assert sum(amounts.values()) == device.window_ns, "states do not sum to the window"
    return tuple(replace(state, ns=amounts[state.id]) for state in STATES)
