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

_TERA, _GIGA = 10**12, 10**9
_THREE_PRODUCTS = 3  # 3xTF32 builds one fp32 product of three on tensor cores


@dataclass(frozen=True, slots=True)
class Gpu:
    """One model.

    Attributes:
        name: short name.
        sms: streaming multiprocessors or compute units.
        bandwidth_bytes_per_s: of device memory.
        flops_per_s: dense peak by precision: fp32 (without matrix units), fp32_matrix, tf32, fp16, bf16, fp8, fp64;
            what the GPU lacks is absent.
        source: where the figures are from.
    """

    name: str
    sms: int
    bandwidth_bytes_per_s: int
    flops_per_s: dict[str, int]
    source: str

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


def find_gpu(name: str, sms: int = 0) -> Gpu | None:
    """The model of a device, None when it is not known: no figure is better than that of a similar card.

    Args:
        name: marketing name as the profiler records it.
        sms: multiprocessors as recorded, 0 where not; they tell apart models that share a name, and refuse partitions
            and cut-down variants of a known name.
    """
    found = [gpu for gpu, patterns in _table() if any(pattern.fullmatch(name.strip()) for pattern in patterns)]
    exact = [gpu for gpu in found if gpu.sms == sms] if sms else found
    return exact[0] if len(exact) == 1 else None


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[Gpu, tuple[re.Pattern[str], ...]], ...]:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["gpu"]
    return tuple((_gpu(row), tuple(re.compile(m, re.IGNORECASE) for m in row["match"])) for row in rows)


def _gpu(row: dict[str, Any]) -> Gpu:
    peaks = {precision: round(value * _TERA) for precision, value in row["tflops"].items()}
    return Gpu(row["name"], row["sms"], row["bandwidth"] * _GIGA, peaks, row["source"])


def all_gpus() -> tuple[Gpu, ...]:
    """Every known model."""
    return tuple(gpu for gpu, _ in _table())
