"""What a kernel can compute: the categories, and what holds for each of them."""

from __future__ import annotations

from msgspec import Struct

REST = "the rest"


class Category(Struct, frozen=True):
    """One kind of work.

    Attributes:
        name: as in tables and in JSON.
        label: as in a sentence.
        group: the group that a reader asks for first, `REST` for categories outside all of them.
        heavy: limited by arithmetic or by the network, so that chains of fusible kernels end at it.
        memory_bound: reads and writes tensors and computes little: a compiler can fuse it with its neighbours.
        has_precision: multiplies in a precision that the report judges.
    """

    name: str
    label: str
    group: str = REST
    heavy: bool = False
    memory_bound: bool = False
    has_precision: bool = False


CATEGORIES = (
    Category("gemm", "GEMM", group="GEMM", heavy=True, has_precision=True),
    Category("convolution", "convolution", group="convolution", heavy=True, has_precision=True),
    Category("attention", "attention", group="attention", heavy=True, has_precision=True),
    Category("normalization", "normalization", group="normalization", memory_bound=True),
    Category("softmax", "softmax", memory_bound=True),
    Category("activation", "activation", group="elementwise", memory_bound=True),
    Category("elementwise", "elementwise", group="elementwise", memory_bound=True),
    Category("reduction", "reduction", memory_bound=True),
    Category("embedding_gather", "embedding and gather"),
    Category("copy_layout", "copies and layout changes by kernels", group="copies", memory_bound=True),
    Category("quantization", "quantization", memory_bound=True),
    Category("moe", "mixture of experts", heavy=True),
    Category("communication", "communication", group="communication", heavy=True),
    Category("memcpy", "memcpy", group="copies"),
    Category("memset", "memset", group="copies"),
    Category("optimizer", "optimizer"),
    Category("rng", "random numbers"),
    Category("sort_topk", "sort and top-k"),
    Category("pooling", "pooling"),
    Category("triton_fused_other", "fused by Triton", memory_bound=True),
    Category("sampling_other", "sampling"),
    Category("other", "other"),
)
NAMES = tuple(category.name for category in CATEGORIES)
LABELS = {category.name: category.label for category in CATEGORIES}
HEAVY = tuple(category.name for category in CATEGORIES if category.heavy)
MEMORY_BOUND = tuple(category.name for category in CATEGORIES if category.memory_bound)
WITH_PRECISION = tuple(category.name for category in CATEGORIES if category.has_precision)
GROUPS = ("GEMM", "attention", "elementwise", "normalization", "convolution", "communication", "copies", REST)
MEMBERS = {group: tuple(c.name for c in CATEGORIES if c.group == group) for group in GROUPS}
