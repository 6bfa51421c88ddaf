"""Short names: as people say them, and never the same for two kernels."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.kernels.short_names import short_name, short_names
from tests.kernels.labels import read_labels

ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, "
    "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, at::native::BinaryFunctor<float, "
    "float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)"
)
UNARY = ELEMENTWISE.replace("BinaryFunctor<float, float, float", "AUnaryFunctor<float, float, float")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (ELEMENTWISE, "vectorized_elementwise<MulFunctor<float>>"),
        (
            "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, c10::BFloat16, float, c10::BFloat16, "
            "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)",
            "cunn_SoftMaxForward<bf16>",
        ),
        (
            "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>"
            "(cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1::Params)",
            "cutlass bf16_s1688gemm 256x128 tn align1",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid_kernel_cuda(at::TensorIteratorBase&)"
            "::{lambda()#2}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int)",
            "vectorized_elementwise<sigmoid_kernel_cuda<float>>",
        ),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long)",
         "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        ("", ""),
        ("<<<<", "<<<<"),
        ("a<b", "a"),
    ],
)  # fmt: skip
def test_as_people_say_them(name: str, short: str) -> None:
    assert short_name(name) == short


def test_names_that_come_out_alike_get_more_of_their_arguments_and_then_a_number() -> None:
    found = short_names([ELEMENTWISE, UNARY])
    assert found[ELEMENTWISE] == "vectorized_elementwise<BinaryFunctor<float, MulFunctor<float>>>"
    assert found[UNARY] == "vectorized_elementwise<AUnaryFunctor<float, MulFunctor<float>>>"
    assert list(short_names(["f(int)", "f(long)"]).values()) == ["f #1", "f #2"]


def test_no_two_known_kernels_share_one(shared: Path) -> None:
    names = [label.name for label in read_labels(shared / "kernels" / "labels.tsv")]
    found = short_names(names)
    assert len(set(found.values())) == len(set(names))
    assert sorted(len(short) for short in found.values())[len(found) // 2] < 50


@given(st.lists(st.text(alphabet="ab<>(){}, :&*#1_", max_size=40), max_size=12))
def test_any_texts_get_names_of_their_own(names: list[str]) -> None:
    found = short_names(names)
    assert found.keys() == set(names)
    assert len(set(found.values())) == len(found)


def test_depth_and_length_are_bounded() -> None:
    for text in ("f<" * 20_000, "f<" * 20_000 + ">" * 20_000, "a::" * 50_000, "{lambda(" * 10_000, "x" * 100_000):
        assert isinstance(short_name(text), str)
        assert isinstance(short_name("k<" + text, 2), str)
    r = random.Random(1)
    assert len(short_names("".join(r.choices("ab<>(),", k=3_000)) for _ in range(50))) == 50
