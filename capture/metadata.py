"""The block of a recording: one object under the key `gpuledger` of the trace, and the whole of run.json.

It is written into the exported file by this module, with the standard library's JSON: torch's own way
(`add_metadata_json`) loses what is added after the profiler stopped, and breaks the file where a string
holds a quote or a backslash.

Keys of the block (`schema_version` "1.0"); times are integer nanoseconds, sizes integer bytes, null is
"not known" or "does not apply here":

===================== ======================================================================================
schema_version        str; the part before the dot changes when a reader of the old one would go wrong
tool                  {name: str, version: str}
recorded_at           str; UTC, ISO 8601, to the second
model                 str; timm name or module:function
model_source          "timm" | "user"
pretrained            bool
parameter_count       int
seed                  int
batch_size            int; the first dimension of the first input, not the number asked for
input_shape           [int]; of the first input
input_shapes          [[int]]; of every input
dtype                 str; of the model's floating parameters during the run, such as "float16"
precision             "fp32" | "tf32" | "fp16" | "bf16"; what was asked for
amp                   bool; the half precision was reached by autocast instead of by casting the model
autocast_dtype        str | null
compile, cuda_graph, channels_last, cudnn_benchmark   bool
compile_mode          str | null; the mode of torch.compile where one was asked for
output_finite         bool | null; false when the output holds inf or nan
device                :class:`capture.environment.DeviceInfo`
versions              :class:`capture.environment.Versions`
precision_state       {before, during}: :class:`capture.precision.PrecisionState`
warmup                :class:`capture.latency.Warmup`
latency               :class:`capture.latency.Latency`
repeats               [:class:`Repeat`]; every whole measurement in order, the last being the two keys above
repeat_p50_spread     float | null; (largest - smallest) / smallest median over the repeats; null for one
profile               :class:`capture.profile.Profile`
snapshot              :class:`capture.snapshot.Snapshot` | null
missing               {str: str}; passes that were asked for and are not there, and why
gpu_state             :class:`capture.gpu_state.GpuState`; recorded is false, with a reason, without one
threads               :class:`capture.environment.Threads`
load                  :class:`capture.environment.Load`
environment           {str: str}; the variables of an allow-list that are set
===================== ======================================================================================

How far the profiler stretched a forward is `profile.profiled_wall_ns / profile.steps` over
`latency.request_p50_ns`: both are host times of forwards up to the end of a wait (with several steps, of a
row of them), whereas `latency.p50_ns` is the device's time back to back.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from capture.environment import DeviceInfo, Load, Threads, Versions
from capture.errors import ProfileError
from capture.gpu_state import GpuState
from capture.latency import Latency, Warmup
from capture.precision import PrecisionState
from capture.profile import Profile
from capture.snapshot import Snapshot

KEY = "gpuledger"
SCHEMA_VERSION = "1.0"
_GZIP_LEVEL = 6
"""Within a tenth of the smallest size at half the time of level 9."""
_CHUNK_BYTES = 1 << 20
_TAIL_BYTES = 1 << 13
"""Held back from the copy, since the file's last key is rewritten; a path is at most 4096 bytes long."""
_TRACE_NAME = re.compile(rb'("traceName"\s*:\s*)"(?:[^"\\]|\\.)*"')


class Readable(Protocol):
    """A file that is read, packed or not."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes."""
        ...


class Writable(Protocol):
    """A file that is written, packed or not."""

    def write(self, content: bytes, /) -> int:
        """All of the bytes."""
        ...


@dataclass(frozen=True)
class Tool:
    """The program that made the recording."""

    name: str
    version: str


@dataclass(frozen=True)
class PrecisionStates:
    """torch's switches before the run and during it."""

    before: PrecisionState
    during: PrecisionState


@dataclass(frozen=True)
class Repeat:
    """One whole measurement (the model built anew, warmed up and timed) in short. Times in nanoseconds."""

    p50_ns: int
    mean_ns: int
    stdev_ns: int | None
    min_ns: int
    max_ns: int
    throughput_samples_per_s: float | None
    warmup_iterations: int
    steady: bool | None


@dataclass(frozen=True)
class Block:
    """The block; the module's text says what each key means."""

    schema_version: str
    tool: Tool
    recorded_at: str
    model: str
    model_source: str
    pretrained: bool
    parameter_count: int
    seed: int
    batch_size: int
    input_shape: list[int]
    input_shapes: list[list[int]]
    dtype: str
    precision: str
    amp: bool
    autocast_dtype: str | None
    compile: bool
    compile_mode: str | None
    cuda_graph: bool
    channels_last: bool
    cudnn_benchmark: bool
    output_finite: bool | None
    device: DeviceInfo
    versions: Versions
    precision_state: PrecisionStates
    warmup: Warmup
    latency: Latency
    repeats: tuple[Repeat, ...]
    repeat_p50_spread: float | None
    profile: Profile
    snapshot: Snapshot | None
    missing: Mapping[str, str]
    gpu_state: GpuState
    threads: Threads
    load: Load
    environment: Mapping[str, str]


def to_json(value: object, *, indent: int | None = None) -> str:
    """ASCII JSON of dataclasses, mappings and numbers; a number that JSON does not have becomes null."""
    return json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, indent=indent)


def write_trace(exported: Path, block: object, target: Path) -> None:
    """Copy an exported trace to `target` (.json.gz) with the block as its first key.

    The file appears under its name only when it is whole.

    Args:
        exported: Plain JSON as torch wrote it.
        block: The block, or any object that JSON can hold.
        target: In a folder that exists.

    Raises:
        ProfileError: The exported file is not a JSON object.
    """
    partial = target.with_name(target.name + ".partial")
    try:
        with (
            exported.open("rb") as source,
            partial.open("wb") as sink,
            # No name and no time in the header: the same recording gives the same bytes.
            gzip.GzipFile("", "wb", _GZIP_LEVEL, sink, mtime=0) as packed,
        ):
            _splice(source, packed, to_json(block).encode("ascii"), target.name)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def add_block(path: Path, block: object) -> None:
    """Put the block into an exported trace, .json or .json.gz, where it lies.

    Raises:
        ProfileError: The file is not a JSON object.
    """
    packed = path.suffix == ".gz"
    partial = path.with_name(path.name + ".partial")
    try:
        with (
            gzip.open(path, "rb") if packed else path.open("rb") as source,
            gzip.open(partial, "wb", _GZIP_LEVEL) if packed else partial.open("wb") as sink,
        ):
            _splice(source, sink, to_json(block).encode("ascii"), path.name)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(value: object, target: Path) -> None:
    """Write an object as indented JSON; the file appears under its name only when it is whole."""
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_text(to_json(value, indent=1) + "\n", encoding="ascii")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def read_block(path: Path) -> Any:
    """The block of a written trace; None where there is none."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file).get(KEY)


def _splice(source: Readable, sink: Writable, block: bytes, name: str) -> None:
    head = source.read(_CHUNK_BYTES)
    brace = len(head) - len(head.lstrip()) + 1
    rest = head[brace:].lstrip()
    if head[brace - 1 : brace] != b"{":
        raise ProfileError("torch wrote a trace that is not a JSON object.")
    sink.write(b'{\n"' + KEY.encode("ascii") + b'": ' + block)
    sink.write(b"\n" if rest[:1] == b"}" else b",\n")
    held = rest
    while following := source.read(_CHUNK_BYTES):
        held += following
        sink.write(held[:-_TAIL_BYTES])
        held = held[-_TAIL_BYTES:]
    sink.write(_rename(held, name))


def _rename(tail: bytes, name: str) -> bytes:
    # torch ends the file with the path it wrote to, which was a temporary one.
    found = list(_TRACE_NAME.finditer(tail))
    if not found:
        return tail
    last = found[-1]
    renamed = last.group(1) + json.dumps(name).encode("ascii")
    return tail[: last.start()] + renamed + tail[last.end() :]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
