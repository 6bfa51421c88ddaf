"""What the GPU could do at best: peaks by precision and memory bandwidth from its maker's data sheet."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TERA, _GIGA, _GIBI = 10**12, 10**9, 2**30
_THREE_PRODUCTS = 3  # 3xTF32 builds one fp32 product of three on tensor cores
_USABLE_MEMORY = 0.9  # of the memory on the box: drivers and ECC keep some


@dataclass(frozen=True, slots=True)
class Gpu:
    """One model.

    Attributes:
        name: short name.
        sms: streaming multiprocessors or compute units.
        bandwidth_bytes_per_s: of device memory.
        flops_per_s: dense peak by precision: fp32 (without matrix units), fp32_matrix, tf32, fp16, bf16, fp8, fp64;
            what the GPU lacks is absent.
        source: documents that state bandwidth and peaks.
        memory_bytes: of the card where others of its name have another bandwidth; 0 where the name tells.
    """

    name: str
    sms: int
    bandwidth_bytes_per_s: int
    flops_per_s: dict[str, int]
    source: str
    memory_bytes: int = 0

    def peak(self, precision: str, *, matrix_unit: bool | None) -> int | None:
        """Peak FLOP/s of kernels of a precision, None where it is not known.

        Args:
            precision: as kernels are classified.
            matrix_unit: the kernels run on tensor or matrix cores; None where their names do not say.
        """
        if precision == "fp32" and matrix_unit:
            split = self.flops_per_s.get("tf32")
            return self.flops_per_s.get("fp32_matrix") or (split // _THREE_PRODUCTS if split else None)
        if precision in ("fp16", "bf16", "fp8") and matrix_unit is False:
            return None  # data sheets have no figure for these on vector units that holds for all kernels
        return self.flops_per_s.get(precision)


def find_gpu(name: str, sms: int = 0, memory_bytes: int = 0) -> Gpu | None:
    """The model of a device, None when it is not known: no figure is better than that of a similar card.

    Args:
        name: marketing name as the profiler records it.
        sms: multiprocessors as recorded, 0 where not; they tell apart models that share a name, and refuse partitions
            and cut-down variants of a known name.
        memory_bytes: memory as recorded, 0 where not.
    """
    found = [gpu for gpu, patterns in _table() if any(pattern.fullmatch(name.strip()) for pattern in patterns)]
    exact = [gpu for gpu in found if (not sms or gpu.sms == sms) and _has_memory(gpu, memory_bytes)]
    return exact[0] if len(exact) == 1 else None


def _has_memory(gpu: Gpu, memory_bytes: int) -> bool:
    if not gpu.memory_bytes:
        return True
    return _USABLE_MEMORY * gpu.memory_bytes <= memory_bytes <= gpu.memory_bytes / _USABLE_MEMORY


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[Gpu, tuple[re.Pattern[str], ...]], ...]:
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    documents = content["documents"]
    return tuple(
        (_gpu(row, documents), tuple(re.compile(m, re.IGNORECASE) for m in row["match"])) for row in content["gpu"]
    )


def _gpu(row: dict[str, Any], documents: dict[str, str]) -> Gpu:
    peaks = {precision: round(value * _TERA) for precision, value in row["tflops"].items()}
    rates = {"bandwidth", *peaks}
    source = "; ".join(documents[key] for key, stated in row["sources"].items() if rates & set(stated.split()))
    bandwidth, memory = round(row["bandwidth"] * _GIGA), row.get("memory", 0) * _GIBI
    return Gpu(row["name"], row["sms"], bandwidth, peaks, source, memory)


def all_gpus() -> tuple[Gpu, ...]:
    """Every known model."""
    return tuple(gpu for gpu, _ in _table())
