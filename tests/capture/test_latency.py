from __future__ import annotations

import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capture.device import CpuDevice, DeviceType, Marks
from capture.latency import (
    LEAST_WARMUP_NS,
    MOST_WARMUP_ITERATIONS,
    MOST_WARMUP_NS,
    WINDOW_ITERATIONS,
    Isolated,
    Window,
    is_steady,
    percentile_ns,
    run_isolated,
    run_window,
    summarize,
    warm_up,
)

MS = 1_000_000
S = 1000 * MS


class FakeGpu(CpuDevice):
    """A device whose peak and type are scripted; nothing runs on it."""

    type: DeviceType = "cuda"
    clock = "cuda_events"

    def peak_memory_bytes(self) -> tuple[int, int]:
        return 300, 400


class FakeClock:
    """Gives out windows whose iterations take what a script says, and no real time."""

    def __init__(self, *durations_ns: int) -> None:
        self._durations_ns = durations_ns
        self.windows: list[int] = []

    def run(self, iterations: int) -> Window:
        index = min(len(self.windows), len(self._durations_ns) - 1)
        self.windows.append(iterations)
        each = self._durations_ns[index]
        return Window((each,) * iterations, each * iterations)


def test_percentiles_by_hand() -> None:
    samples = (40, 10, 30, 20)
    assert percentile_ns(samples, 0.0) == 10
    assert percentile_ns(samples, 0.5) == 25
    assert percentile_ns(samples, 0.9) == 37  # rank 2.7: 30 + 0.7 * 10
    assert percentile_ns(samples, 1.0) == 40
    assert percentile_ns((7,), 0.99) == 7


@given(st.lists(st.integers(0, 10**12), min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_percentiles_rise_and_stay_within_the_samples(samples: list[int], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert min(samples) <= percentile_ns(samples, low) <= percentile_ns(samples, high) <= max(samples)


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_the_median_is_the_standard_librarys(samples: list[int]) -> None:
    assert abs(percentile_ns(samples, 0.5) - statistics.median(samples)) <= 0.5


def test_statistics_by_hand() -> None:
    window = Window((2 * MS, 4 * MS, 6 * MS), wall_ns=13 * MS)
    latency = summarize(window, Isolated((1 * MS,), (5 * MS,)), batch_size=8, device=FakeGpu())
    assert (latency.n, latency.mean_ns, latency.p50_ns, latency.p90_ns) == (3, 4 * MS, 4 * MS, 5_600_000)
    assert (latency.min_ns, latency.max_ns, latency.stdev_ns) == (2 * MS, 6 * MS, 2 * MS)
    assert latency.throughput_samples_per_s == 2000.0  # 8 samples in a mean of 4 ms
    assert latency.samples_ns == window.samples_ns
    assert (latency.enqueue_p50_ns, latency.request_p50_ns, latency.wall_ns) == (1 * MS, 5 * MS, 13 * MS)
    assert (latency.peak_allocated_bytes, latency.peak_reserved_bytes) == (300, 400)
    assert latency.clock == "cuda_events"


@pytest.mark.parametrize(("count", "has_p99"), [(99, False), (100, True)])
def test_p99_only_with_enough_samples(count: int, has_p99: bool) -> None:
    window = Window(tuple(range(1, count + 1)), count)
    latency = summarize(window, Isolated((1,), (1,)), 1, CpuDevice())
    assert latency.p99_ns == (99 if has_p99 else None)  # rank 98.01 of 1..100 is 99.01


def test_one_sample_has_no_deviation() -> None:
    assert summarize(Window((5,), 5), Isolated((5,), (5,)), 1, CpuDevice()).stdev_ns is None


@pytest.mark.parametrize(("enqueue_ns", "bound"), [(94, False), (95, True), (120, True)])
def test_host_bound_when_launching_takes_as_long_as_the_forward(enqueue_ns: int, bound: bool) -> None:
    latency = summarize(Window((100,), 100), Isolated((enqueue_ns,), (130,)), 1, FakeGpu())
    assert latency.host_bound is bound


def test_the_cpu_has_no_enqueue_time_and_no_peak() -> None:
    latency = summarize(Window((100,), 100), Isolated((100,), (100,)), 1, CpuDevice())
    assert latency.host_bound is None
    assert latency.enqueue_p50_ns is None
    assert latency.peak_allocated_bytes is None
    assert latency.clock == "perf_counter"


def test_steady_needs_medians_within_two_percent() -> None:
    assert is_steady((1000,) * 10, (1019,) * 10)
    assert not is_steady((1000,) * 10, (1020,) * 10)
    assert not is_steady((1020,) * 10, (999,) * 10)


def test_steady_needs_a_spread_below_five_percent_in_both_windows() -> None:
    calm = (1000,) * 4
    wild = (900, 1000, 1000, 1300)  # quartiles 975 and 1075: 10 % of the median
    assert not is_steady(calm, wild)
    assert not is_steady(wild, calm)


def test_times_of_zero_are_not_steady() -> None:
    assert not is_steady((0,) * 10, (0,) * 10)


def test_warm_up_stops_when_two_windows_agree() -> None:
    clock = FakeClock(90 * MS, 60 * MS, 50 * MS, 50 * MS)
    warmup = warm_up(clock.run, first_call_ns=7)
    assert clock.windows == [10, 10, 10, 10]
    assert warmup.steady is True
    assert (warmup.iterations, warmup.first_call_ns) == (40, 7)
    assert warmup.duration_ns == 2500 * MS
    assert (warmup.median_ns, warmup.cv) == (50 * MS, 0.0)
    assert "agreed" in warmup.reason


def test_warm_up_goes_on_until_there_was_enough_work() -> None:
    # 10 iterations of 1 ms: the second window already agrees, but a clock rises within half a second.
    clock = FakeClock(1 * MS)
    warmup = warm_up(clock.run)
    assert warmup.duration_ns == LEAST_WARMUP_NS
    assert warmup.steady is True


def test_warm_up_stops_at_the_cap_of_iterations() -> None:
    clock = FakeClock(*[(5 + index % 2) * MS for index in range(100)])
    warmup = warm_up(clock.run)
    assert warmup.iterations == MOST_WARMUP_ITERATIONS
    assert warmup.steady is False
    assert "disagreed at the cap of 200 iterations" in warmup.reason


def test_warm_up_stops_at_the_cap_of_time() -> None:
    clock = FakeClock(*[(300 + 100 * (index % 2)) * MS for index in range(100)])
    warmup = warm_up(clock.run)
    assert warmup.duration_ns >= MOST_WARMUP_NS > warmup.duration_ns - 4 * S
    assert warmup.steady is False
    assert "at the cap of 10 s" in warmup.reason


def test_a_slow_model_still_gets_ten_iterations() -> None:
    warmup = warm_up(FakeClock(5 * S).run)
    assert warmup.iterations == WINDOW_ITERATIONS
    assert warmup.steady is None  # one window cannot be compared with anything
    assert "too little to judge" in warmup.reason


@pytest.mark.parametrize(("iterations", "steady"), [(0, None), (19, None), (20, True), (25, True)])
def test_an_exact_number_of_iterations_is_only_judged(iterations: int, steady: bool | None) -> None:
    clock = FakeClock(1 * MS)
    warmup = warm_up(clock.run, fixed_iterations=iterations)
    assert clock.windows == ([iterations] if iterations else [])
    assert warmup.iterations == iterations
    assert warmup.steady is steady


def test_one_window_waits_once_and_only_at_its_end() -> None:
    told: list[str] = []

    class Told(CpuDevice):
        def synchronize(self) -> None:
            told.append("wait")

        def marks(self, count: int) -> Marks:
            told.append(f"{count} marks")
            return super().marks(count)

    window = run_window(lambda: told.append("forward"), Told(), 3)
    assert told == ["6 marks", "forward", "forward", "forward", "wait"]
    assert len(window.samples_ns) == 3
    assert sum(window.samples_ns) <= window.wall_ns


def test_isolated_forwards_wait_each() -> None:
    told: list[str] = []

    class Told(CpuDevice):
        def synchronize(self) -> None:
            told.append("wait")

    isolated = run_isolated(lambda: told.append("forward"), Told(), 2)
    assert told == ["forward", "wait", "forward", "wait"]
    assert all(a <= b for a, b in zip(isolated.enqueue_ns, isolated.request_ns, strict=True))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_events_measure_what_the_device_does() -> None:
    from capture.device import open_device

    device = open_device("cuda")
    matrix = torch.ones(4096, 4096, device=device.torch_device)
    window = run_window(lambda: matrix @ matrix, device, 10)
    assert all(sample > 0 for sample in window.samples_ns)
    assert sum(window.samples_ns) <= window.wall_ns * 1.05
