"""The block of a recorded loop: under the key `gpuledger` of its trace, and the whole of its run.json.

Its keys mean what they mean in :mod:`capture.metadata`; what a loop of somebody else's does not say (the
model, the precision that was asked for) is absent. Beyond those:

================= ==========================================================================================
unit              "step": latency, trace and stretch are those of a step of the loop, its input included
model             str; the name of the script
precision         str | null; what was asked for, where capture itself trained; as are the next two
amp, compile      bool
step_ended_by     str; what ended a step, such as "rec.step()" or "AdamW.step"
parameter_count   int | null; of the model: given to `record`, or what the optimizer or the outermost module holds
parameter_bytes   int | null; their memory
batch_size        int | null; samples per step, where the loop said so and they were all alike
samples_per_step  float | null; their mean over the timed steps
phases            [{name, first_step, steps}]; which steps of the loop each finished pass took, from 0
missing           {str: str}; passes that were asked for and are not there, and why
warnings          [str]; what a reader must know besides
job               {rank, world_size, local_rank, backend}
warmup, latency, profile, snapshot   null where the pass is not there
================= ==========================================================================================

The steps are not stopped for isolated ones, so `latency.request_p50_ns` is `latency.p50_ns`, and the
stretch compares a profiled step with a timed one.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from capture import environment
from capture.environment import DeviceInfo, Load, Threads, Versions
from capture.gpu_state import GpuState
from capture.jobs import Job
from capture.latency import Latency, Warmup
from capture.metadata import SCHEMA_VERSION, Tool
from capture.passes import Found, Phase
from capture.precision import PrecisionState
from capture.profile import Profile
from capture.snapshot import Snapshot


@dataclass(frozen=True)
class DuringState:
    """torch's switches at the end of the timed steps, as the loop had set them."""

    during: PrecisionState | None


@dataclass(frozen=True)
class ParameterSizes:
    """The parameters of a model.

    Attributes:
        count: How many numbers they are.
        size_bytes: Their memory.
    """

    count: int
    size_bytes: int


def size_parameters(parameters: Iterable[torch.Tensor]) -> ParameterSizes | None:
    """Count parameters, each once; None where one of them has no size yet."""
    found = {id(parameter): parameter for parameter in parameters}.values()
    try:
        return ParameterSizes(sum(p.numel() for p in found), sum(p.numel() * p.element_size() for p in found))
    except (RuntimeError, ValueError):  # lazy modules have parameters without a shape
        return None


@dataclass(frozen=True)
class Asked:
    """What is known of a loop beside its steps; of anybody else's, the name of the script."""

    model: str
    precision: str | None = None
    amp: bool = False
    compile: bool = False
    parameters: ParameterSizes | None = None


def ask_script(parameters: ParameterSizes | None = None) -> Asked:
    """The name of the script that this process runs."""
    return Asked(Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python", parameters=parameters)


@dataclass(frozen=True)
class LoopBlock:
    """The block; the module's text says what each key means."""

    schema_version: str
    tool: Tool
    recorded_at: str
    unit: str
    model: str
    precision: str | None
    amp: bool
    compile: bool
    step_ended_by: str
    parameter_count: int | None
    parameter_bytes: int | None
    batch_size: int | None
    samples_per_step: float | None
    phases: tuple[Phase, ...]
    missing: Mapping[str, str]
    warnings: tuple[str, ...]
    job: Job
    device: DeviceInfo
    versions: Versions
    precision_state: DuringState
    warmup: Warmup | None
    latency: Latency | None
    profile: Profile | None
    snapshot: Snapshot | None
    gpu_state: GpuState
    threads: Threads
    load: Load
    environment: Mapping[str, str]


def build_block(
    found: Found, job: Job, load_before: float | None, *, ended_by: str, asked: Asked | None = None
) -> LoopBlock:
    """Everything that the finished passes found, and where they ran; at least one step must have run."""
    assert found.device is not None
    assert found.watch is not None
    samples = found.samples_per_step
    asked = asked or ask_script()
    return LoopBlock(
        schema_version=SCHEMA_VERSION,
        tool=Tool("gpuledger", environment.tool_version()),
        recorded_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        unit="step",
        model=asked.model,
        precision=asked.precision,
        amp=asked.amp,
        compile=asked.compile,
        step_ended_by=ended_by,
        parameter_count=asked.parameters.count if asked.parameters else None,
        parameter_bytes=asked.parameters.size_bytes if asked.parameters else None,
        batch_size=int(samples) if samples and samples == int(samples) else None,
        samples_per_step=samples,
        phases=tuple(found.phases),
        missing=dict(found.missing),
        warnings=tuple(found.warnings),
        job=job,
        device=environment.describe_device(found.device),
        versions=environment.read_versions(found.device, found.watch.driver_version),
        precision_state=DuringState(found.state),
        warmup=found.warmup,
        latency=found.latency,
        profile=found.profile,
        snapshot=found.snapshot,
        gpu_state=found.watch.state(),
        threads=environment.read_threads(),
        load=environment.judge_load(load_before, environment.read_load_average()),
        environment=environment.read_environment(),
    )
