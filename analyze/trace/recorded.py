"""What `capture` stored in the trace, read as a stranger's words: every value checked, texts shortened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from analyze.trace.texts import sound

_TEXT_LIMIT = 80
_REASONS_LIMIT = 8
_SAMPLES_LIMIT = 100_000
_MOST_PER_SECOND = 1e15


class Recorded(Struct, frozen=True):
    """The block under the key `gpuledger`; None or empty where it does not say, or says nonsense.

    Attributes:
        unit: what latency and stretch are those of: "forward", or "step" for a loop.
        model: timm name or module:function; the script of a loop.
        batch_size: real batch size.
        parameter_count: parameters of the model.
        precision: fp32, tf32, fp16 or bf16, as asked for.
        amp: by autocast rather than by casting the model.
        compiled: by torch.compile.
        cuda_graph: replayed from a CUDA graph.
        torch: version of torch.
        latency_p50_ns: median latency without the profiler.
        request_p50_ns: median host time of one forward with its wait, without the profiler.
        throughput_samples_per_s: without the profiler.
        host_bound: the host could not feed the device, without the profiler.
        steady: the warm-up became steady.
        warmup_reason: why it ended.
        profiled_wall_ns: host time of the profiled forwards with their waits.
        profiled_steps: how many they were.
        output_finite: the output held neither inf nor nan.
        unstable: why the clocks cannot be trusted.
        busy_machine: the host's load was above its cores.
        parameter_bytes: memory of the model's parameters.
        latency_samples_ns: every latency without the profiler, in order.
        warmup_medians_ns: median latency of each ten iterations of the warm-up, in order.
    """

    unit: str
    model: str
    batch_size: int | None
    parameter_count: int | None
    precision: str
    amp: bool
    compiled: bool
    cuda_graph: bool
    torch: str
    latency_p50_ns: int | None
    request_p50_ns: int | None
    throughput_samples_per_s: float | None
    host_bound: bool | None
    steady: bool | None
    warmup_reason: str
    profiled_wall_ns: int | None
    profiled_steps: int | None
    output_finite: bool | None
    unstable: tuple[str, ...]
    busy_machine: bool
    parameter_bytes: int | None = None
    latency_samples_ns: tuple[int, ...] = ()
    warmup_medians_ns: tuple[int, ...] = ()

    @property
    def stretch(self) -> float | None:
        """How many times longer a profiled forward took, None where it was not measured."""
        if not self.profiled_wall_ns or not self.profiled_steps or not self.request_p50_ns:
            return None
        return self.profiled_wall_ns / self.profiled_steps / self.request_p50_ns

    @property
    def stretched_ns(self) -> int:
        """Host time that the profiler added to all profiled forwards, not below 0."""
        if self.stretch is None or self.profiled_wall_ns is None:
            return 0
        return max(self.profiled_wall_ns - (self.profiled_steps or 0) * (self.request_p50_ns or 0), 0)


def read_recorded(block: Mapping[str, Any] | None) -> Recorded | None:
    """The typed block, None where there is none."""
    if block is None:
        return None
    latency, warmup, profile = (_mapping(block.get(key)) for key in ("latency", "warmup", "profile"))
    reasons = _mapping(block.get("gpu_state")).get("unstable")
    return Recorded(
        unit="step" if block.get("unit") == "step" else "forward",
        model=as_text(block.get("model")),
        batch_size=as_count(block.get("batch_size")),
        parameter_count=as_count(block.get("parameter_count")),
        precision=as_text(block.get("precision")),
        amp=block.get("amp") is True,
        compiled=block.get("compile") is True,
        cuda_graph=block.get("cuda_graph") is True,
        torch=as_text(_mapping(block.get("versions")).get("torch")),
        latency_p50_ns=as_count(latency.get("p50_ns")),
        request_p50_ns=as_count(latency.get("request_p50_ns")),
        throughput_samples_per_s=as_number(latency.get("throughput_samples_per_s")),
        host_bound=_flag(latency.get("host_bound")),
        steady=_flag(warmup.get("steady")),
        warmup_reason=as_text(warmup.get("reason")),
        profiled_wall_ns=as_count(profile.get("profiled_wall_ns")),
        profiled_steps=as_count(profile.get("steps")),
        output_finite=_flag(block.get("output_finite")),
        unstable=tuple(as_text(r) for r in reasons[:_REASONS_LIMIT] if as_text(r)) if isinstance(reasons, list) else (),
        busy_machine=_mapping(block.get("load")).get("busy") is True,
        parameter_bytes=as_count(block.get("parameter_bytes")),
        latency_samples_ns=_counts(latency.get("samples_ns")),
        warmup_medians_ns=_counts(warmup.get("medians_ns")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """A text without characters that do harm, shortened; empty for anything else."""
    return sound(value)[:_TEXT_LIMIT] if isinstance(value, str) else ""


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def as_count(value: object) -> int | None:
    """A whole number above 0, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else None


def _counts(value: object) -> tuple[int, ...]:
    """Whole numbers above 0; none where one of them is something else, or where they are too many."""
    if not isinstance(value, list) or len(value) > _SAMPLES_LIMIT:
        return ()
    found = tuple(count for item in value if (count := as_count(item)) is not None)
    return found if len(found) == len(value) else ()


def as_number(value: object) -> float | None:
    """A number above 0 that is not absurd, None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 < value < _MOST_PER_SECOND else None
