"""What a planted run is like: its program, its size, its host, and how much each cause takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tests.synthetic.gpu import Draw, Host

FAMILIES = ("transformer", "convolutions", "training", "deep")


@dataclass(frozen=True)
class Plan:
    """What one run is like; everything follows from these.

    Attributes:
        seed: of all draws.
        causes: what is planted.
        times: by how much the drawn amount of a cause is multiplied, where it would cost too little.
    """

    seed: int
    causes: tuple[str, ...] = ()
    times: tuple[tuple[str, float], ...] = ()

    @cached_property
    def draw(self) -> Draw:
        return Draw(self.seed)

    @cached_property
    def family(self) -> str:
        choice = FAMILIES[self.draw.between(-0.5, 3.49, "family")]
        if {"launch-bound", "small-kernels", "small-batch"} & set(self.causes):
            return "transformer"
        if "unfused-attention" in self.causes and choice != "training":
            return "transformer"
        if "exposed-communication" in self.causes and choice in ("convolutions", "deep"):
            return "training"
        return choice

    @cached_property
    def steps(self) -> int:
        return 11 if self.family == "deep" else self.draw.between(3, 6, "steps")

    @cached_property
    def layers(self) -> int:
        return 24 if self.family == "deep" else self.draw.between(5, 9, "layers")

    @cached_property
    def kernel_ns(self) -> int:
        if "launch-bound" in self.causes:
            return self.draw.between(3_500, 9_000, "kernel")
        return self.draw.between(45_000, 95_000, "kernel")

    @cached_property
    def step_ns(self) -> int:
        """Rough time of the device in a step without causes."""
        return self.kernel_ns * self.layers * {"training": 14, "convolutions": 3}.get(self.family, 5)

    @cached_property
    def stacks(self) -> bool:
        return self.draw.unit("stacks") < 0.35

    @cached_property
    def pinned(self) -> bool:
        """Whether results are read through pinned memory, as newer versions of PyTorch do for `.item()`."""
        return self.draw.unit("pinned") < 0.4

    @cached_property
    def host(self) -> Host:
        if "launch-bound" in self.causes:
            return Host(4_200, self.draw.between(7_000, 12_000, "host"), 2_500, self.draw.between(6_000, 12_000, "py"))
        d = self.draw
        return Host(d.between(2_800, 4_600, "a"), d.between(2_500, 4_500, "b"), 1_300, d.between(2_500, 5_500, "c"))

    def amount(self, low: float, high: float, cause: str) -> float:
        """How much of something a cause takes."""
        return dict(self.times).get(cause, 1.0) * (low + (high - low) * self.draw.unit("amount", cause))

    def more(self, cause: str) -> Plan:
        """The same plan with more of one cause."""
        times = dict(self.times)
        return replace(self, times=tuple((times | {cause: 1.6 * times.get(cause, 1.0)}).items()))
