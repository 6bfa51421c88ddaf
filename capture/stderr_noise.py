"""Keeps the profiler's own chatter off the terminal without hiding anything else."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_NOISE = re.compile(
    rb"^(USDT|INFO|STAGE):\d{4}-\d\d-\d\d .*$"
    rb"|^ERROR:\d{4}-\d\d-\d\d .*gpuGetDeviceCount failed with code 35.*$"
    rb"|^\s*$"
)
"""Start and stop lines, and the absence of a GPU that the run already knows of."""


@contextmanager
def without_profiler_noise() -> Iterator[None]:
    """Hold back what is written to file descriptor 2 inside; afterwards pass on all but known noise.

    The profiler's C++ part writes to the descriptor directly, past `sys.stderr`.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            kept = keep_messages(held.read())
            if kept:
                os.write(2, kept)


def keep_messages(text: bytes) -> bytes:
    """Everything but the lines known as noise."""
    return b"".join(line for line in text.splitlines(keepends=True) if not _NOISE.match(line.rstrip(b"\r\n")))
