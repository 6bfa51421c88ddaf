"""The top-level keys of a shared trace: those that a figure or a viewer needs, rebuilt from what may stay of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from analyze.report.redact.policy import Redaction
from analyze.report.share.rows import Row

_NUMBERS = (
    "schemaVersion", "baseTimeNanoseconds", "record_shapes", "profile_memory", "with_stack", "with_flops",
    "with_modules", "cupti_version", "cuda_runtime_version", "cuda_driver_version", "hip_runtime_version",
    "hip_driver_version",
)  # fmt: skip
_DEVICE = (
    "id", "totalGlobalMem", "computeMajor", "computeMinor", "maxThreadsPerBlock", "maxThreadsPerMultiprocessor",
    "regsPerBlock", "regsPerMultiprocessor", "warpSize", "sharedMemPerBlock", "sharedMemPerBlockOptin",
    "sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor", "numSms",
)  # fmt: skip
_RECORDED = ("batch_size", "parameter_count", "amp", "compile", "cuda_graph", "output_finite", "parameter_bytes")
_LATENCY = ("p50_ns", "request_p50_ns", "throughput_samples_per_s", "host_bound", "samples_ns")
_PRECISIONS = ("fp32", "tf32", "fp16", "bf16")


def shared_keys(keys: Row, redaction: Redaction) -> dict[str, Any]:
    """The keys that stay.

    Args:
        keys: all keys of the document but the events.
        redaction: how names are replaced.
    """
    found: dict[str, Any] = {}
    for key, raw in keys.items():
        value = msgspec.json.decode(raw)
        kept = _kept(key, value, redaction)
        if kept is not None:
            found[key] = kept
    return found


def _kept(key: str, value: Any, redaction: Redaction) -> Any:
    if key in _NUMBERS:
        return value if isinstance(value, int | float) or str(value).isdecimal() else None
    if key == "displayTimeUnit":
        return value if value in ("ms", "ns") else None
    if key == "deviceProperties" and isinstance(value, list):
        return [_device(entry, redaction) for entry in value if isinstance(entry, dict)]
    if key == "distributedInfo" and isinstance(value, dict):
        return _job(value, redaction)
    return _recorded(value, redaction) if key == "gpuledger" and isinstance(value, dict) else None


def _numbers(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Numbers and lists of numbers of an object."""
    given: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {name: given[name] for name in names if name in given and _is_number(given[name])}


def _is_number(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, int | float) for item in value)
    return isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal())


def _device(entry: dict[str, Any], redaction: Redaction) -> dict[str, Any]:
    name = entry.get("name")
    return {
        **_numbers(entry, _DEVICE),
        **({"name": redaction.device(name)} if isinstance(name, str) else {}),
    }


def _job(value: dict[str, Any], redaction: Redaction) -> dict[str, Any]:
    groups = value.get("pg_config")
    listed = [
        {
            "pg_name": redaction.group(str(group.get("pg_name", ""))),
            **_numbers(group, ("pg_size", "ranks")),
        }
        for group in (groups if isinstance(groups, list) else [])
        if isinstance(group, dict)
    ]
    backend = redaction.word(str(value.get("backend", "")), ("nccl", "gloo", "mpi", "ucc"))
    return {
        **_numbers(value, ("rank", "world_size", "pg_count")),
        "backend": backend,
        "nccl_version": redaction.version(str(value.get("nccl_version", ""))),
        "pg_config": listed,
    }


def _recorded(value: dict[str, Any], redaction: Redaction) -> dict[str, Any]:
    """What a recording of capture says of itself, without model, machine and reasons."""

    def part(name: str) -> dict[str, Any]:
        given = value.get(name)
        return given if isinstance(given, dict) else {}

    unstable = part("gpu_state").get("unstable")
    precision = value.get("precision")
    reasons = ["they were unstable" for _ in unstable] if isinstance(unstable, list) else []
    return {
        **_numbers(value, _RECORDED),
        "unit": "step" if value.get("unit") == "step" else "forward",
        "precision": redaction.word(str(precision), _PRECISIONS, "other") if precision else "",
        "versions": {"torch": redaction.version(str(part("versions").get("torch", "")))},
        "latency": _numbers(part("latency"), _LATENCY),
        "warmup": _numbers(part("warmup"), ("steady", "medians_ns")),
        "profile": _numbers(part("profile"), ("profiled_wall_ns", "steps")),
        "load": _numbers(part("load"), ("busy",)),
        "gpu_state": {"unstable": reasons},
    }
