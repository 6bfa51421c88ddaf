"""Where a recording was made: device, versions, threads, load and the few variables that change a result."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from capture.device import Device

RECORDED_VARIABLES = (
    "CUBLASLT_WORKSPACE_SIZE",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "DISABLE_CUPTI_LAZY_REINIT",
    "GOMP_SPINCOUNT",
    "HF_HUB_OFFLINE",
    "KINETO_LOG_LEVEL",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TEARDOWN_CUPTI",
    "TIMM_FUSED_ATTN",
    "TORCHINDUCTOR_FREEZING",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DISABLE",
)
"""Whole names and nothing else: a family such as HF_* would take tokens and private paths along."""


@dataclass(frozen=True)
class DeviceInfo:
    """The device; what a CPU does not have is None.

    Attributes:
        type: "cuda" or "cpu".
        name: As the device calls itself.
        index: Of the CUDA device.
        sm_count: Multiprocessors.
        capability: Compute capability, such as [9, 0].
        total_memory_bytes: Of the device.
        l2_cache_bytes: Of the device.
    """

    type: str
    name: str
    index: int | None = None
    sm_count: int | None = None
    capability: tuple[int, int] | None = None
    total_memory_bytes: int | None = None
    l2_cache_bytes: int | None = None


@dataclass(frozen=True)
class Versions:
    """Versions; None for what is not there."""

    python: str
    torch: str
    timm: str | None
    cuda: str | None
    hip: str | None
    cudnn: int | None
    driver: str | None
    platform: str


@dataclass(frozen=True)
class Threads:
    """Threads that may compute.

    Attributes:
        intra_op: torch's threads within an operator.
        inter_op: torch's threads between operators.
        usable_cores: Cores that this process may run on.
    """

    intra_op: int
    inter_op: int
    usable_cores: int


@dataclass(frozen=True)
class Load:
    """Work of the whole machine.

    Attributes:
        average_1m: Runnable threads averaged over the minute before the recording; None where unknown.
        average_1m_after: The same at its end; this process has its part in it.
        busy: Whether either is above the number of usable cores: more wanted to run than could.
    """

    average_1m: float | None
    average_1m_after: float | None
    busy: bool | None


def describe_device(device: Device) -> DeviceInfo:
    """Name and size of the device."""
    if device.type == "cpu":
        return DeviceInfo("cpu", _cpu_name())
    properties = torch.cuda.get_device_properties(device.torch_device)
    return DeviceInfo(
        type="cuda",
        name=properties.name,
        index=device.torch_device.index,
        sm_count=properties.multi_processor_count,
        capability=(properties.major, properties.minor),
        total_memory_bytes=properties.total_memory,
        l2_cache_bytes=getattr(properties, "L2_cache_size", None),
    )


def device_uuid(device: Device) -> str | None:
    """The CUDA device's UUID, or None where this torch does not tell it."""
    if device.type == "cpu":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device.torch_device), "uuid", None)
    return None if uuid is None else str(uuid)


def read_versions(device: Device, driver: str | None) -> Versions:
    """Versions of everything that can change a time."""
    return Versions(
        python=platform.python_version(),
        torch=torch.__version__,
        timm=_installed("timm"),
        cuda=torch.version.cuda,
        hip=torch.version.hip,
        cudnn=_cudnn_version() if device.type == "cuda" else None,
        driver=driver,
        platform=f"{platform.system()} {platform.machine()}",
    )


def read_threads() -> Threads:
    """Threads of torch and cores of this process."""
    return Threads(torch.get_num_threads(), torch.get_num_interop_threads(), _usable_cores())


def read_load_average() -> float | None:
    """Runnable threads averaged over the last minute; None where the system does not count them."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def judge_load(before: float | None, after: float | None) -> Load:
    """Set two load averages against the cores of this process."""
    known = [average for average in (before, after) if average is not None]
    return Load(before, after, max(known) > _usable_cores() if known else None)


def read_environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of the allow-list that are set."""
    return {name: variables[name] for name in RECORDED_VARIABLES if name in variables}


def tool_version() -> str:
    """Version of the installed package, or "unknown" when it runs from a checkout."""
    return _installed("gpuledger") or "unknown"


def _installed(package: str) -> str | None:
    # The installed version is asked for rather than the package imported: a recorded loop may do without it.
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cudnn_version() -> int | None:
    read: Callable[[], int | None] = torch.backends.cudnn.version
    return read()


def _usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
