"""Work and traffic of an op from the shapes of its inputs: FLOPs and bytes that its mathematics needs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import orjson
from msgspec import Struct

ELEMENT_BYTES = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
    "long int": 8,
    "long": 8,
    "int": 4,
    "short int": 2,
    "signed char": 1,
    "unsigned char": 1,
    "bool": 1,
}
_INTEGRAL = ("long int", "long", "int", "short int", "signed char", "unsigned char", "bool")
Shape = tuple[int, ...]


class Inputs(Struct, frozen=True):
    """Recorded inputs of one op.

    Attributes:
        shapes: per argument; an argument that is a list of tensors gives several, other ones an empty shape.
        types: type per argument as recorded, for lists that of the list.
        concrete: values of arguments that are no tensors, as text; empty where not recorded.
    """

    shapes: tuple[tuple[Shape, ...], ...]
    types: tuple[str, ...]
    concrete: tuple[str, ...] = ()

    def shape(self, at: int) -> Shape:
        """Shape of the tensor argument at a place, empty where there is none."""
        return self.shapes[at][0] if at < len(self.shapes) and len(self.shapes[at]) == 1 else ()

    def element_bytes(self, at: int) -> int:
        """Bytes per element of the argument at a place, 0 for what is no tensor or of unknown type."""
        return ELEMENT_BYTES.get(self.types[at], 0) if at < len(self.types) else 0


def read_inputs(dims: str | None, types: str | None, concrete: str | None = None) -> Inputs | None:
    """Inputs of their JSON texts, None where shapes were not recorded or make no sense."""
    given = _list(dims)
    if given is None:
        return None
    shapes = tuple(_shapes(entry) for entry in given)
    words = tuple(str(t) for t in _list(types) or [])
    return Inputs(shapes, words, tuple(str(c) for c in _list(concrete) or []))


def _list(text: str | None) -> list[Any] | None:
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, list) else None


def _shapes(entry: object) -> tuple[Shape, ...]:
    if not isinstance(entry, list):
        return ((),)
    if entry and all(isinstance(inner, list) for inner in entry):
        return tuple(_shape(inner) for inner in entry)
    return (_shape(entry),)


def _shape(entry: Sequence[object]) -> Shape:
    sizes = tuple(size for size in entry if isinstance(size, int) and not isinstance(size, bool) and size >= 0)
    return sizes if len(sizes) == len(entry) else ()


_PRODUCTS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::baddbmm": (1, 2)}
# Where the arguments (stride, padding, dilation, groups) stand; all begin with input, weight.
_CONVOLUTIONS = {
    "aten::conv1d": (3, 4, 5, 6),
    "aten::conv2d": (3, 4, 5, 6),
    "aten::conv3d": (3, 4, 5, 6),
    "aten::convolution": (3, 4, 5, 8),
    "aten::_convolution": (3, 4, 5, 8),
    "aten::cudnn_convolution": (3, 2, 4, 5),
    "aten::miopen_convolution": (4, 3, 5, 6),
}
# Where the flag of a transposed one stands, and its output padding.
_TRANSPOSED = {"aten::convolution": (6, 7), "aten::_convolution": (6, 7)}
# Where `is_causal` stands among the arguments of an attention op.
_CAUSAL_USUALLY = 5
_CAUSAL_FLAG = {
    "aten::_scaled_dot_product_flash_attention": 4,
    "aten::_scaled_dot_product_flash_attention_for_cpu": 4,
    "aten::_scaled_dot_product_efficient_attention": 6,
    "aten::_scaled_dot_product_cudnn_attention": 6,
}
_CONVOLUTION_BACKWARD = "aten::convolution_backward"
_BACKWARD_FLAG, _BACKWARD_MASK = 7, 10  # its arguments begin with gradient, input, weight


def flops_of(op: str, inputs: Inputs | None) -> int | None:
    """Floating-point operations of a product, convolution or attention, two per multiply and add; None for others.

    Products take 2*M*N*K, convolutions 2 per output element and weight of its channel (transposed ones: per input
    element) and as much again per gradient of input and weight, attention forward 4*B*H*N*N*d (both products, without
    softmax), half of it where it was recorded as causal. Other masks are not subtracted.
    """
    if inputs is None:
        return None
    if op in _PRODUCTS:
        return _product(*(inputs.shape(at) for at in _PRODUCTS[op]))
    if op in _CONVOLUTIONS:
        return _convolution(op, inputs)
    if op == _CONVOLUTION_BACKWARD:
        return _convolution_backward(inputs)
    return _attention(op, inputs) if is_attention_forward(op) else None


def is_attention_forward(op: str) -> bool:
    """Whether an op computes attention as a whole, with queries, keys and values of (batch, heads, tokens, width)."""
    known = op in ("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math")
    return known or (op.startswith("aten::_scaled_dot_product_") and "backward" not in op)


def _product(first: Shape, second: Shape) -> int | None:
    if len(first) < 2 or len(first) != len(second) or first[-1] != second[-2]:
        return None
    return 2 * prod(first) * second[-1]


def _attention(op: str, inputs: Inputs) -> int | None:
    query, key, value = (inputs.shape(at) for at in range(3))
    if not len(query) == len(key) == len(value) >= 3 or key[-2] != value[-2]:
        return None
    queries, keys = query[-2], key[-2]
    pairs_twice = 2 * queries * keys
    if is_causal(op, inputs):  # a query sees the keys up to its own place
        pairs_twice = queries**2 if queries <= keys else keys * (2 * queries - keys)
    return prod(query[:-2]) * pairs_twice * (query[-1] + value[-1])


def is_causal(op: str, inputs: Inputs) -> bool:
    """Whether an attention op was recorded as causal; not where its arguments were not recorded."""
    return _argument(inputs, _CAUSAL_FLAG.get(op, _CAUSAL_USUALLY)) == "True"


def _convolution(op: str, inputs: Inputs) -> int | None:
    output = convolution_output(op, inputs)
    slid_over = inputs.shape(0) if _is_transposed(op, inputs) else output
    return None if output is None or slid_over is None else 2 * prod(slid_over) * prod(inputs.shape(1)[1:])


def _is_transposed(op: str, inputs: Inputs) -> bool:
    return op in _TRANSPOSED and _argument(inputs, _TRANSPOSED[op][0]) == "True"


def convolution_output(op: str, inputs: Inputs) -> Shape | None:
    """Shape of a convolution's output; None where its arguments were not recorded."""
    source, weight = inputs.shape(0), inputs.shape(1)
    places = len(source) - 2
    if places < 1 or len(weight) != len(source):
        return None
    stride, padding, dilation = (_sizes(_argument(inputs, at), places) for at in _CONVOLUTIONS[op][:3])
    if stride is None or padding is None or dilation is None or 0 in stride:
        return None
    reach = [dilation[i] * (weight[2 + i] - 1) + 1 - 2 * padding[i] for i in range(places)]
    if _is_transposed(op, inputs):
        extra, groups = _sizes(_argument(inputs, _TRANSPOSED[op][1]), places), _argument(inputs, _CONVOLUTIONS[op][3])
        if extra is None or not groups.isdecimal():
            return None
        sizes = [(source[2 + i] - 1) * stride[i] + reach[i] + extra[i] for i in range(places)]
        channels = weight[1] * int(groups)
    else:
        sizes = [(source[2 + i] - reach[i]) // stride[i] + 1 for i in range(places)]
        channels = weight[0]
    return (source[0], channels, *sizes) if min(sizes) > 0 else None


def _gradients(inputs: Inputs) -> tuple[bool, bool] | None:
    """Whether a convolution's backward makes the gradients of input and weight; None where that was not recorded."""
    gradient, source, weight = (inputs.shape(at) for at in range(3))
    mask = _list(_argument(inputs, _BACKWARD_MASK).lower())
    if not mask or len(mask) != 3 or not 3 <= len(gradient) == len(source) == len(weight):
        return None
    return bool(mask[0]), bool(mask[1])


def _convolution_backward(inputs: Inputs) -> int | None:
    """Each gradient is a convolution of the size of the forward one."""
    made = _gradients(inputs)
    flag = _argument(inputs, _BACKWARD_FLAG)
    if made is None or flag not in ("True", "False"):
        return None
    slid_over = inputs.shape(1 if flag == "True" else 0)
    return sum(made) * 2 * prod(slid_over) * prod(inputs.shape(2)[1:])


def _convolution_backward_bytes(inputs: Inputs) -> int | None:
    """The output's gradient is read; for the input's gradient the weight, for the weight's gradient the input."""
    made = _gradients(inputs)
    if made is None:
        return None
    sizes = [inputs.element_bytes(at) * prod(inputs.shape(at)) for at in range(3)]
    return sizes[0] + made[0] * (sizes[2] + sizes[1]) + made[1] * (sizes[1] + sizes[2])


def _argument(inputs: Inputs, at: int) -> str:
    return inputs.concrete[at] if at < len(inputs.concrete) else ""


def _sizes(text: str, places: int) -> tuple[int, ...] | None:
    """One size per dimension of a text such as "[1, 1]"; a single one stands for all."""
    sizes = _shape(_list(text) or [])
    if len(sizes) == 1:
        return sizes * places
    return sizes if len(sizes) == places else None


def broadcast(shapes: Sequence[Shape]) -> Shape | None:
    """Shape of an elementwise result, None where the shapes do not fit together."""
    width = max((len(shape) for shape in shapes), default=0)
    result = []
    for at in range(-width, 0):
        sizes = {shape[at] for shape in shapes if len(shape) >= -at} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def bytes_of(op: str, inputs: Inputs | None) -> int | None:
    """Bytes that an op must move if each tensor is read or written once; None where that is not known.

    Products, convolutions and attention read their inputs and write their output; elementwise ops write the broadcast
    shape, normalizations and softmax the shape of their input; copies read what they write.
    """
    if inputs is None or not any(inputs.element_bytes(at) for at in range(len(inputs.types))):
        return None
    if op == _CONVOLUTION_BACKWARD:
        return _convolution_backward_bytes(inputs)
    if op in _TO_FLOAT and all(kind in _INTEGRAL or kind not in ELEMENT_BYTES for kind in inputs.types):
        return None  # of integers they make torch's default type
    read = _input_bytes(inputs, _READ.get(op.removesuffix("_"), len(inputs.shapes)))
    written = _written_elements(op, inputs)
    return None if written is None or read is None else read + written * _written_size(op, inputs)


def _input_bytes(inputs: Inputs, arguments: int) -> int | None:
    """Bytes of the first arguments."""
    total = 0
    for at, shapes in enumerate(inputs.shapes[:arguments]):
        size = inputs.element_bytes(at)
        if any(shapes) and not size and inputs.types[at : at + 1] != ("ScalarList",):
            return None
        total += size * sum(prod(shape) for shape in shapes if shape)
    return total


def _written_size(op: str, inputs: Inputs) -> int:
    """Bytes per element of the result: of the first input, or of what two inputs are promoted to."""
    first = next((size for at in range(len(inputs.types)) if (size := inputs.element_bytes(at))), 0)
    if op not in _BINARY:
        return first
    if {"c10::Half", "c10::BFloat16"} <= set(inputs.types):
        return ELEMENT_BYTES["float"]
    places = range(op == "aten::where", min(_READ[op], len(inputs.types)))
    promoted = [(inputs.types[at] not in _INTEGRAL, inputs.element_bytes(at)) for at in places if inputs.shape(at)]
    return max(promoted, default=(True, first))[1]


_POINTWISE = frozenset(
    [
        "aten::gelu",
        "aten::relu",
        "aten::silu",
        "aten::sigmoid",
        "aten::tanh",
        "aten::exp",
        "aten::neg",
        "aten::sqrt",
        "aten::rsqrt",
        "aten::cos",
        "aten::sin",
        "aten::_softmax",
        "aten::_log_softmax",
    ]
)
_UNARY = _POINTWISE | frozenset(
    [
        "aten::clone",
        "aten::native_layer_norm",
        "aten::layer_norm",
        "aten::native_group_norm",
        "aten::native_batch_norm",
        "aten::cudnn_batch_norm",
        "aten::miopen_batch_norm",
        "aten::_fused_rms_norm",
        "aten::cat",
        "aten::stack",
        "aten::clamp_min",
        "aten::clamp",
        "aten::contiguous",
    ]
)
_BINARY = frozenset(
    [
        "aten::add",
        "aten::sub",
        "aten::mul",
        "aten::div",
        "aten::pow",
        "aten::maximum",
        "aten::minimum",
        "aten::where",
        "aten::addcmul",
        "aten::masked_fill",
        "aten::gelu_backward",
        "aten::threshold_backward",
        "aten::silu_backward",
        "aten::tanh_backward",
        "aten::_softmax_backward_data",
    ]
)
# How many arguments they read: a tensor behind them is where the result goes (`out=`).
_READ = {op: max(places) + 1 for op, places in _PRODUCTS.items()}
_READ |= dict.fromkeys(_POINTWISE | {"aten::cat", "aten::stack"}, 1)
_READ |= dict.fromkeys(_BINARY, 2) | {"aten::where": 3, "aten::addcmul": 3}
_TO_FLOAT = (_POINTWISE | {"aten::div"}) - {"aten::relu", "aten::neg"}
_IN_PLACE = frozenset({"aten::copy_", "aten::fill_", "aten::zero_"})  # all of their inputs is all of their traffic


def _written_elements(op: str, inputs: Inputs) -> int | None:
    """Elements of the output beside the inputs."""
    if op in _IN_PLACE:
        return 0
    if op in _PRODUCTS or op in _CONVOLUTIONS or is_attention_forward(op):
        result = _result(op, inputs)
        return None if result is None else prod(result)
    plain = op.removesuffix("_")
    if plain in _UNARY:
        return sum(prod(shape) for shape in inputs.shapes[0]) if inputs.shapes and any(inputs.shapes[0]) else None
    if plain in _BINARY:
        result = broadcast([shape for shapes in inputs.shapes[: _READ[plain]] for shape in shapes if shape])
        return prod(result) if result else None
    return None


def _result(op: str, inputs: Inputs) -> Shape | None:
    """Shape of what a product, convolution or attention writes."""
    if op in _CONVOLUTIONS:
        return convolution_output(op, inputs)
    if flops_of(op, inputs) is None:
        return None
    first, last = _PRODUCTS.get(op, (0, 2))
    return (*inputs.shape(first)[:-1], inputs.shape(last)[-1])
