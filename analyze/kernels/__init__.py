"""Kernel names to what the kernels compute."""

from analyze.kernels.classify import CATEGORIES, KernelKind, classify, classify_name

__all__ = ["CATEGORIES", "KernelKind", "classify", "classify_name"]
