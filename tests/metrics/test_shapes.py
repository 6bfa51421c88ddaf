"""FLOPs and shapes of convolutions, forward, transposed and backward, against torch on recorded calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyze.metrics.shapes import bytes_of, convolution_output, flops_of, read_inputs
from analyze.trace import Trace

torch = pytest.importorskip("torch")

FORWARD, BACKWARD = "aten::convolution", "aten::convolution_backward"


def recorded(model: Any, source: Any, path: Path) -> dict[str, tuple[str | None, ...]]:
    """Inputs of the convolution and its backward, as a profiled run records them."""
    with torch.profiler.profile(record_shapes=True) as profiler:
        model(source).square().sum().backward()
    profiler.export_chrome_trace(str(path))
    rows = Trace.load(path).ops.cast(dict.fromkeys(("name", "input_dims", "input_types", "concrete_inputs"), str))
    return {row[0]: row[1:] for row in rows.select("name", "input_dims", "input_types", "concrete_inputs").iter_rows()}


@pytest.mark.parametrize("needs_input_gradient", [True, False])
@pytest.mark.parametrize(
    ("make", "options"),
    [
        ("Conv2d", {"stride": 2, "padding": 1}),
        ("Conv2d", {"dilation": 2, "padding": 3, "bias": False}),
        ("Conv1d", {"stride": 3}),
        ("Conv3d", {}),
        ("ConvTranspose2d", {"stride": 2, "padding": 1, "output_padding": 1}),
        ("ConvTranspose1d", {"stride": 3, "dilation": 2, "output_padding": 2}),
        ("Conv2d", {"groups": 2}),
        ("ConvTranspose2d", {"groups": 2, "stride": 2}),
    ],
)
def test_convolutions(make: str, options: dict[str, Any], needs_input_gradient: bool, tmp_path: Path) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = getattr(torch.nn, make)(4, 6, 3, **options)
    source = torch.randn(2, 4, *[9, 10, 11][: int(make[-2])], requires_grad=needs_input_gradient)
    ops = recorded(model, source, tmp_path / "t.json")
    output = model(source)
    ahead, back = read_inputs(*ops[FORWARD]), read_inputs(*ops[BACKWARD])
    assert ahead is not None
    assert convolution_output(FORWARD, ahead) == tuple(output.shape)
    with FlopCounterMode(display=False) as counter:
        model(source).square().sum().backward()
    counted = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    assert flops_of(FORWARD, ahead) == counted["aten.convolution"]
    gradients = 1 + needs_input_gradient
    assert flops_of(BACKWARD, back) == gradients * counted["aten.convolution"]
    if "groups" not in options:  # torch counts the gradient of grouped weights as if they were not grouped
        assert flops_of(BACKWARD, back) == counted["aten.convolution_backward"]
    x, w, y = source.numel(), model.weight.numel(), output.numel()
    assert bytes_of(BACKWARD, back) == 4 * (y + x + w + (x + w) * needs_input_gradient)


MASKED = '["","","","[0]","[1, 1]","[1, 1]","[1, 1]","False","[0, 0]","1","[False, True, False]"]'
DIMS, TYPES = "[[10,64,56,56],[10,3,58,58],[64,3,3,3],[],[],[],[],[],[],[],[]]", '["float","float","float"]'


def test_a_gradient_that_is_not_made_takes_no_work() -> None:
    product = 2 * 10 * 64 * 56 * 56 * 3 * 9
    assert flops_of(BACKWARD, read_inputs(DIMS, TYPES, MASKED)) == product
    assert flops_of(BACKWARD, read_inputs(DIMS, TYPES, MASKED.replace("[False,", "[True,"))) == 2 * product


@pytest.mark.parametrize(
    "concrete", [None, "[]", MASKED.replace("[False, True, False]", ""), MASKED.replace('"False"', '""')]
)
def test_nothing_without_the_arguments(concrete: str | None) -> None:
    assert flops_of(BACKWARD, read_inputs(DIMS, TYPES, concrete)) is None


def test_public_trace(shared: Path) -> None:
    """The last block of a ResNet: gradients of a 512x512x3x3 convolution on 7x7 in bf16."""
    ops = Trace.load(shared / "traces" / "mi300_resnet_training.json.gz").ops
    rows = ops.cast(dict.fromkeys(("name", "input_dims", "input_types", "concrete_inputs"), str))
    found = {
        flops_of(name, read_inputs(*inputs))
        for name, *inputs in rows.select("name", "input_dims", "input_types", "concrete_inputs").iter_rows()
        if name == BACKWARD
    }
    assert None not in found
    assert 2 * (2 * 10 * 512 * 49 * 512 * 9) in found


HEADS = "[[2,3,64,16],[2,3,64,16],[2,3,64,16],[],[],[],[],[]]"
LONGER = "[[2,3,64,16],[2,3,256,16],[2,3,256,16],[],[],[],[],[]]"
SHORTER = "[[2,3,256,16],[2,3,64,16],[2,3,64,16],[],[],[],[],[]]"
CAUSAL_AT = {
    "aten::scaled_dot_product_attention": 5,
    "aten::_scaled_dot_product_attention_math": 5,
    "aten::_scaled_dot_product_flash_attention": 4,
    "aten::_scaled_dot_product_flash_attention_for_cpu": 4,
    "aten::_scaled_dot_product_efficient_attention": 6,
    "aten::_scaled_dot_product_cudnn_attention": 6,
    "aten::_scaled_dot_product_fused_attention_overrideable": 5,
}


@pytest.mark.parametrize("op", CAUSAL_AT)
def test_causal_attention_takes_half(op: str) -> None:
    """Where `is_causal` stands is torch's own schema; another True is another flag."""
    import torch

    schema = getattr(torch.ops.aten, op.removeprefix("aten::")).default._schema
    assert [argument.name for argument in schema.arguments].index("is_causal") == CAUSAL_AT[op]
    full = 4 * 2 * 3 * 64 * 64 * 16
    for at in range(8):
        concrete = str(["True" if i == at else "" for i in range(8)]).replace("'", '"')
        inputs = read_inputs(HEADS, '["float","float","float"]', concrete)
        assert flops_of(op, inputs) == (full // 2 if at == CAUSAL_AT[op] else full)
    assert flops_of(op, read_inputs(HEADS, '["float","float","float"]')) == full


@pytest.mark.parametrize(("dims", "pairs"), [(HEADS, 64 * 64 / 2), (LONGER, 64 * 64 / 2), (SHORTER, 64 * (256 - 32))])
def test_causal_queries_see_keys_up_to_their_place(dims: str, pairs: float) -> None:
    concrete = '["","","","","","True"]'
    found = flops_of("aten::scaled_dot_product_attention", read_inputs(dims, '["float","float","float"]', concrete))
    assert found == 4 * 2 * 3 * pairs * 16


def test_the_flag_is_read_from_a_file(tmp_path: Path) -> None:
    from torch.nn.functional import scaled_dot_product_attention

    source = torch.randn(2, 3, 64, 16)
    with torch.profiler.profile(record_shapes=True) as profiler:
        scaled_dot_product_attention(source, source, source, is_causal=True)
        scaled_dot_product_attention(source, source, source)
    profiler.export_chrome_trace(str(tmp_path / "t.json"))
    ops = Trace.load(tmp_path / "t.json").ops.cast(
        dict.fromkeys(("name", "input_dims", "input_types", "concrete_inputs"), str)
    )
    names = ("name", "input_dims", "input_types", "concrete_inputs")
    found = [
        flops_of(name, read_inputs(*inputs))
        for name, *inputs in ops.sort("start_ns").select(*names).iter_rows()
        if name == "aten::scaled_dot_product_attention"
    ]
    full = 4 * 2 * 3 * 64 * 64 * 16
    assert found == [full // 2, full]
