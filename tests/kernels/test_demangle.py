"""Mangled names: read where they are whole, kept apart where they are cut, harmless whatever they are."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.kernels import classify_name, readable
from analyze.kernels.demangle import demangle
from analyze.metrics import Measures
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the demangler needs Python 3.11")
GEMM = "_ZN2ck16kernel_gemm_xdlsINS_4GridELi256ENS_1tEttfEEvPKT1_"
CUT = "_ZN2ck11kernel_gemmINS_12GridwiseGemmILi256EttfNS_5Tup"
PIECES = st.sampled_from(
    ["_Z", "N", "S_", "S0_", "I", "E", "1A", "2ck", "Li", "9", "DF16b", "t", "v", "K", "P", "T_", "Tn"]
)


@pytest.mark.parametrize(
    ("mangled", "shown"),
    [
        ("_ZN5aiter36bf16gemm_bf16_tn_256x256_bpreshuffleE", "aiter::bf16gemm_bf16_tn_256x256_bpreshuffle"),
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256EEEvPT0_PT_PfS4_d.kd",
            (
                "void aiter::add_rmsnorm_quant_kernel<std::bfloat16_t, std::bfloat16_t, 256>"
                "(std::bfloat16_t*, std::bfloat16_t*, float*, std::bfloat16_t*, double)"
            ),
        ),
        ("_ZN2at12_GLOBAL__N_16kernelIfEEvPT_", "void at::(anonymous namespace)::kernel<float>(float*)"),
        ("_ZTSN4sycl3FooIiEE", "sycl::Foo<int>"),
        (CUT, "ck::kernel_gemm<NS_12GridwiseGemmILi256EttfNS_5Tup"),
        ("_ZTSN6compat12experimental13KernelFunctorIXad...", "compat::experimental::KernelFunctor<Xad..."),
    ],
)
def test_shown(mangled: str, shown: str) -> None:
    assert readable(mangled) == shown


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_tn",
        "void f<int>(int)",
        "",
        "_Z",
        "_ZN",
        "_ZN2ck16tensor_op",  # cut inside an identifier: which one is not known
        "_ZN5aiter24fmha_fwd_hd128_fp8_gfx950E",  # a length that does not fit
        "_ZN9" * 3_000,
        "_ZN2ck4gemmE\x00",
    ],
)
def test_what_cannot_be_read_stays(name: str) -> None:
    assert readable(name) == name


def test_a_name_that_stands_for_gigabytes_stays_too() -> None:
    """Each template holds the one before it twice: 30 of them spell out 2^30 times `int`."""
    ids = ["", *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    bomb = "_Z1f1AIiiE" + "".join(f"S_IS{i}_S{i}_E" for i in ids[:30])
    began = time.perf_counter()
    assert demangle(bomb) is None
    assert demangle("_Z1f" + "P" * 16_000 + "i") is None
    assert time.perf_counter() - began < 1


@given(st.lists(PIECES, max_size=60).map("".join))
def test_any_pieces(name: str) -> None:
    assert isinstance(readable(name), str)


@pytest.mark.parametrize("mangled", [GEMM, "_ZN5aiter24fmha_fwd_hd128_bf16_gfx9E", CUT])
def test_the_demangled_name_is_classified_as_the_mangled_one(mangled: str) -> None:
    assert classify_name(readable(mangled)).category == classify_name(mangled).category != "other"


def test_the_report_shows_the_readable_name_and_the_trace_keeps_the_recorded_one(tmp_path: Path) -> None:
    b = TraceBuilder().op("aten::mm", 0, 9).run(GEMM, (1, 5), (10, 50)).run("k", (7, 1), (70, 5))
    trace = Trace.load(b.write(tmp_path / "trace.json"))
    assert trace.activities["name"].cast(str).to_list() == [demangle(GEMM), "k"]
    assert trace.activities["recorded_name"].cast(str).to_list() == [GEMM, "k"]
    assert trace.activities["category"].cast(str).to_list()[0] == "gemm"
    uses = Measures(trace, Definitions(), Scope()).precision.uses
    assert [(use.category, use.precision, use.tensor_core) for use in uses] == [("gemm", "bf16", True)]
