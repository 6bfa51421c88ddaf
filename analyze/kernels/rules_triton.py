"""Rules for TorchInductor's generated Triton kernels.

The list of ATen ops in such a name also holds the neighbours that run outside (addmm, convolution, attention,
collectives): only `tem` kernels run a matrix product. Among the ops that do run, normalisation outweighs reduction,
which outweighs activation, elementwise work and copies.
"""

from __future__ import annotations

from analyze.kernels.rule import NameRule

_ANY = r"^triton_(poi|red|per|for|foreach|unk|mix|spl|cooperative_red|cooperative_per)_fused"
_REDUCING = r"^triton_(red|per|mix|cooperative_red|cooperative_per)_fused"


def _listing(*ops: str) -> str:
    """Any of these ops stands in the list."""
    return rf"(?=.*_({'|'.join(ops)})(_|$|\d))"


_NORM_OPS = _listing(
    r"(native_|_native_|fused_)?(layer|group|batch|instance)_norm\w*?",
    "_?(fused_)?rms_norm",
    "var_mean",
    "cudnn_batch_norm",
    "_native_batch_norm_legit(_functional|_no_training)?",
    "native_(layer|group|batch)_norm_backward",
)
_ACTIVATIONS = _listing(
    "gelu(_backward)?",
    "silu(_backward)?",
    "relu",
    "relu6",
    "leaky_relu",
    "sigmoid(_backward)?",
    "tanh(_backward)?",
    "threshold_backward",
    "elu",
    "selu",
    "mish",
    "softplus",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "logsigmoid",
    "erf",
    "swish",
    "glu",
)
_ARITHMETIC = _listing(
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "pow",
    "neg",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "abs",
    "where",
    "clamp(_min|_max)?",
    "maximum",
    "minimum",
    "masked_fill",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "bitwise_\\w+",
    "logical_\\w+",
    "lerp",
    "addcmul",
    "addcdiv",
    "arange",
    "iota",
    "full",
    "full_like",
    "zeros",
    "ones",
    "zeros_like",
    "fill",
    "addmm",
    "convolution",
    "mm",
    "bmm",
    "floor",
    "ceil",
    "round",
    "sign",
    "tril",
    "triu",
)
_MOVES = _listing(
    "clone",
    "copy",
    "_to_copy",
    "to_copy",
    "cat",
    "stack",
    "constant_pad_nd",
    "pad",
    "view",
    "transpose",
    "permute",
    "slice",
    "select",
    "split",
    "expand",
    "repeat",
    "t",
    "unsqueeze",
    "squeeze",
    "reshape",
    "contiguous",
    "convert_element_type",
    "flip",
    "roll",
    "unfold",
)

TRITON_RULES: tuple[NameRule, ...] = (
    NameRule(
        "attention",
        "inductor",
        r"^triton_tem_fused.*(attention|flex_decoding)|^triton_(flex_)?(flash_)?attention",
        ("triton_tem_fused_flex_attention_3",),
        scope="text",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "convolution",
        "inductor",
        r"^triton_tem_fused.*convolution",
        ("triton_tem_fused_convolution_relu_4",),
        scope="text",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "gemm",
        "inductor",
        r"^triton_(tem|mm|bmm)(_|$)",
        ("triton_tem_fused_addmm_relu_5", "triton_tem_fused_mm_3", "triton_mm"),
        tensor_core="yes",
    ),
    NameRule(
        "normalization",
        "inductor",
        _ANY + _NORM_OPS,
        (
            "triton_per_fused_add_native_layer_norm_3",
            "triton_red_fused__native_batch_norm_legit_functional_relu_2",
        ),
        fused=True,
    ),
    NameRule(
        "softmax",
        "inductor",
        _ANY + _listing("_?(log_)?softmax(_backward_data)?", "_safe_softmax", "logsumexp"),
        ("triton_per_fused__softmax_div_2", "triton_red_fused__log_softmax_nll_loss_forward_9"),
    ),
    NameRule(
        "normalization",
        "inductor",
        _ANY + r"(?=.*_mean_)(?=.*_pow_)(?=.*_rsqrt(_|$))|" + _REDUCING + r"(?=.*_mean_)(?=.*_pow(_|$))",
        (
            "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2",
            "triton_poi_fused__to_copy_mean_mul_pow_rsqrt_4",
        ),
        fused=True,
    ),
    NameRule(
        "quantization",
        "inductor",
        _REDUCING
        + r"(?=.*_abs_)(?=.*_amax_)(?=.*_(div|clamp|round|reciprocal)(_|$))|"
        + _ANY
        + r"(?=.*_(quantize|dequantize)\w*)",
        ("triton_red_fused__to_copy_abs_amax_clamp_div_1",),
        fused=True,
    ),
    NameRule(
        "sort_topk",
        "inductor",
        _ANY + _listing("sort", "topk", "argsort"),
        ("triton_per_fused_sort_0",),
    ),
    NameRule(
        "reduction",
        "inductor",
        _REDUCING,
        ("triton_red_fused_sum_3", "triton_per_fused_abs_amax_2", "triton_red_fused_mean_mul_0"),
    ),
    NameRule(
        "pooling",
        "inductor",
        _ANY + _listing(r"(adaptive_)?(max|avg)_pool\dd\w*?", "max_pool2d_with_indices"),
        ("triton_poi_fused_max_pool2d_with_indices_relu_2",),
    ),
    NameRule(
        "rng",
        "inductor",
        _ANY + _listing("native_dropout", "bernoulli", "rand", "randn", "rand_like", "randint", "inductor_random"),
        ("triton_poi_fused_native_dropout_3",),
        fused=True,
    ),
    NameRule(
        "activation",
        "inductor",
        _ANY + _ACTIVATIONS,
        (
            "triton_poi_fused_gelu_3",
            "triton_poi_fused_add_relu_threshold_backward_1",
            "triton_poi_fused_mul_silu_0",
        ),
    ),
    NameRule(
        "embedding_gather",
        "inductor",
        _ANY
        + _listing("embedding(_dense_backward)?", "index", "index_put", "index_select", "gather", "scatter(_add)?"),
        ("triton_poi_fused_add_embedding_0", "triton_poi_fused_index_put_2"),
    ),
    NameRule(
        "elementwise",
        "inductor",
        _ANY + _ARITHMETIC,
        ("triton_poi_fused_add_mul_3", "triton_poi_fused_addmm_view_2", "triton_for_fused_add_0"),
    ),
    NameRule(
        "copy_layout",
        "inductor",
        _ANY + _MOVES,
        ("triton_poi_fused_clone_2", "triton_poi_fused__to_copy_0", "triton_poi_fused_cat_4"),
    ),
    NameRule(
        "triton_fused_other",
        "inductor",
        r"^triton_(poi|red|per|for|foreach|unk|mix|spl)?_",
        ("triton_poi_fused_0", "triton__0d1d2de"),
    ),
)
