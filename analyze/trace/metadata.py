"""What a document says about itself. Only the keys named here are kept: metadata of strangers holds credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from analyze.trace.recorded import Recorded, read_recorded

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_NAME_LIMIT = 80


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One entry of `deviceProperties`.

    Attributes:
        id: device number as the process sees it.
        name: marketing name, empty where not recorded.
        multiprocessors: SMs or compute units, 0 where not recorded.
        memory_bytes: total memory, 0 where not recorded.
        capability: CUDA compute capability, None where not recorded.
    """

    id: int
    name: str
    multiprocessors: int
    memory_bytes: int
    capability: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The document's metadata that figures and sentences use.

    Attributes:
        base_ns: what the file's times are relative to, 0 where they are absolute.
        flags: profiler options that were on.
        runtime: CUDA or HIP runtime version as text, empty where not recorded.
        rank: rank in the job, None outside distributed runs.
        world_size: ranks of the job, None outside distributed runs.
        devices: visible devices, not only used ones.
        recorded: what our `capture` stored, None in other files.
    """

    base_ns: int = 0
    flags: tuple[str, ...] = ()
    runtime: str = ""
    rank: int | None = None
    world_size: int | None = None
    devices: tuple[DeviceInfo, ...] = ()
    recorded: Recorded | None = None

    def device_name(self, device: int) -> str:
        """Name of a device; ROCm numbers differ from the listed ids, so one common name serves for all."""
        for info in self.devices:
            if info.id == device and info.name:
                return info.name
        names = {info.name for info in self.devices if info.name}
        return names.pop() if len(names) == 1 else ""


class Keys(msgspec.Struct):
    """The top-level keys that are read; all others are skipped without making objects."""

    baseTimeNanoseconds: Any = None  # noqa: N815 - the keys' own spelling
    record_shapes: Any = None
    profile_memory: Any = None
    with_stack: Any = None
    with_flops: Any = None
    with_modules: Any = None
    cuda_runtime_version: Any = None
    hip_runtime_version: Any = None
    distributedInfo: Any = None  # noqa: N815
    deviceProperties: Any = None  # noqa: N815
    gpuledger: Any = None


def keys_of(text: bytes) -> dict[str, Any] | None:
    """The keys of the first JSON object in a text that may be damaged behind it; None when there is none."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.decode("utf-8", "replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def keys_before(head: bytes) -> dict[str, Any] | None:
    """The keys in front of the events; `head` ends with the `[` that begins them."""
    return keys_of(head.rstrip().removesuffix(b"[") + b"[]}")


def keys_after(tail: bytes) -> dict[str, Any] | None:
    """The keys behind the events; `tail` begins with the `]` that ends them."""
    return keys_of(b'{"traceEvents":[' + tail)


def select(keys: Mapping[str, Any]) -> Metadata:
    """The typed metadata of a document's top-level keys, whatever their types."""
    job = keys.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    block = keys.get("gpuledger")
    properties = keys.get("deviceProperties")
    return Metadata(
        base_ns=_int(keys.get("baseTimeNanoseconds")) or 0,
        flags=tuple(flag for flag in _FLAGS if keys.get(flag) in (1, True, "1")),
        runtime=_runtime(keys),
        rank=_int(job.get("rank")),
        world_size=_int(job.get("world_size")),
        devices=tuple(_device(p) for p in properties if isinstance(p, dict)) if isinstance(properties, list) else (),
        recorded=read_recorded(block if isinstance(block, dict) else None),
    )


def _runtime(keys: Mapping[str, Any]) -> str:
    cuda, hip = _int(keys.get("cuda_runtime_version")), _int(keys.get("hip_runtime_version"))
    if cuda:
        return f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"
    if hip:
        return f"ROCm {hip // 10_000_000}.{hip // 100_000 % 100}"
    return ""


def _device(properties: Mapping[str, Any]) -> DeviceInfo:
    name = properties.get("name")
    major, minor = _int(properties.get("computeMajor")), _int(properties.get("computeMinor"))
    return DeviceInfo(
        id=_int(properties.get("id")) or 0,
        name=name[:_NAME_LIMIT] if isinstance(name, str) else "",
        multiprocessors=_int(properties.get("numSms")) or 0,
        memory_bytes=_int(properties.get("totalGlobalMem")) or 0,
        capability=(major, minor) if major and minor is not None else None,
    )


def _int(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if -(2**63) <= number < 2**63 else None  # frames hold no more
