"""Each kind of work is declared once, and nothing else lists kinds of work."""

from __future__ import annotations

from analyze.kernels.categories import CATEGORIES, GROUPS, HEAVY, MEMBERS, MEMORY_BOUND, NAMES, WITH_PRECISION
from analyze.kernels.classification import classify_name


def test_every_category_is_in_one_group() -> None:
    assert sorted(name for members in MEMBERS.values() for name in members) == sorted(NAMES)
    assert {category.group for category in CATEGORIES} == set(GROUPS)


def test_categories_are_heavy_or_memory_bound_never_both() -> None:
    assert not set(HEAVY) & set(MEMORY_BOUND)


def test_known_kernels_are_what_a_reader_expects() -> None:
    """What multiplies has a precision; what runs at memory bandwidth is fusible; a copy is neither."""
    gemm = classify_name("ampere_sgemm_128x64_tn").category
    add = classify_name(
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>"
    ).category
    assert gemm in WITH_PRECISION
    assert gemm in HEAVY
    assert add in MEMORY_BOUND
    assert "memcpy" in MEMBERS["copies"]
    assert "memcpy" not in (*HEAVY, *MEMORY_BOUND)
