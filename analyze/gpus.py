"""What the GPU could do at best: peaks by precision and memory bandwidth from its maker's data sheet."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TERA, _GIGA, _GIBI = 10**12, 10**9, 2**30
_THREE_PRODUCTS = 3  # 3xTF32 builds one fp32 product of three on tensor cores
_USABLE_MEMORY = 0.9  # of the memory on the box: drivers and ECC keep some
WORTH = 1.25  # times faster: below it another precision is no advice

# Turing chips without tensor cores share their compute capability with those that have them.
_TURING_WITHOUT = re.compile(r"\b(GTX 16\d\d|MX4[0-9]0|MX5[0-9]0|T[4-6]\d0|T1000|T1200|T[12]000)\b", re.IGNORECASE)
_PASCAL_CARDS = re.compile(r"(NVIDIA )?GeForce GTX 10\d\d( Ti)?( \d+GB)?", re.IGNORECASE)
_AMD = re.compile(r"\b(AMD|Radeon|gfx\d+)", re.IGNORECASE)
# Compute capability -> whether the chip has tensor cores, and what products are faster in than in fp32. TF32 is
# left out where GeForce cards, which gain nothing by it, share the capability with others.
_BY_CAPABILITY: dict[tuple[int, int], tuple[bool, tuple[str, ...]]] = {
    (5, 0): (False, ()),
    (5, 2): (False, ()),
    (6, 0): (False, ("fp16",)),
    (6, 1): (False, ()),
    (7, 0): (True, ("fp16",)),
    (7, 2): (True, ("fp16",)),
    (7, 5): (True, ("fp16",)),
    (8, 0): (True, ("tf32", "bf16", "fp16")),
    (8, 6): (True, ("bf16", "fp16")),
    (8, 7): (True, ("bf16", "fp16")),
    (8, 9): (True, ("bf16", "fp16")),
    (9, 0): (True, ("tf32", "bf16", "fp16")),
    (10, 0): (True, ("tf32", "bf16", "fp16")),
    (10, 3): (True, ("tf32", "bf16", "fp16")),
    (12, 0): (True, ("bf16", "fp16")),
}


class Gpu(Struct, frozen=True):
    """One model.

    Attributes:
        name: short name.
        sms: streaming multiprocessors or compute units.
        bandwidth_bytes_per_s: of device memory; 0 where cards of its name differ.
        flops_per_s: dense peak by precision: fp32 (without matrix units), fp32_matrix, tf32, fp16, bf16, fp8, fp64;
            what the GPU lacks is absent.
        source: documents that state bandwidth and peaks.
        memory_bytes: of the card where others of its name have another bandwidth; 0 where the name is enough.
        tensor_cores: the chip has tensor or matrix cores.
    """

    name: str
    sms: int
    bandwidth_bytes_per_s: int
    flops_per_s: dict[str, int]
    source: str
    memory_bytes: int = 0
    tensor_cores: bool = True

    @property
    def faster(self) -> tuple[str, ...]:
        """Precisions in which products run clearly faster than in fp32 on vector units, the most accurate first."""
        fp32 = self.flops_per_s["fp32"]
        return tuple(p for p in ("tf32", "bf16", "fp16") if self.flops_per_s.get(p, 0) > WORTH * fp32)

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


class Abilities(Struct, frozen=True):
    """What a device can multiply with, known even where its peaks are not.

    Attributes:
        units: "tensor cores" or "matrix cores", empty where the chip has neither.
        faster: precisions in which products run faster than in fp32 on vector units, the most accurate first.
    """

    units: str
    faster: tuple[str, ...]


def is_amd(name: str) -> bool:
    """Whether a device's marketing name is one of AMD's."""
    return bool(_AMD.search(name))


def find_abilities(gpu: Gpu | None, name: str, capability: tuple[int, int] | None) -> Abilities | None:
    """What a device can multiply with, by its figures, else by its kind; None where neither is known.

    Args:
        gpu: its model where that is known.
        name: marketing name as the profiler records it.
        capability: CUDA compute capability as recorded, None where not; what AMD devices record is another number.
    """
    if is_amd(name):
        if gpu is None:
            return None
        # Frameworks have no switch for xf32 that holds for all their libraries, so half precision is the advice.
        return Abilities("matrix cores", tuple(p for p in gpu.faster if p != "tf32"))
    if gpu is not None:
        return Abilities("tensor cores" if gpu.tensor_cores else "", gpu.faster)
    if _PASCAL_CARDS.fullmatch(name.strip()) or (capability in {None, (7, 5)} and _TURING_WITHOUT.search(name)):
        return Abilities("", ())
    if capability not in _BY_CAPABILITY:
        return None
    has_units, faster = _BY_CAPABILITY[capability]
    return Abilities("tensor cores" if has_units else "", faster)


def find_gpu(name: str, sms: int = 0, memory_bytes: int = 0) -> Gpu | None:
    """The model of a device, None when it is not known: no figure is better than that of a similar card.

    Args:
        name: marketing name as the profiler records it.
        sms: multiprocessors as recorded, 0 where not; they distinguish models that share a name, and refuse partitions
            and cut-down variants of a known name.
        memory_bytes: memory as recorded, 0 where not.
    """
    found = [gpu for gpu, patterns in _table() if any(pattern.fullmatch(name.strip()) for pattern in patterns)]
    exact = [gpu for gpu in found if (not sms or gpu.sms == sms) and _has_memory(gpu, memory_bytes)]
    return exact[0] if len(exact) == 1 else None


def known_name(name: str) -> bool:
    """Whether a name is the marketing name of some device, and so says nothing about whose it is."""
    name = name.strip()
    return (
        any(pattern.fullmatch(name) for _, patterns in _table() for pattern in patterns)
        or _PASCAL_CARDS.fullmatch(name) is not None
    )


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
    bandwidth, memory = round(row.get("bandwidth", 0) * _GIGA), row.get("memory", 0) * _GIBI
    return Gpu(row["name"], row["sms"], bandwidth, peaks, source, memory, row.get("tensor_cores", True))


def all_gpus() -> tuple[Gpu, ...]:
    """Every known model."""
    return tuple(gpu for gpu, _ in _table())
