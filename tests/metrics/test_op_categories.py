"""What work was for, by op: an unfused attention is one although its kernels are not; modules; chains; rates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyze.metrics import Measures
from analyze.metrics.shapes import bytes_of, flops_of, read_inputs
from analyze.settings import Definitions
from analyze.timeline import Scope
from analyze.trace import Trace
from tests.builder import TraceBuilder

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108, "totalGlobalMem": 42_000_000_000}
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def measured(trace: Trace) -> Measures:
    return Measures(trace, Definitions(), Scope())


def unfused_attention() -> TraceBuilder:
    """
    frames  [ Block_0 [ Attention_0                                ] [ Linear_9 ] ]
    ops               [ linear  bmm      softmax      bmm          ] [ linear   ]
    """
    b = TraceBuilder().frame("nn.Module: Block_0", 0, 500).frame("nn.Module: Attention_0", 10, 300)
    b.frame("nn.Module: Linear_7", 12, 40).op("aten::linear", 15, 30).run("ampere_sgemm_128x64_tn", (20, 5), (1000, 10))
    b.op("aten::bmm", 60, 30).run("ampere_sgemm_128x64_nn", (65, 5), (1010, 30))
    b.op("aten::_softmax", 100, 30).run("void cunn_SoftMaxForward<4, float>(float*)", (105, 5), (1040, 25))
    b.op("aten::bmm", 140, 30).run("ampere_sgemm_128x64_nn", (145, 5), (1065, 20))
    b.frame("nn.Module: Linear_9", 320, 60).op("aten::linear", 325, 30)
    return b.run("ampere_sgemm_128x64_tn", (330, 5), (1085, 15))


def test_unfused_attention_is_attention_by_op_only(load: Callable[[TraceBuilder], Trace]) -> None:
    purpose = measured(load(unfused_attention())).op_categories
    groups = {g.group: (g.by_kernel, g.by_op) for g in purpose.groups}
    assert groups["attention"] == (0.0, 0.75)
    assert groups["GEMM"] == (0.75, 0.25)
    assert groups["the rest"] == (0.25, 0.0)
    for column in (0, 1):
        assert sum(g[column] for g in groups.values()) == pytest.approx(1)
    attention = next(c for c in purpose.categories if c.category == "attention")
    assert (attention.count, attention.sum_ns, attention.by_kernel_ns) == (3, 75_000, 0)


def test_time_by_module(load: Callable[[TraceBuilder], Trace]) -> None:
    """The projection inside the attention is told apart from the Linear beside it."""
    found = {m.module: (m.self_device_ns, m.total_device_ns) for m in measured(load(unfused_attention())).modules}
    assert found == {
        "Block": (0, 100_000),
        "Block > Attention": (75_000, 85_000),
        "Attention > Linear": (10_000, 10_000),
        "Block > Linear": (15_000, 15_000),
    }


def test_kernels_without_an_op_keep_the_kernels_category(load: Callable[[TraceBuilder], Trace]) -> None:
    b = TraceBuilder().run("ampere_sgemm_128x64_tn", (0, 5), (10, 10), api="cudaGraphLaunch")
    (category,) = measured(load(b)).op_categories.categories
    assert (category.category, category.without_op_ns) == ("gemm", 10_000)


def test_unclassified_kernels_are_named_and_noticed(report_of: Callable[..., dict[str, Any]]) -> None:
    b = TraceBuilder().run("zzz_qqq", (0, 5), (10, 10)).run("ampere_sgemm_128x64_tn", (20, 5), (30, 90))
    found = report_of(b)
    assert found["op_categories"]["other"] == [{"name": "zzz_qqq", "count": 1, "sum_ns": 10_000, "share": 0.1}]
    assert "unclassified-kernels" in {n["id"] for n in found["notices"]}


def test_chains_lie_between_heavy_kernels_on_one_stream(load: Callable[[TraceBuilder], Trace]) -> None:
    """
    stream 7   gemm  add norm  gemm  add  gemm  add add     (the second is one alone, the third has no end)
    stream 8                        norm norm               (no heavy one beside it)
    """
    b = TraceBuilder()
    names = ["sgemm", ADD, NORM, "sgemm", ADD, "sgemm", ADD, ADD]
    for i, name in enumerate(names):
        b.run("ampere_sgemm_128x64_tn" if name == "sgemm" else name, (10 * i, 5), (100 + 20 * i, 10))
    for i in range(2):
        b.run(NORM, (200 + 10 * i, 5), (500 + 20 * i, 10), stream=8)
    fusion = measured(load(b)).fusion
    (chain,) = fusion.chains
    assert (chain.steps, chain.count, chain.sum_ns) == (("elementwise", "normalization"), 1, 20_000)
    assert (fusion.chain_count, fusion.chain_kernels) == (1, 2)


def test_casts_inside_an_op_are_autocasts(load: Callable[[TraceBuilder], Trace]) -> None:
    types = {"Input type": ["c10::Half", "float", "Scalar"], "Input Dims": [[8, 8], [8, 8], []]}
    cast = "void at::native::unrolled_elementwise_kernel<at::native::float16_copy_kernel_cuda>(int)"
    b = TraceBuilder().op("aten::linear", 0, 60).op("aten::to", 5, 30).op("aten::_to_copy", 6, 28)
    b.op("aten::copy_", 10, 20, **types).run(cast, (12, 5), (100, 10))
    b.op("aten::to", 70, 30).op("aten::_to_copy", 71, 28).op("aten::copy_", 75, 20, **types).run(
        cast, (78, 5), (120, 5)
    )
    evidence = {e.kind: (e.count, e.sum_ns) for e in measured(load(b)).fusion.evidence}
    assert evidence == {"autocast cast": (1, 10_000), "other cast": (1, 5_000)}


def test_rates_against_the_peaks_of_the_gpu(load: Callable[[TraceBuilder], Trace]) -> None:
    """A GEMM of 2*1024^3 FLOP in 200 us is 10.7 TFLOP/s, 55.1 % of 19.5; an add of 3 * 64 MiB in 200 us 1.007 TB/s."""
    mm = {"Input type": ["float", "float"], "Input Dims": [[1024, 1024], [1024, 1024]]}
    add = {"Input type": ["float", "float", "Scalar"], "Input Dims": [[4096, 4096], [4096, 4096], []]}
    b = TraceBuilder().op("aten::mm", 0, 20, **mm).run("ampere_sgemm_128x64_tn", (5, 5), (100, 200))
    b.op("aten::add", 30, 20, **add).run(ADD, (35, 5), (400, 200))
    b.metadata["deviceProperties"] = [A100]
    product, addition = sorted(measured(load(b)).roofline.rates, key=lambda r: r.op, reverse=True)
    assert product.flops == 2 * 1024**3
    assert product.flops_per_s == pytest.approx(2 * 1024**3 / 200e-6)
    assert product.flops_share == pytest.approx(2 * 1024**3 / 200e-6 / 19.5e12)
    assert (product.precision, product.limited_by) == ("fp32", "compute")
    assert addition.size_bytes == 3 * 64 * 2**20
    assert addition.bytes_share == pytest.approx(3 * 64 * 2**20 / 200e-6 / 1555e9)
    assert (addition.flops_per_s, addition.limited_by) == (None, "memory")


def test_nothing_is_compared_with_an_unknown_gpu_or_without_shapes(report_of: Callable[..., dict[str, Any]]) -> None:
    mm = {"Input type": ["float", "float"], "Input Dims": [[1024, 1024], [1024, 1024]]}
    found = report_of(TraceBuilder().op("aten::mm", 0, 20, **mm).run("ampere_sgemm_128x64_tn", (5, 5), (100, 200)))
    (rate,) = found["roofline"]["rates"]
    assert (rate["flops_share"], rate["limited_by"]) == (None, "")
    assert "roofline-share" in {n["id"] for n in found["not_measured"]}
    found = report_of(TraceBuilder().op("aten::mm", 0, 20).run("ampere_sgemm_128x64_tn", (5, 5), (100, 200)))
    assert found["roofline"]["rates"] == []
    assert "roofline" in {n["id"] for n in found["not_measured"]}


def test_a_short_kernel_far_from_both_peaks_is_limited_by_its_launch(load: Callable[[TraceBuilder], Trace]) -> None:
    mm = {"Input type": ["float", "float"], "Input Dims": [[16, 16], [16, 16]]}
    b = TraceBuilder().op("aten::mm", 0, 20, **mm).run("ampere_sgemm_128x64_tn", (5, 5), (100, 4))
    b.metadata["deviceProperties"] = [A100]
    assert measured(load(b)).roofline.rates[0].limited_by == "launch"


def test_a_long_kernel_that_reaches_no_peak_is_limited_by_neither(load: Callable[[TraceBuilder], Trace]) -> None:
    """3.6 % of peak is no limit by compute, whatever side of the ridge the shapes lie on."""
    mm = {"Input type": ["float", "float"], "Input Dims": [[1024, 1024], [1024, 1024]]}
    for us, limit in ((200, "compute"), (540, "compute"), (560, "neither")):
        b = TraceBuilder().op("aten::mm", 0, 20, **mm).run("ampere_sgemm_128x64_tn", (5, 5), (100, us))
        b.metadata["deviceProperties"] = [A100]
        (rate,) = measured(load(b)).roofline.rates
        assert rate.limited_by == limit, rate.flops_share


def test_a_product_of_which_only_the_sums_were_recorded_has_no_rate(load: Callable[[TraceBuilder], Trace]) -> None:
    """A cut file: the split-K sums alone would make the product many times as fast as it was."""
    mm = {"Input type": ["float", "float"], "Input Dims": [[1024, 1024], [1024, 1024]]}
    b = TraceBuilder().op("aten::mm", 0, 20, **mm)
    b.run("void splitKreduce_kernel<float, float, float, float, true, false, false>(Params)", (5, 2), (50, 4))
    assert measured(load(b)).roofline.rates == ()
    b.op("aten::mm", 100, 20, **mm).run("ampere_sgemm_128x64_tn", (105, 5), (200, 200))
    (rate,) = measured(load(b)).roofline.rates
    assert (rate.calls, rate.device_ns) == (1, 200_000)


F32 = '["float","float","float"]'
CASES = [
    ("aten::addmm", "[[768],[788,768],[768,3072],[],[]]", F32, None, 2 * 788 * 768 * 3072),
    ("aten::bmm", "[[16,100,64],[16,64,100]]", F32, None, 2 * 16 * 100 * 64 * 100),
    ("aten::scaled_dot_product_attention", "[[2,4,10,8],[2,4,12,8],[2,4,12,8]]", F32, None, 4 * 2 * 4 * 10 * 12 * 8),
    ("aten::_scaled_dot_product_flash_attention_backward", "[[2,4,10,8],[2,4,12,8],[2,4,12,8]]", F32, None, None),
    (
        "aten::conv2d",
        "[[2,3,224,224],[8,3,16,16],[8],[],[],[],[]]",
        F32,
        '["","","","[16, 16]","[0, 0]","[1, 1]","1"]',
        2 * 2 * 8 * 14 * 14 * 3 * 256,
    ),
    (
        "aten::cudnn_convolution",
        "[[2,8,9,9],[16,4,3,3],[],[],[],[]]",
        F32,
        '["","","[1, 1]","[2, 2]","[1, 1]","2"]',
        2 * 2 * 16 * 5 * 5 * 4 * 9,
    ),
    ("aten::conv2d", "[[2,3,224,224],[8,3,16,16],[8],[],[],[],[]]", F32, None, None),
    ("aten::mm", "[[2,3],[4,5]]", F32, None, None),
    ("aten::mm", None, None, None, None),
    ("aten::mm", "{", "[", None, None),
    ("aten::mm", "[[-1,3],[3,true]]", F32, None, None),
]


@pytest.mark.parametrize(("op", "dims", "types", "concrete", "flops"), CASES)
def test_flops(op: str, dims: str | None, types: str | None, concrete: str | None, flops: int | None) -> None:
    assert flops_of(op, read_inputs(dims, types, concrete)) == flops


@pytest.mark.parametrize(
    ("op", "dims", "types", "size"),
    [
        ("aten::add", "[[4,8],[8],[]]", '["c10::Half","c10::Half","Scalar"]', 2 * (32 + 8 + 32)),
        ("aten::copy_", "[[4,8],[4,8],[]]", '["c10::Half","float","Scalar"]', 32 * 2 + 32 * 4),
        ("aten::native_layer_norm", "[[4,8],[],[8],[8],[]]", '["float","ScalarList","float","float","Scalar"]', 4 * 80),
        ("aten::mm", "[[4,8],[8,2]]", '["float","float"]', 4 * (32 + 16 + 8)),
        ("aten::mm", "[[4,8],[8,2],[4,2]]", '["float","float","float"]', 4 * (32 + 16 + 8)),  # out=
        ("aten::addmm", "[[2],[4,8],[8,2],[],[],[4,2]]", '["float","float","float","","","float"]', 4 * (2 + 48 + 8)),
        ("aten::mul", "[[4,8],[8],[4,8]]", '["float","float","float"]', 4 * (32 + 8 + 32)),  # out=
        ("aten::mul", "[[4,8],[8]]", '["c10::Half","float"]', 2 * 32 + 4 * 8 + 4 * 32),
        ("aten::mul", "[[4,8],[]]", '["c10::Half","float"]', 2 * 64),  # a number as a tensor promotes nothing
        ("aten::mul", "[[4,8],[4,8]]", '["long","c10::Half"]', 8 * 32 + 2 * 32 + 2 * 32),
        ("aten::add", "[[4],[4]]", '["c10::Half","c10::BFloat16"]', 8 + 8 + 16),
        ("aten::div", "[[4],[4]]", '["long","long"]', None),  # makes the default float type
        ("aten::mul_", "[[4,8],[8]]", '["c10::Half","float"]', 2 * 32 + 4 * 8 + 2 * 32),
        ("aten::where", "[[4,8],[4,8],[8]]", '["bool","float","float"]', 32 + 4 * 40 + 4 * 32),
        ("aten::add", "[[4,8],[7],[]]", '["float","float","Scalar"]', None),
        ("aten::add", "[[4,8],[4,8],[]]", '["mystery","mystery","Scalar"]', None),
        ("aten::sort", "[[4,8]]", '["float"]', None),
    ],
)
def test_bytes(op: str, dims: str, types: str, size: int | None) -> None:
    assert bytes_of(op, read_inputs(dims, types)) == size


def test_public_traces(shared: Path) -> None:
    """Unfused attention by op; kernels of a graph classified without any op; exposed and hidden communication."""
    owlv2 = measured(Trace.load(shared / "traces" / "h100_owlv2_large.json.gz"))
    attention = next(g for g in owlv2.op_categories.groups if g.group == "attention")
    assert attention.by_kernel == 0
    assert attention.by_op == pytest.approx(0.8685, abs=0.001)
    assert next(c.share for c in owlv2.categories if c.category == "softmax") == pytest.approx(0.463, abs=0.001)
    graph = measured(Trace.load(shared / "traces" / "mi300_vllm_decode_graph.json.gz")).op_categories
    assert graph.other_ns < 0.02 * graph.total_ns
    assert next(c for c in graph.categories if c.category == "gemm").without_op_ns > 0
    nccl = measured(Trace.load(shared / "traces" / "a100_nccl_training.json.gz"))
    device, (pair, *_) = nccl.devices[0], nccl.overlap[0].pairs
    assert (pair.second, device.exposed_communication_ns > 0, pair.overlapped_ns > 0) == ("communication", True, True)


def test_rates_that_tie_are_listed_by_their_types(load: Callable[[TraceBuilder], Trace]) -> None:
    """One op, one shape, one time: the types decide, and every run lists the same."""
    b = TraceBuilder()
    for at, kind in enumerate(("float", "c10::Half", "double", "c10::BFloat16")):
        types = {"Input Dims": [[8, 8], [8, 8]], "Input type": [kind, kind]}
        b.op("aten::add", at * 100, 50, **types).run(ADD, (at * 100 + 5, 5), (at * 100 + 20, 10))
    rates = measured(load(b)).roofline.rates
    assert [r.size_bytes for r in rates] == [3 * 64 * size for size in (2, 2, 8, 4)]
