"""Several devices or recordings in one file: sentences say which window they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.builder import TraceBuilder

Report = Callable[..., dict[str, Any]]


def two_devices() -> TraceBuilder:
    """Device 1 is busy for 400 of 500, device 0 for 100 of 200."""
    b = TraceBuilder().op("aten::mm", 0, 9)
    b.run("gemm", (0, 5), (100, 200), device=1).run("gemm", (10, 5), (400, 200), device=1)
    return b.run("add", (20, 5), (100, 50)).run("add", (30, 5), (250, 50))


def test_of_several_devices_the_verdict_names_its_own(report_of: Report) -> None:
    report = report_of(two_devices())
    assert [(d["id"], d["busy_ns"], d["window_ns"]) for d in report["devices"]] == [
        (0, 100_000, 200_000),
        (1, 400_000, 500_000),
    ]
    first = report["verdict"]["sentences"][0]
    assert "(device 1) is busy for 80.0% of its window, the longest of 2 devices" in first
    assert "it idles for 20.0%" in first


def test_one_device_stays_the_gpu(report_of: Report) -> None:
    report = report_of(TraceBuilder().run("gemm", (0, 5), (100, 200)).run("gemm", (10, 5), (400, 200)))
    assert report["verdict"]["sentences"][0].startswith("The GPU is busy for 80.0% of the window")


def recordings(*spans: tuple[float, float]) -> TraceBuilder:
    b = TraceBuilder().run("gemm", (5, 5), (100, 200)).run("gemm", (905, 5), (1000, 200))
    for start, dur in spans:
        b.span(start, dur)
    return b


def test_time_between_two_recordings_is_named(report_of: Report) -> None:
    """Recorded 0..400 and 900..1,300: 500 of the 1,100 from 100 to 1,200 lie between them, 45.5 %."""
    report = report_of(recordings((0, 400), (900, 400)))
    (notice,) = [n for n in report["notices"] if n["id"] == "several-recordings"]
    assert "covers 2 recordings" in notice["text"]
    assert "500 µs, 45.5% of the window" in notice["text"]


def test_one_recording_or_two_at_the_same_time_say_nothing(report_of: Report) -> None:
    for spans in ([(0, 1300)], [(0, 1000), (500, 800)]):
        assert "several-recordings" not in [n["id"] for n in report_of(recordings(*spans))["notices"]]
