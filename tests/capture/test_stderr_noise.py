from __future__ import annotations

import os

import pytest

from capture.stderr_noise import keep_messages, without_profiler_noise

NOISE = (
    b"USDT:2026-01-02 03:04:05 3582:3582 SyncActivityProfilerHandler.cpp:39] profiler_start\n"
    b"INFO:2026-01-02 03:04:05 1:1 init.cpp:1] anything\n"
    b"STAGE:2026-01-02 03:04:05 1:1 ActivityProfilerController.cpp:1] Completed Stage: Warm Up\n"
    b"ERROR:2026-01-02 03:04:05 1:1 DeviceProperties.cpp:56] gpuGetDeviceCount failed with code 35\n"
)
MESSAGE = b"ERROR:2026-01-02 03:04:05 1:1 CuptiActivityApi.cpp:1] function cupti failed with error CUPTI_ERROR\n"
WARNING = b"WARNING:2026-01-02 03:04:05 1:1 something else\nplain text without an end"


def test_known_noise_is_dropped_and_the_rest_kept_in_order() -> None:
    assert keep_messages(NOISE) == b""
    assert keep_messages(NOISE + MESSAGE + NOISE + WARNING) == MESSAGE + WARNING


@pytest.mark.parametrize("fails", [False, True])
def test_messages_come_through_whatever_happens_inside(capfd: pytest.CaptureFixture[str], fails: bool) -> None:
    try:
        with without_profiler_noise():
            os.write(2, NOISE + MESSAGE)
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert fails
    os.write(2, b"after\n")
    assert capfd.readouterr().err == MESSAGE.decode() + "after\n"
