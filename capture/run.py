"""The order of events of one recording: build, warm up, measure, profile, snapshot, write.

Latency, trace and snapshot are three passes: the profiler and the allocator's history both slow the host.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from capture import environment, latency, output
from capture.device import Device, Forward, open_device
from capture.errors import CaptureError, first_line
from capture.forward import explain_failure, naming_failures, place
from capture.gpu_state import GpuWatch, open_watch
from capture.latency import Latency, Measurement
from capture.metadata import (
    SCHEMA_VERSION,
    Block,
    PrecisionStates,
    Repeat,
    Tool,
    write_json,
    write_trace,
)
from capture.models import LoadedModel, all_finite, load_model
from capture.precision import (
    DTYPES,
    PrecisionState,
    arithmetic,
    check_state,
    check_supported,
    check_tf32,
    cudnn_search,
    read_state,
)
from capture.profile import Profile, record_trace
from capture.settings import Settings, check_capability, check_settings
from capture.snapshot import Snapshot, record_snapshot

Tell = Callable[[str], None]
"""Called with the name of each stage as it begins."""


def say_nothing(_stage: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Recording:
    """A finished recording.

    Attributes:
        folder: Where its files are.
        files: Their names, the trace first.
        block: What run.json and the trace's key hold.
    """

    folder: Path
    files: tuple[str, ...]
    block: Block


@dataclass(frozen=True)
class Bench:
    """What every pass of a recording works with."""

    settings: Settings
    device: Device
    watch: GpuWatch
    info: environment.DeviceInfo
    tell: Tell


@dataclass(frozen=True)
class _Measured:
    """A placed model that was warmed up and timed, and what came of it."""

    forward: Forward
    measurement: Measurement
    output_finite: bool | None


@dataclass(frozen=True)
class _Passes:
    """Everything that the passes of one recording found out."""

    loaded: LoadedModel
    measurements: tuple[Measurement, ...]
    output_finite: bool | None
    dtype: str
    states: PrecisionStates
    profile: Profile
    snapshot: Snapshot | None
    missing: Mapping[str, str]


def open_bench(settings: Settings, tell: Tell = say_nothing, device: Device | None = None) -> Bench:
    """Open the device and refuse what it cannot do, before a model is built.

    Raises:
        SettingsError: The device lacks what was asked for.
    """
    check_settings(settings)
    device = device or open_device(settings.device, settings.device_index)
    info = environment.describe_device(device)
    if info.capability is not None:
        if torch.version.hip is None:  # ROCm reports a gfx90a as (9, 0), which has no TF32
            check_capability(settings, info.capability, info.name)
        check_tf32(settings.precision, info.name)
    check_supported(settings)
    return Bench(settings, device, open_watch(device, environment.device_uuid(device)), info, tell)


def capture_run(
    settings: Settings,
    folder: Path,
    *,
    force: bool = False,
    tell: Tell = say_nothing,
    device: Device | None = None,
) -> Recording:
    """Make one recording into a folder: trace.json.gz, run.json and, where asked for, snapshot.pickle.

    Args:
        settings: What to record.
        folder: Its own folder; left as it was when the recording fails or is interrupted.
        force: Overwrite an older recording there.
        tell: Called with the name of each stage.
        device: Where it runs; None opens the one that the settings name.

    Raises:
        CaptureError: With one sentence and a hint, for everything that is not a bug.
    """
    bench = open_bench(settings, tell, device)
    output.check_target(folder, force=force)
    with output.staged(folder) as staging, _explaining(settings):
        block = _record(bench, staging)
        tell("writing")
        exported = staging / output.EXPORTED_NAME
        write_trace(exported, block, staging / output.TRACE_NAME)
        exported.unlink()
        write_json(block, staging / output.RUN_NAME)
    names = [output.TRACE_NAME, output.RUN_NAME, *([block.snapshot.file] if block.snapshot else [])]
    return Recording(folder, tuple(names), block)


def measure_latency(settings: Settings, tell: Tell = say_nothing, device: Device | None = None) -> Measurement:
    """Only build, warm-up and latency.

    Raises:
        CaptureError: As :func:`capture_run`.
    """
    bench = open_bench(settings, tell, device)
    with _explaining(settings):
        return _measure_alone(bench)


def repeat_spread(measurements: Sequence[Measurement]) -> float | None:
    """(Largest - smallest) / smallest of the repeats' medians; None for fewer than two."""
    medians = [measurement.latency.p50_ns for measurement in measurements]
    if len(medians) < 2 or not min(medians):
        return None
    return (max(medians) - min(medians)) / min(medians)


def shorten(measurement: Measurement) -> Repeat:
    """A whole measurement without its samples."""
    timed = measurement.latency
    return Repeat(
        p50_ns=timed.p50_ns,
        mean_ns=timed.mean_ns,
        stdev_ns=timed.stdev_ns,
        min_ns=timed.min_ns,
        max_ns=timed.max_ns,
        throughput_samples_per_s=timed.throughput_samples_per_s,
        warmup_iterations=measurement.warmup.iterations,
        steady=measurement.warmup.steady,
    )


def _record(bench: Bench, staging: Path) -> Block:
    load_before = environment.read_load_average()
    passes = _run_passes(bench, staging)
    settings, loaded, last = bench.settings, passes.loaded, passes.measurements[-1]
    return Block(
        schema_version=SCHEMA_VERSION,
        tool=Tool("gpuledger", environment.tool_version()),
        recorded_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        model=settings.model,
        model_source=loaded.source,
        pretrained=settings.pretrained,
        parameter_count=loaded.parameter_count,
        seed=settings.seed,
        batch_size=loaded.batch_size,
        input_shape=loaded.input_shapes[0],
        input_shapes=loaded.input_shapes,
        dtype=passes.dtype,
        precision=settings.precision,
        amp=settings.autocast,
        autocast_dtype=_dtype_name(DTYPES[settings.precision]) if settings.autocast else None,
        compile=settings.compile,
        compile_mode=settings.compile_mode,
        cuda_graph=settings.cuda_graph,
        channels_last=settings.channels_last,
        cudnn_benchmark=settings.cudnn_benchmark,
        output_finite=passes.output_finite,
        device=bench.info,
        versions=environment.read_versions(bench.device, bench.watch.driver_version),
        precision_state=passes.states,
        warmup=last.warmup,
        latency=last.latency,
        repeats=tuple(shorten(measurement) for measurement in passes.measurements),
        repeat_p50_spread=repeat_spread(passes.measurements),
        profile=passes.profile,
        snapshot=passes.snapshot,
        missing=passes.missing,
        gpu_state=bench.watch.state(),
        threads=environment.read_threads(),
        load=environment.judge_load(load_before, environment.read_load_average()),
        environment=environment.read_environment(),
    )


def _run_passes(bench: Bench, staging: Path) -> _Passes:
    settings, device = bench.settings, bench.device
    earlier = [_measure_alone(bench) for _ in range(settings.repeat - 1)]
    loaded = _build(bench)
    before = read_state()
    with _conditions(settings):
        measured = _measure(bench, loaded)
        # Read after the model ran: its own code may have set a switch too.
        states = PrecisionStates(before, read_state())
        bench.tell("profiling")
        profile = record_trace(measured.forward, device, settings, staging / output.EXPORTED_NAME)
        measurement, output_finite, forwards = (
            measured.measurement,
            measured.output_finite,
            [measured.forward],
        )
        del measured  # the snapshot pass may have to free the placed model first
        snapshot, missing = _try_snapshot(bench, loaded, forwards, staging) if settings.snapshot_steps else (None, {})
    return _Passes(
        loaded=loaded,
        measurements=(*earlier, measurement),
        output_finite=output_finite,
        dtype=_model_dtype(loaded),
        states=states,
        profile=profile,
        snapshot=snapshot,
        missing=missing,
    )


def _measure_alone(bench: Bench) -> Measurement:
    loaded = _build(bench)
    with _conditions(bench.settings):
        return _measure(bench, loaded).measurement


def _build(bench: Bench) -> LoadedModel:
    bench.tell("building the model")
    # An earlier model, garbage by now, would still count in this one's peak of reserved memory.
    bench.device.release_memory()
    return load_model(bench.settings)


@contextmanager
def _conditions(settings: Settings) -> Iterator[PrecisionState]:
    with ExitStack() as stack:
        state = stack.enter_context(arithmetic(settings.precision))
        if settings.device == "cuda":
            check_state(settings.precision, state)
        stack.enter_context(cudnn_search(enabled=settings.cudnn_benchmark))
        stack.enter_context(torch.inference_mode())
        yield state


def _measure(bench: Bench, loaded: LoadedModel) -> _Measured:
    settings, device = bench.settings, bench.device
    bench.tell("compiling, first call" if settings.compile else "first call")
    with naming_failures(settings):
        forward = place(loaded, settings, device)
        begin_ns = time.perf_counter_ns()
        result = forward()
        device.synchronize()
    first_call_ns = time.perf_counter_ns() - begin_ns
    finite = all_finite(result)
    del result
    bench.watch.mark_before()
    bench.tell("warming up")
    warmup = latency.warm_up(
        lambda iterations: latency.run_window(forward, device, iterations),
        fixed_iterations=settings.warmup,
        first_call_ns=first_call_ns,
    )
    bench.tell("measuring")
    timed = _measure_warm(bench, forward, loaded.batch_size)
    return _Measured(forward, Measurement(warmup, timed, loaded.batch_size), finite)


def _measure_warm(bench: Bench, forward: Forward, batch_size: int) -> Latency:
    device = bench.device
    device.reset_peak_memory()
    with bench.watch.measuring():
        window = latency.run_window(forward, device, bench.settings.measured_iterations)
    if device.type == "cpu":  # every call is its own wait: the loop itself is the isolated one
        isolated = latency.Isolated(window.samples_ns, window.samples_ns)
    else:
        isolated = latency.run_isolated(forward, device)
    return latency.summarize(window, isolated, batch_size, device)


def _try_snapshot(
    bench: Bench, loaded: LoadedModel, forwards: list[Forward], staging: Path
) -> tuple[Snapshot | None, dict[str, str]]:
    """The snapshot, or why there is none: latency and trace are finished, and nothing here is worth losing them."""
    try:
        return _snapshot(bench, loaded, forwards, staging), {}
    except Exception as error:  # noqa: BLE001 - torch's functions behind it are private and refuse in many ways
        (staging / output.SNAPSHOT_NAME).unlink(missing_ok=True)
        explained = explain_failure(error, bench.settings)
        return None, {"snapshot": explained.message if explained else first_line(error)}


def _snapshot(bench: Bench, loaded: LoadedModel, forwards: list[Forward], staging: Path) -> Snapshot:
    settings, device = bench.settings, bench.device
    bench.tell("recording memory")
    path = staging / output.SNAPSHOT_NAME
    if not settings.snapshot_weights:
        return record_snapshot(forwards.pop, device, path, steps=settings.snapshot_steps)
    with torch.inference_mode(mode=False):
        loaded.module.to("cpu")
    forwards.clear()
    device.release_memory()
    return record_snapshot(
        lambda: place(loaded, settings, device), device, path, starts="weights", steps=settings.snapshot_steps
    )


@contextmanager
def _explaining(settings: Settings) -> Iterator[None]:
    try:
        yield
    except CaptureError:
        raise
    except Exception as error:
        explained = explain_failure(error, settings)
        if explained is None:
            raise
        raise explained from error


def _model_dtype(loaded: LoadedModel) -> str:
    for parameter in loaded.module.parameters():
        if parameter.is_floating_point():
            return _dtype_name(parameter.dtype)
    return _dtype_name(torch.get_default_dtype())


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
