"""What a recorded loop says at its end, on one screen."""

from __future__ import annotations

from pathlib import Path

from capture.latency import NS_PER_S
from capture.loop_block import LoopBlock
from capture.output import RUN_NAME, TRACE_NAME
from capture.stability import judge_stability
from capture.summary import (
    describe_first,
    describe_latency,
    describe_warmup,
    file_text,
    format_number,
    list_conditions,
    row,
)


def describe(block: LoopBlock, folder: Path) -> str:
    """A line per question: how fast, how steady, how far stretched, what is missing, which files, what next."""
    lines = [_headline(block)]
    lines += row("Step", f"ends with {block.step_ended_by}")
    if block.latency is not None:
        lines += row("Latency", describe_latency(block.latency))
        lines += row("Stability", judge_stability(block.latency.samples_ns).words)
        rate = block.latency.throughput_samples_per_s
        steps = f"{format_number(NS_PER_S / block.latency.p50_ns)} steps/s"
        lines += row("Throughput", f"{format_number(rate)} samples/s, {steps}" if rate else steps)
        if block.latency.peak_allocated_bytes is not None:
            lines += row("Peak memory", f"{format_number(block.latency.peak_allocated_bytes / 2**20)} MiB allocated")
    if block.warmup is not None:
        lines += row("Warm-up", *describe_warmup(block.warmup, "steps"))
        warm_ns = block.latency.p50_ns if block.latency else block.warmup.median_ns
        if warm_ns:
            lines += row("First step", describe_first(block.warmup, warm_ns))
    if block.profile is not None:
        lines += row("Trace", _trace_text(block))
    lines += row("Missing", *[f"{name}: {reason}" for name, reason in block.missing.items()])
    lines += row("Warnings", *_warnings(block))
    names = [path.name for path in sorted(folder.iterdir())] if folder.is_dir() else [RUN_NAME]
    lines += row("Files", *[file_text(folder / name) for name in names if not name.startswith(".")])
    if block.profile is not None:
        lines += row("Next", f"analyze {folder / TRACE_NAME}")
    return "\n".join(lines)


def _headline(block: LoopBlock) -> str:
    parts = [block.model]
    parts += [block.precision + (" autocast" if block.amp else "")] if block.precision else []
    parts += ["compile"] if block.compile else []
    if block.samples_per_step:
        parts.append(f"{format_number(block.samples_per_step)} samples a step")
    if block.job.distributed:
        parts.append(f"rank {block.job.rank} of {block.job.world_size}")
    return f"{', '.join(parts)} on {block.device.name} ({block.device.type}), torch {block.versions.torch}"


def _trace_text(block: LoopBlock) -> str:
    profile = block.profile
    assert profile is not None
    kernels = f"{profile.kernel_count:,} kernels" if block.device.type == "cuda" else "no kernels (CPU)"
    steps = "1 step" if profile.steps == 1 else f"{profile.steps} steps"
    text = f"{steps}, {profile.activities.get('cpu_op', 0):,} ops, {kernels}"
    if block.latency is not None:
        stretch = profile.profiled_wall_ns / profile.steps / block.latency.p50_ns
        text += f"; {stretch:.2f}x as long when profiled"
    return text


def _warnings(block: LoopBlock) -> list[str]:
    warnings = list(block.warnings)
    if block.warmup is not None and not block.warmup.steady:
        words = "steadiness unknown" if block.warmup.steady is None else "not steady"
        warnings.append(f"{words}: {block.warmup.reason}")
    return warnings + list_conditions(block)
