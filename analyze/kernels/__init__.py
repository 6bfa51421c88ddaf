"""Kernel names to what the kernels compute."""

from typing import TYPE_CHECKING

from analyze.lazy import lazy_names

if TYPE_CHECKING:
    from analyze.kernels.categories import CATEGORIES, Category
    from analyze.kernels.classification import KernelKind, classify, classify_name
    from analyze.kernels.demangle import readable
    from analyze.kernels.ops import op_category

__all__ = [
    "CATEGORIES",
    "Category",
    "KernelKind",
    "classify",
    "classify_name",
    "deciding",
    "op_category",
    "readable",
]

_PLACES = {
    "CATEGORIES": "analyze.kernels.categories",
    "Category": "analyze.kernels.categories",
    "KernelKind": "analyze.kernels.classification",
    "classify": "analyze.kernels.classification",
    "classify_name": "analyze.kernels.classification",
    "deciding": "analyze.kernels.ops",
    "op_category": "analyze.kernels.ops",
    "readable": "analyze.kernels.demangle",
}

__getattr__ = lazy_names(__name__, _PLACES)
