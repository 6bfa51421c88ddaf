"""One file comes down to a summary of bounded size: what a worker returns, and what the store holds."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from msgspec import Struct

from analyze.notices import Notice

MOST_EVENTS = 20_000
MOST_STRETCHES = 200_000
SUMMARY_VERSION = 2  # a part of the definitions: a store of another version is not read


class FileInfo(Struct, frozen=True):
    """What a file is, as far as jobs and rounds are made of it.

    Attributes:
        path: the file below the folder that was given; of several files the path as given.
        key: SHA-256 of its unpacked bytes.
        size_bytes: on disk.
        modified_ns: when it was last written; with path and size it spares reading it again.
        etag: what changes with its content in an object store, empty for local files.
        rank: the rank, None where neither content nor name say it.
        rank_from: distributedInfo, file name, or empty.
        world: number of ranks as text, empty where not recorded.
        trace_group: id that the files of one recording share, empty where not recorded.
        device: name of the device, empty where not recorded.
        runtime: CUDA or ROCm version, empty where not recorded.
        nccl: version of NCCL, empty where not recorded.
        window_start_ns: first activity, on the file's clock with the base time; None without activities.
        window_end_ns: last end of an activity, None likewise.
        computation_ns: ledger of docs/definitions.md; these four sum to the window.
        exposed_communication_ns: likewise.
        exposed_copy_ns: likewise.
        idle_ns: likewise.
        communication_ns: time in which some collective runs, hidden or not.
        dropped_steps: names of steps whose collectives were left out, to keep the summary small.
        dropped_ns: stretches left out for the same reason, added up.
        incomplete: why the records cannot be trusted in full, empty where they can.
        notices: what was odd in the file, in short.
    """

    path: str
    key: str
    size_bytes: int
    modified_ns: int
    etag: str = ""
    rank: int | None = None
    rank_from: str = ""
    world: str = ""
    trace_group: str = ""
    device: str = ""
    runtime: str = ""
    nccl: str = ""
    window_start_ns: int | None = None
    window_end_ns: int | None = None
    computation_ns: int = 0
    exposed_communication_ns: int = 0
    exposed_copy_ns: int = 0
    idle_ns: int = 0
    communication_ns: int = 0
    dropped_steps: tuple[str, ...] = ()
    dropped_ns: int = 0
    incomplete: str = ""
    notices: tuple[Notice, ...] = ()

    @property
    def window_ns(self) -> int:
        """Length of the window, 0 without activities."""
        if self.window_start_ns is None or self.window_end_ns is None:
            return 0
        return self.window_end_ns - self.window_start_ns


class Summary(Struct, frozen=True):
    """One file.

    Attributes:
        file: what it is.
        frames: by name of `tables.PARTS`.
    """

    file: FileInfo
    frames: Mapping[str, pl.DataFrame]
