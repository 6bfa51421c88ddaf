"""What one recording is asked to do, and the combinations that are refused before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from capture.errors import SettingsError

Precision = Literal["fp32", "tf32", "fp16", "bf16"]
DeviceType = Literal["cuda", "cpu"]
CompileMode = Literal["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]

PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")
COMPILE_MODES: tuple[CompileMode, ...] = ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
MODES_WITH_GRAPHS: tuple[CompileMode, ...] = ("reduce-overhead", "max-autotune")
HALF_PRECISIONS: tuple[Precision, ...] = ("fp16", "bf16")

DEFAULT_MODEL = "vit_tiny_patch16_224"
DEFAULT_BATCH_SIZE = 64
DEFAULT_ITERATIONS: Mapping[DeviceType, int] = {"cuda": 100, "cpu": 20}
"""Measured iterations. A p99 needs 100; on a CPU a forward takes seconds rather than milliseconds."""

_TF32_FIRST_CAPABILITY = (8, 0)
_FORCED_TF32 = "NVIDIA_TF32_OVERRIDE"
_INDUCTOR_GRAPHS = "TORCHINDUCTOR_CUDAGRAPHS"


@dataclass(frozen=True)
class Settings:
    """One recording: one model, one precision, one batch size.

    Attributes:
        model: A timm name, or `module:function` for the user's own.
        precision: What the arithmetic is asked to be.
        batch_size: Samples per forward; None takes the example's own, or 64 where the model leaves it open.
        device: Where it runs; already resolved, never "auto".
        device_index: Which CUDA device; None is the current one.
        pretrained: Trained weights instead of random ones.
        amp: Reach fp16 or bf16 by autocast instead of by casting the model.
        channels_last: Model and input in the channels-last memory format.
        compile: The model goes through `torch.compile`.
        cuda_graph: The forward is captured once and replayed.
        cudnn_benchmark: cuDNN searches its fastest convolution during the warm-up.
        repeat: Whole measurements (model built anew, warm-up, latency).
        warmup: Exactly so many warm-up iterations; None goes on until the model is steady.
        iterations: Measured iterations; None takes the device's default.
        compile_mode: Mode of `torch.compile`; None is its default.
        steps: Forwards in the trace.
        stacks: Python stacks in the trace.
        shapes: Operand shapes in the trace.
        memory_events: Allocations and frees in the trace.
        snapshot_steps: Forwards, or steps of training, in a third pass that records the CUDA allocator's history; 0
            leaves it out.
        snapshot_weights: That history begins before the model moves to the device.
        seed: For random weights and input.
    """

    model: str = DEFAULT_MODEL
    precision: Precision = "fp32"
    batch_size: int | None = None
    device: DeviceType = "cpu"
    device_index: int | None = None
    pretrained: bool = False
    amp: bool = False
    channels_last: bool = False
    compile: bool = False
    compile_mode: CompileMode | None = None
    cuda_graph: bool = False
    cudnn_benchmark: bool = False
    repeat: int = 1
    warmup: int | None = None
    iterations: int | None = None
    steps: int = 1
    stacks: bool = False
    shapes: bool = True
    memory_events: bool = True
    snapshot_steps: int = 0
    snapshot_weights: bool = False
    seed: int = 0

    @property
    def measured_iterations(self) -> int:
        """Iterations of the latency pass."""
        return DEFAULT_ITERATIONS[self.device] if self.iterations is None else self.iterations

    @property
    def autocast(self) -> bool:
        """Whether this precision is reached by autocast: fp32 and tf32 have nothing to cast."""
        return self.amp and self.precision in HALF_PRECISIONS

    def at_batch(self, batch_size: int) -> Settings:
        """The same recording with another batch size."""
        return replace(self, batch_size=batch_size)


def check_settings(settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse what cannot be had, before a model is built.

    Raises:
        SettingsError: An option that the device lacks, or one that a variable of the environment contradicts.
    """
    if settings.device == "cpu":
        _check_cpu(settings)
    else:
        _check_forced_tf32(settings, environment)
    _check_compile(settings, environment)
    if settings.cuda_graph and settings.snapshot_steps and not settings.snapshot_weights:
        raise SettingsError(
            "--snapshot-steps with --cuda-graph would record nothing: a replayed graph allocates no memory.",
            "Add --snapshot-weights, which records how the graph is captured.",
        )


def split_device(asked: str) -> tuple[str, int | None]:
    """Take cuda:1 apart into its kind and its index.

    Raises:
        SettingsError: It is neither auto, cpu, cuda nor cuda:N.
    """
    kind, colon, index = asked.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (colon and (kind != "cuda" or not index.isdecimal())):
        raise SettingsError(f"--device {asked} is unknown.", "Use auto, cpu, cuda or cuda:N.")
    return kind, int(index) if index else None


def check_amp(precisions: tuple[Precision, ...], *, amp: bool) -> None:
    """Refuse `--amp` where no asked-for precision is a half one.

    Raises:
        SettingsError: Autocast has nothing to cast to.
    """
    if amp and not set(precisions) & set(HALF_PRECISIONS):
        raise SettingsError("--amp needs a half precision to cast to.", "Add --precision fp16 or --precision bf16.")


def check_capability(settings: Settings, capability: tuple[int, int], name: str) -> None:
    """Refuse tf32 on a GPU that has no tensor cores for it.

    Raises:
        SettingsError: The GPU is older than Ampere; it would silently compute in fp32.
    """
    if settings.precision == "tf32" and capability < _TF32_FIRST_CAPABILITY:
        raise SettingsError(
            f"{name} (compute capability {capability[0]}.{capability[1]}) has no TF32.",
            "Use --precision fp32 or --precision fp16.",
        )


def _check_cpu(settings: Settings) -> None:
    refused = {
        "--precision tf32": (settings.precision == "tf32", "TF32 is a mode of NVIDIA's tensor cores"),
        "--cuda-graph": (settings.cuda_graph, "CUDA graphs exist only on a CUDA device"),
        "--snapshot-weights": (settings.snapshot_weights, "only the CUDA allocator records its history"),
        "--snapshot-steps": (settings.snapshot_steps > 0, "only the CUDA allocator records its history"),
        "--cudnn-benchmark": (settings.cudnn_benchmark, "cuDNN runs only on a CUDA device"),
    }
    for option, (asked, reason) in refused.items():
        if asked:
            raise SettingsError(
                f"{option} cannot be had on the CPU: {reason}.",
                "Leave it out, or run on a machine with an NVIDIA GPU.",
            )


def _check_compile(settings: Settings, environment: Mapping[str, str]) -> None:
    if settings.compile_mode is not None and not settings.compile:
        raise SettingsError(f"--compile-mode {settings.compile_mode} compiles nothing by itself.", "Add --compile.")
    if not (settings.cuda_graph and settings.compile):
        return
    # Inductor would capture graphs of its own, and a capture within a capture fails.
    if settings.compile_mode in MODES_WITH_GRAPHS:
        raise SettingsError(
            f"--compile-mode {settings.compile_mode} captures CUDA graphs itself, so it excludes --cuda-graph.",
            "Leave out one of the two.",
        )
    if environment.get(_INDUCTOR_GRAPHS) == "1":
        raise SettingsError(
            f"{_INDUCTOR_GRAPHS}=1 in the environment makes --compile capture CUDA graphs itself, so it excludes "
            "--cuda-graph.",
            f"Unset {_INDUCTOR_GRAPHS}, or leave out --cuda-graph.",
        )


def _check_forced_tf32(settings: Settings, environment: Mapping[str, str]) -> None:
    # The libraries obey this variable over torch's switches, so a run would be labelled as what it was not.
    forced = environment.get(_FORCED_TF32)
    contradicted = {"fp32": "1", "tf32": "0"}.get(settings.precision)
    if forced is not None and forced == contradicted:
        raise SettingsError(
            f"{_FORCED_TF32}={forced} in the environment contradicts --precision {settings.precision}.",
            f"Unset {_FORCED_TF32} and run again.",
        )
