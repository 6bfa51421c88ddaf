"""Kernel names to what the kernels compute."""

from analyze.kernels.categories import CATEGORIES, Category
from analyze.kernels.classify import KernelKind, classify, classify_name
from analyze.kernels.demangle import readable
from analyze.kernels.ops import op_category

__all__ = ["CATEGORIES", "Category", "KernelKind", "classify", "classify_name", "op_category", "readable"]
