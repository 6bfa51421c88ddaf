"""Kernel names to category, family, precision and matrix-unit use."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import polars as pl
from msgspec import Struct

from analyze.kernels.fusion import does_several
from analyze.kernels.names import KernelName, parse
from analyze.kernels.precision import precision_of, uses_matrix_unit
from analyze.kernels.rule import NameRule
from analyze.kernels.rules import RULES
from analyze.kernels.table import RuleTable

SCHEMA: dict[str, type[pl.DataType]] = {
    "name": pl.String,
    "category": pl.String,
    "family": pl.String,
    "precision": pl.String,
    "tensor_core": pl.Boolean,
    "fused": pl.Boolean,
}
TABLE = RuleTable(RULES)
_TENSOR_CORE = {"yes": True, "no": False, "unknown": None}


class KernelKind(Struct, frozen=True):
    """What a kernel name says about the kernel; `tensor_core` is None where it does not say."""

    category: str
    family: str
    precision: str
    tensor_core: bool | None
    fused: bool


UNRECOGNISED = KernelKind("other", "unrecognised", "unknown", tensor_core=False, fused=False)


def classify(names: Iterable[str]) -> pl.DataFrame:
    """Classify kernel names by what they compute.

    Args:
        names: kernel names as recorded, in any order, repeated or not.

    Returns:
        One row per name, in the order given: name, category (one of `categories.NAMES`), family, precision (`fp32`,
        `tf32`, `fp16`, `bf16`, `fp64`, `fp8`, `fp4`, `int8`, `mixed` or `unknown`), tensor_core (null where the
        name does not say) and fused (the kernel does the work of several operators).
    """
    listed = list(names)
    kinds = [classify_name(name) for name in listed]
    columns = {field: [getattr(kind, field) for kind in kinds] for field in SCHEMA if field != "name"}
    return pl.DataFrame({"name": listed, **columns}, schema=SCHEMA)


@lru_cache(maxsize=20_000)
def classify_name(name: str) -> KernelKind:
    """Classify one kernel name."""
    kernel = parse(name)
    return kind_of(kernel, TABLE.match(kernel))


def kind_of(kernel: KernelName, rule: NameRule | None) -> KernelKind:
    """Complete what the rule says with the markers in the name."""
    if rule is None:
        return UNRECOGNISED
    precision = rule.precision or precision_of(kernel, rule.category)
    tensor_core = _TENSOR_CORE[rule.tensor_core] if rule.tensor_core else uses_matrix_unit(kernel, rule.category)
    return KernelKind(rule.category, rule.family, precision, tensor_core, rule.fused or does_several(kernel))
