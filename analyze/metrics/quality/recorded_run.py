"""What was asked for when the trace was recorded, and what the profiler did to it."""

from __future__ import annotations

from collections.abc import Iterator

from analyze.blocks import Section, Stat
from analyze.metrics.device_time import DeviceTime
from analyze.metrics.question import Answers, Question
from analyze.notices import Notice
from analyze.trace import Recorded
from analyze.units import duration, percent

_WORTH_TELLING = 1.1  # a profiled forward at most this much longer changes no judgement
_HOST_PARTS = ("host_data_loading_ns", "host_op_ns", "host_other_ns", "host_runtime_ns", "launch_call_ns")


def section(recorded: Recorded) -> Section:
    """What was recorded, how fast it ran without the profiler, and how far the profiler stretched it."""
    stats = [Stat("Recorded", asked_for(recorded))]
    if recorded.latency_p50_ns:
        rate = recorded.throughput_samples_per_s
        text = f"p50 {duration(recorded.latency_p50_ns)} without the profiler"
        text += f", {rate:,.4g} samples/s" if rate else ""
        text += "; host-bound" if recorded.host_bound else ""
        stats.append(Stat(recorded.unit.capitalize(), text))
    if recorded.stretch is not None and recorded.profiled_wall_ns and recorded.profiled_steps:
        each = duration(recorded.profiled_wall_ns // recorded.profiled_steps)
        alone = duration(recorded.request_p50_ns or 0)
        text = f"{each} a {recorded.unit}, {alone} without the profiler: {recorded.stretch:.2f}x"
        stats.append(Stat("Profiled", text))
    return Section("recording", "Recording", tuple(stats))


def asked_for(recorded: Recorded) -> str:
    """Model, batch and precision in a few words."""
    how = recorded.precision + (" by autocast" if recorded.amp else "")
    parts = [recorded.model, f"batch {recorded.batch_size}" if recorded.batch_size else "", how]
    parts += ["torch.compile" if recorded.compiled else "", "CUDA graph" if recorded.cuda_graph else ""]
    parts.append(f"torch {recorded.torch}" if recorded.torch else "")
    return ", ".join(part for part in parts if part) or "by gpuledger"


def recording_notices(recorded: Recorded, devices: tuple[DeviceTime, ...]) -> Iterator[Notice]:
    """What a reader has to know of the run before believing its figures."""
    if recorded.stretch is not None and recorded.stretch > _WORTH_TELLING:
        text = f"The profiler stretched this {recorded.unit} {recorded.stretch:.1f}x"
        host = max((sum(d.idle[part] for part in _HOST_PARTS) for d in devices), default=0)
        over = min(recorded.stretched_ns, host)
        if over:
            window = max(d.window_ns for d in devices)
            text += (
                f"; idle time caused by the host is overstated by up to {duration(over)}, {percent(over / window)} "
                "of the window"
            )
        yield Notice("profiler-stretch", text + ".", 1)
    for reason in recorded.unstable:
        yield Notice("clocks", f"GPU clocks during the run: {reason}.", 1)
    if recorded.steady is False:
        why = f" ({recorded.warmup_reason})" if recorded.warmup_reason else ""
        yield Notice("not-steady", f"The warm-up did not become steady{why}: the figures may differ run to run.", 1)
    if recorded.busy_machine:
        yield Notice("busy-machine", "The host was busy with other work while this was recorded.", 1)
    if recorded.output_finite is False:
        yield Notice("output-not-finite", "The model's output held inf or nan in this precision.", 1)


def _section(answers: Answers) -> Section | None:
    recorded = answers.ask(QUESTION)
    return section(recorded) if recorded else None


QUESTION = Question("recorded", lambda a: a.trace.metadata.recorded, section=_section, without_device=True)
