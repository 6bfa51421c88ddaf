"""The frame that `classify` returns, for any names."""

from __future__ import annotations

import random
import sys

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyze.kernels import classify, classify_name
from analyze.kernels.categories import NAMES as CATEGORIES
from analyze.kernels.names import parse
from tests.kernels.public_names import PUBLIC_NAMES

KNOWN = [name for names in PUBLIC_NAMES.values() for name in names]
PIECES = st.sampled_from(
    ["void ", "at::native::", "<", ">", "(", ")", "{lambda()#1}", "_ZN", "12", "I", "E", "gemm", "::", " "]
)
NAMES = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join), st.sampled_from(KNOWN))


def test_columns() -> None:
    frame = classify(["ampere_sgemm_128x64_tn", "kernel_mha", "ampere_sgemm_128x64_tn"])
    assert frame.schema == {
        "name": pl.String,
        "category": pl.String,
        "family": pl.String,
        "precision": pl.String,
        "tensor_core": pl.Boolean,
        "fused": pl.Boolean,
    }
    assert frame["name"].to_list() == ["ampere_sgemm_128x64_tn", "kernel_mha", "ampere_sgemm_128x64_tn"]
    assert frame["tensor_core"].to_list() == [False, None, False]


def test_no_names() -> None:
    assert classify([]).shape == (0, 6)
    assert classify(name for name in ()).columns[0] == "name"


def test_odd_names() -> None:
    for name in (
        "",
        " ",
        "\x00",
        "ядро_свёртки",
        "_ZN",
        "_Z",
        "(",
        "<<<",
        "void ",
        "a" * 100_000,
        "x<" * 5_000,
        "_ZN9" * 3_000,
    ):
        assert classify_name(name).category in CATEGORIES


def test_the_front_of_a_huge_name_decides() -> None:
    assert (
        classify_name("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64, " + "int, " * 20_000).category
        == "gemm"
    )


@given(st.lists(NAMES, max_size=20), st.randoms(use_true_random=False))
def test_rows_do_not_depend_on_order(names: list[str], shuffler: random.Random) -> None:
    shuffled = shuffler.sample(names, len(names))
    frame = classify(names)
    assert frame["name"].to_list() == names
    assert frame["category"].is_in(CATEGORIES).all()
    assert classify(shuffled).unique().sort("name").equals(frame.unique().sort("name"))


@given(NAMES)
def test_same_name_same_kind(name: str) -> None:
    first = classify_name(name)
    classify_name.cache_clear()
    assert classify_name(name) == first


@given(st.text(max_size=300))
def test_parse_accepts_any_text(name: str) -> None:
    kernel = parse(name)
    assert kernel.raw == name
    assert kernel.text == kernel.text.lower()


def test_names_taken_apart() -> None:
    kernel = parse("void at::native::(anonymous namespace)::RMSNormKernel<c10::Half, 4>(int, float)")
    assert kernel.name == "at::native::anonymous::rmsnormkernel"
    assert kernel.words == "at_native_anonymous_rms_norm_kernel"
    assert kernel.text == "at::native::anonymous::rmsnormkernel<c10::half, 4>"
    lambda_kernel = parse("void at::native::f<g(at::Tensor&)::{lambda(int)#1}>(int, g(at::Tensor&)::{lambda(int)#1})")
    assert lambda_kernel.text == "at::native::f<g(at::tensor&)::{lambda(int)#1}>"
    mangled = parse("_ZN2ck4gemmINS_7GridT_1ELi128EDF16_fEEvv")
    assert mangled.name == "ck::gemm"
    if sys.version_info >= (3, 11):  # older versions have no demangler
        assert mangled.text == "ck::gemm<ck::gridt_1, 128, _float16, float>"
    cut = parse("_ZN2ck4gemmINS_7GridT_1ELi128EDF16_f")
    assert (cut.name, cut.text) == ("ck::gemm", "ck::gemm<gridt_1>")
    launched = parse("void cutlass::device_kernel<flash::FlashAttnFwdSm90<int> >(int)")
    assert launched.words == "cutlass_device_kernel_flash_flash_attn_fwd_sm90_int"
