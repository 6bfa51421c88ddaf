"""Warm-up until steady, then latency without the profiler: launched back to back, one wait at the end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from capture.device import Device, Forward

NS_PER_S = 1_000_000_000

WINDOW_ITERATIONS = 10
"""Iterations per window; two windows are compared."""
STEADY_MEDIAN_SHIFT = 0.02
"""Largest relative difference between the medians of two consecutive windows that counts as steady."""
STEADY_SPREAD = 0.05
"""Largest interquartile range of a window, relative to its median, that counts as steady."""
LEAST_WARMUP_NS = NS_PER_S // 2
"""A GPU needs this much work before its clock has risen."""
MOST_WARMUP_ITERATIONS = 200
MOST_WARMUP_NS = 10 * NS_PER_S
"""The cap: some machines never become steady, and the verdict says so."""

P99_LEAST_SAMPLES = 100
ISOLATED_ITERATIONS = 10
HOST_BOUND_SHARE = 0.95
"""From this share of the latency spent on launching, the device waits for the host."""


@dataclass(frozen=True)
class Warmup:
    """What the warm-up did.

    Attributes:
        iterations: Forwards run, the first call not counted.
        duration_ns: Host time they took.
        first_call_ns: Host time of the first call and its wait: libraries load, kernels are chosen.
        steady: Whether the last two windows agreed; None where too few iterations ran to say.
        reason: Why it stopped, in words.
        cv: Standard deviation over mean of the last window; None with fewer than two iterations.
        median_ns: Median of the last window; None without iterations.
        medians_ns: Median of each window of 10 in order: how the model became warm.
    """

    iterations: int
    duration_ns: int
    first_call_ns: int
    steady: bool | None
    reason: str
    cv: float | None
    median_ns: int | None
    medians_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Latency:
    """Latency of one forward, measured without the profiler. Times in nanoseconds.

    Attributes:
        n: Measured iterations.
        mean_ns: Arithmetic mean.
        p50_ns: Median; percentiles are interpolated linearly between ranks.
        p90_ns: 90th percentile.
        p99_ns: 99th percentile; None below 100 samples.
        min_ns: Fastest iteration.
        max_ns: Slowest iteration.
        stdev_ns: Sample standard deviation; None for one sample.
        samples_ns: Every iteration in order.
        enqueue_p50_ns: Median host time to launch one forward on an idle device; None on the CPU and in a loop.
        request_p50_ns: Median host time of one isolated forward with its wait, what a single caller sees; in a
            loop, where no step is isolated, the median itself.
        wall_ns: Host time of the whole back-to-back loop with its one wait.
        throughput_samples_per_s: Real batch size over the median latency; None where nobody counts
            samples.
        host_bound: Whether launching takes about as long as the forward; None on the CPU and in a loop.
        peak_allocated_bytes: Peak of the caching allocator; None on the CPU.
        peak_reserved_bytes: Peak of the memory the allocator held; None on the CPU.
        clock: "cuda_events" or "perf_counter".
    """

    n: int
    mean_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int | None
    min_ns: int
    max_ns: int
    stdev_ns: int | None
    samples_ns: tuple[int, ...]
    enqueue_p50_ns: int | None
    request_p50_ns: int
    wall_ns: int
    throughput_samples_per_s: float | None
    host_bound: bool | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    clock: str


@dataclass(frozen=True)
class Measurement:
    """One whole measurement: the model built anew, warmed up and timed.

    Attributes:
        batch_size: Samples per forward, read from the input itself.
    """

    warmup: Warmup
    latency: Latency
    batch_size: int


@dataclass(frozen=True)
class Window:
    """A few iterations launched without a wait between them.

    Attributes:
        samples_ns: Time of each on the device's time line.
        wall_ns: Host time until the one wait at the end returned.
    """

    samples_ns: tuple[int, ...]
    wall_ns: int


@dataclass(frozen=True)
class Isolated:
    """Forwards with a wait after each: host times to launch, and until the wait returned."""

    enqueue_ns: tuple[int, ...]
    request_ns: tuple[int, ...]


def percentile_ns(samples_ns: Sequence[int], share: float) -> int:
    """Percentile by linear interpolation between the closest ranks (numpy's default), in whole ns.

    Args:
        samples_ns: At least one sample, in any order.
        share: 0.5 for the median.
    """
    ordered = sorted(samples_ns)
    rank = share * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return round(ordered[below] + (ordered[above] - ordered[below]) * (rank - below))


def run_window(forward: Forward, device: Device, iterations: int) -> Window:
    """Launch so many forwards without waiting between them, wait once, then read the times."""
    marks = device.marks(2 * iterations)
    begin_ns = time.perf_counter_ns()
    for index in range(iterations):
        marks.set(2 * index)
        forward()
        marks.set(2 * index + 1)
    device.synchronize()
    wall_ns = time.perf_counter_ns() - begin_ns
    samples = tuple(marks.elapsed_ns(2 * index, 2 * index + 1) for index in range(iterations))
    return Window(samples, wall_ns)


def run_isolated(forward: Forward, device: Device, iterations: int = ISOLATED_ITERATIONS) -> Isolated:
    """Forwards one at a time on an idle device: a full launch queue would look like a slow host."""
    enqueue_ns, request_ns = [], []
    for _ in range(iterations):
        begin_ns = time.perf_counter_ns()
        forward()
        enqueue_ns.append(time.perf_counter_ns() - begin_ns)
        device.synchronize()
        request_ns.append(time.perf_counter_ns() - begin_ns)
    return Isolated(tuple(enqueue_ns), tuple(request_ns))


def is_steady(earlier_ns: Sequence[int], later_ns: Sequence[int]) -> bool:
    """Whether two consecutive windows agree: medians within 2 %, neither spread over 5 % of its median."""
    earlier, later = percentile_ns(earlier_ns, 0.5), percentile_ns(later_ns, 0.5)
    if not earlier or not later:
        return False
    if abs(later - earlier) / earlier >= STEADY_MEDIAN_SHIFT:
        return False
    return all(_relative_spread(window) < STEADY_SPREAD for window in (earlier_ns, later_ns))


def warm_up(
    run: Callable[[int], Window],
    *,
    fixed_iterations: int | None = None,
    first_call_ns: int = 0,
    most_iterations: int = MOST_WARMUP_ITERATIONS,
) -> Warmup:
    """Run windows until two in a row agree, or until the cap; or exactly so many iterations.

    Args:
        run: Runs a window of so many iterations.
        fixed_iterations: Run exactly so many and only judge them.
        first_call_ns: Recorded with the rest.
        most_iterations: The cap.
    """
    if fixed_iterations is not None:
        return _warm_up_fixed(run, fixed_iterations, first_call_ns)
    windows: list[Window] = []
    while True:
        windows.append(run(WINDOW_ITERATIONS))
        stopped = stop_reason(windows, most_iterations)
        if stopped is not None:
            steady, reason = stopped
            return _warmup(windows, first_call_ns, steady=steady, reason=reason)


def summarize(window: Window, isolated: Isolated | None, batch_size: float | None, device: Device) -> Latency:
    """Statistics of the measured iterations; call right after them, so that the peak is theirs.

    Args:
        window: The measured iterations.
        isolated: Iterations with a wait after each; None in a loop, which is not stopped for them.
        batch_size: Samples per iteration, their mean where they differ; None where nobody counts them.
        device: Where they ran.
    """
    samples = window.samples_ns
    mean = statistics.fmean(samples)
    peak = device.peak_memory_bytes()
    apart = isolated if device.type != "cpu" else None
    enqueue_ns = percentile_ns(apart.enqueue_ns, 0.5) if apart else None
    p50_ns = percentile_ns(samples, 0.5)
    return Latency(
        n=len(samples),
        mean_ns=round(mean),
        p50_ns=p50_ns,
        p90_ns=percentile_ns(samples, 0.9),
        p99_ns=percentile_ns(samples, 0.99) if len(samples) >= P99_LEAST_SAMPLES else None,
        min_ns=min(samples),
        max_ns=max(samples),
        stdev_ns=round(statistics.stdev(samples)) if len(samples) > 1 else None,
        samples_ns=samples,
        enqueue_p50_ns=enqueue_ns,
        request_p50_ns=percentile_ns(isolated.request_ns, 0.5) if isolated else p50_ns,
        wall_ns=window.wall_ns,
        throughput_samples_per_s=batch_size * NS_PER_S / p50_ns if p50_ns and batch_size else None,
        host_bound=None if enqueue_ns is None else enqueue_ns >= HOST_BOUND_SHARE * p50_ns,
        peak_allocated_bytes=peak[0] if peak else None,
        peak_reserved_bytes=peak[1] if peak else None,
        clock=device.clock,
    )


def _warm_up_fixed(run: Callable[[int], Window], iterations: int, first_call_ns: int) -> Warmup:
    if not iterations:
        return Warmup(0, 0, first_call_ns, None, "no warm-up was asked for", None, None)
    window = run(iterations)
    samples = window.samples_ns
    if iterations < 2 * WINDOW_ITERATIONS:
        return _warmup([window], first_call_ns, steady=None, reason=f"{iterations} iterations are too few to judge")
    steady = is_steady(samples[-2 * WINDOW_ITERATIONS : -WINDOW_ITERATIONS], samples[-WINDOW_ITERATIONS:])
    return _warmup(
        [window],
        first_call_ns,
        steady=steady,
        reason=f"{_verdict_words(agreed=steady)}; exactly {iterations} iterations were asked for",
    )


def stop_reason(
    windows: Sequence[Window], most_iterations: int = MOST_WARMUP_ITERATIONS
) -> tuple[bool | None, str] | None:
    """Whether these windows of warm-up suffice: the verdict (steady, not steady, not judged) and why; else None."""
    iterations = len(windows) * WINDOW_ITERATIONS
    spent_ns = sum(window.wall_ns for window in windows)
    if spent_ns < LEAST_WARMUP_NS:
        return None
    judged = len(windows) > 1
    if judged and is_steady(windows[-2].samples_ns, windows[-1].samples_ns):
        return True, _verdict_words(agreed=True)
    if iterations >= most_iterations:
        return False, f"{_verdict_words(agreed=False)} at the cap of {most_iterations} iterations"
    if spent_ns < MOST_WARMUP_NS:
        return None
    cap = f"the cap of {MOST_WARMUP_NS // NS_PER_S} s"
    if not judged:
        return None, f"{cap} left time for one window of {WINDOW_ITERATIONS}, too little to judge"
    return False, f"{_verdict_words(agreed=False)} at {cap}"


def _warmup(windows: Sequence[Window], first_call_ns: int, *, steady: bool | None, reason: str) -> Warmup:
    last = windows[-1].samples_ns[-WINDOW_ITERATIONS:]
    mean = statistics.fmean(last)
    samples = [sample for window in windows for sample in window.samples_ns]
    tens = [samples[index : index + WINDOW_ITERATIONS] for index in range(0, len(samples), WINDOW_ITERATIONS)]
    return Warmup(
        iterations=sum(len(window.samples_ns) for window in windows),
        duration_ns=sum(window.wall_ns for window in windows),
        first_call_ns=first_call_ns,
        steady=steady,
        reason=reason,
        cv=statistics.stdev(last) / mean if len(last) > 1 and mean else None,
        median_ns=percentile_ns(last, 0.5),
        medians_ns=tuple(percentile_ns(ten, 0.5) for ten in tens),
    )


def _verdict_words(*, agreed: bool) -> str:
    return f"the last two windows of {WINDOW_ITERATIONS} {'agreed' if agreed else 'disagreed'}"


def _relative_spread(samples_ns: Sequence[int]) -> float:
    quartiles = percentile_ns(samples_ns, 0.75) - percentile_ns(samples_ns, 0.25)
    return quartiles / percentile_ns(samples_ns, 0.5)
