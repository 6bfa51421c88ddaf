"""What a document says about itself. Only the keys named here are kept: metadata of strangers holds credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from analyze.trace.clock import LATEST_NS
from analyze.trace.numbers import LARGEST_BYTES, MOST_DEVICES, whole
from analyze.trace.odd import Odd
from analyze.trace.recorded import Recorded, read_recorded
from analyze.trace.texts import sound

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_NAME_LIMIT = 80
_VALUE_LIMIT_BYTES = 1 << 20
_LENIENT_LIMIT_BYTES = 1 << 22  # the lenient parser makes objects of everything, ten bytes for each of the text
_LATEST_BASE_NS = LATEST_NS // 2
_LATEST_VERSION = 10**9
_MOST_RANKS = 2**31 - 1
_MOST_GROUPS = 4096
_MOST_MULTIPROCESSORS = 2**16
_TWICE = re.compile(rb'"traceEvents"\s*:\s*\{\s*"traceEvents"\s*:\s*\[\s*\Z')  # some tools wrap it once more
_ABSENT = msgspec.Raw(b"")


class DeviceInfo(Struct, frozen=True):
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


class GroupInfo(Struct, frozen=True):
    """One process group that the recorded rank is in.

    Attributes:
        name: as its collectives name it.
        description: what the program calls it, empty where not recorded.
        ranks: its members.
    """

    name: str
    description: str
    ranks: tuple[int, ...]


class JobInfo(Struct, frozen=True):
    """What a file says about the job that it is of, as far as it distinguishes files of several jobs.

    Attributes:
        rank: the rank, from a number or a text that holds one; None where neither is there.
        world: the number of ranks as text, empty where not recorded.
        groups: process groups of the rank.
        nccl: version of NCCL, empty where not recorded.
        trace_group: id that all files of one recording share, empty where not recorded.
    """

    rank: int | None = None
    world: str = ""
    groups: tuple[GroupInfo, ...] = ()
    nccl: str = ""
    trace_group: str = ""


class Metadata(Struct, frozen=True):
    """The document's metadata that figures and sentences use.

    Attributes:
        base_ns: what the file's times are relative to, 0 where they are absolute.
        flags: profiler options that were on.
        runtime: CUDA or HIP runtime version as text, empty where not recorded.
        rank: rank in the job, None outside distributed runs.
        world_size: ranks of the job, None outside distributed runs.
        devices: visible devices, not only used ones.
        recorded: what our `capture` stored, None in other files.
        job: what distinguishes the files of one job from others.
    """

    base_ns: int = 0
    flags: tuple[str, ...] = ()
    runtime: str = ""
    rank: int | None = None
    world_size: int | None = None
    devices: tuple[DeviceInfo, ...] = ()
    recorded: Recorded | None = None
    job: JobInfo = JobInfo()

    def device_name(self, device: int) -> str:
        """Name of a device; ROCm numbers differ from the listed ids, so one common name serves for all."""
        for info in self.devices:
            if info.id == device and info.name:
                return info.name
        names = {info.name for info in self.devices if info.name}
        return names.pop() if len(names) == 1 else ""


class Keys(msgspec.Struct):
    """The top-level keys that are read, as text; all others are skipped without making objects."""

    baseTimeNanoseconds: msgspec.Raw = _ABSENT  # noqa: N815 - the keys' own spelling
    record_shapes: msgspec.Raw = _ABSENT
    profile_memory: msgspec.Raw = _ABSENT
    with_stack: msgspec.Raw = _ABSENT
    with_flops: msgspec.Raw = _ABSENT
    with_modules: msgspec.Raw = _ABSENT
    cuda_runtime_version: msgspec.Raw = _ABSENT
    hip_runtime_version: msgspec.Raw = _ABSENT
    distributedInfo: msgspec.Raw = _ABSENT  # noqa: N815
    deviceProperties: msgspec.Raw = _ABSENT  # noqa: N815
    group_trace_id: msgspec.Raw = _ABSENT
    gpuledger: msgspec.Raw = _ABSENT


def values_of(keys: Keys) -> dict[str, Any]:
    """The values of the keys that are there; one that cannot be read, or is over 1 MiB long, is left out."""
    found: dict[str, Any] = {}
    for name in Keys.__struct_fields__:
        raw = bytes(getattr(keys, name))
        if not raw or len(raw) > _VALUE_LIMIT_BYTES:
            continue
        with suppress(ValueError, RecursionError):
            found[name] = json.loads(raw.decode("utf-8", "replace"), strict=False)
    return found


def keys_of(text: bytes) -> dict[str, Any] | None:
    """The keys of the first JSON object in a text that may be damaged behind it; None when there is none."""
    with suppress(msgspec.DecodeError, RecursionError):
        return values_of(msgspec.json.decode(text, type=Keys))
    if len(text) > _LENIENT_LIMIT_BYTES:
        return None
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.decode("utf-8", "replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def keys_before(head: bytes) -> dict[str, Any] | None:
    """The keys in front of the events; `head` ends with the `[` that begins them."""
    return keys_of(head + (b"]}}" if _TWICE.search(head) else b"]}"))


def keys_after(tail: bytes) -> dict[str, Any] | None:
    """The keys behind the events; `tail` begins with the `]` that ends them."""
    return keys_of(b'{"traceEvents":[' + tail)


def select(keys: Mapping[str, Any], odd: Odd) -> Metadata:
    """The typed metadata of a document's top-level keys; what is of the wrong type or size is left out and counted."""
    job = _mapping(keys, "distributedInfo", odd)
    block = keys.get("gpuledger")
    properties = keys.get("deviceProperties")
    if properties is not None and not isinstance(properties, list):
        odd.note("deviceProperties", properties)
        properties = None
    devices = [_device(entry, odd) for entry in properties or [] if isinstance(entry, dict)]
    return Metadata(
        base_ns=_int(keys, "baseTimeNanoseconds", odd, _LATEST_BASE_NS) or 0,
        flags=tuple(flag for flag in _FLAGS if keys.get(flag) in (1, True, "1")),
        runtime=_runtime(keys, odd),
        rank=_int(job, "rank", odd, _MOST_RANKS),
        world_size=_int(job, "world_size", odd, _MOST_RANKS),
        devices=tuple(device for device in devices if device is not None),
        recorded=read_recorded(block if isinstance(block, dict) else None),
        job=_job(job, keys.get("group_trace_id")),
    )


def _job(job: Mapping[str, Any], trace_group: object) -> JobInfo:
    """What `distributedInfo` says; entries of the wrong type or size are left out."""
    rank, world = whole(job.get("rank")), job.get("world_size")
    listed = job.get("pg_config")
    groups = (_group(entry) for entry in (listed if isinstance(listed, list) else [])[:_MOST_GROUPS])
    return JobInfo(
        rank=rank if 0 <= rank <= _MOST_RANKS else None,
        world=_short(world),
        groups=tuple(group for group in groups if group is not None),
        nccl=_short(job.get("nccl_version")),
        trace_group=_short(trace_group),
    )


def _group(entry: object) -> GroupInfo | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("ranks"), list):
        return None
    ranks = [whole(rank) for rank in entry["ranks"]]
    if not ranks or min(ranks) < 0 or max(ranks) > _MOST_RANKS:
        return None
    return GroupInfo(_short(entry.get("pg_name")), _short(entry.get("pg_desc")), tuple(sorted(set(ranks))))


def _short(value: object) -> str:
    """A number or a text as text, cut; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    return sound(str(value))[:_NAME_LIMIT]


def _mapping(keys: Mapping[str, Any], key: str, odd: Odd) -> Mapping[str, Any]:
    value = keys.get(key)
    if isinstance(value, dict):
        return value
    if value is not None:
        odd.note(key, value)
    return {}


def _runtime(keys: Mapping[str, Any], odd: Odd) -> str:
    cuda = _int(keys, "cuda_runtime_version", odd, _LATEST_VERSION)
    hip = _int(keys, "hip_runtime_version", odd, _LATEST_VERSION)
    if cuda:
        return f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"
    if hip:
        return f"ROCm {hip // 10_000_000}.{hip // 100_000 % 100}"
    return ""


def _device(properties: Mapping[str, Any], odd: Odd) -> DeviceInfo | None:
    """One device, None without a number that says which."""
    number = _int(properties, "id", odd, MOST_DEVICES - 1)
    if number is None:
        if "id" in properties:
            return None
        number = 0
    name = properties.get("name")
    major, minor = (_int(properties, key, odd, _LATEST_VERSION) for key in ("computeMajor", "computeMinor"))
    if isinstance(name, str) and sound(name) != name:
        odd.note("name", name)
    return DeviceInfo(
        id=number,
        name=sound(name)[:_NAME_LIMIT] if isinstance(name, str) else "",
        multiprocessors=_int(properties, "numSms", odd, _MOST_MULTIPROCESSORS) or 0,
        memory_bytes=_int(properties, "totalGlobalMem", odd, LARGEST_BYTES) or 0,
        capability=(major, minor) if major and minor is not None else None,
    )


def _int(keys: Mapping[str, Any], key: str, odd: Odd, most: int) -> int | None:
    """The whole number from 0 to `most` under a key, None where there is none."""
    value = keys.get(key)
    number = whole(value)
    if 0 <= number <= most:
        return number
    if value is not None:
        odd.note(key, value)
    return None
