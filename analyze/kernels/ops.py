"""What the work of an operator is for: the launching op, its parents and the modules around it.

A kernel says what it computes; only the op says what for. The batched GEMM of an unfused attention is `gemm` by
kernel and `attention` by op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from analyze.kernels.classification import classify_name
from analyze.kernels.names import to_words

_MODULE = re.compile(r"^nn\.Module: (\w+?)(?:_\d+)?$")
_ENGINE = re.compile(r"^autograd::engine::evaluate_function: ")
_BACKWARD = re.compile(r"_?backward(_?for_\w+|_data|_input|_elemt|_reduce|_overrideable)?\d*$")
_NATIVE = re.compile(r"^(?:aten|prims|quantized|torchvision|profiler)::")
_ATTENTION_MODULE = re.compile(r"attention|attn|mha$", re.IGNORECASE)
_MOE_MODULE = re.compile(r"(moe|experts?|mixture\w*)(sparse)?_?(block|layer|mlp|gate|router)?$", re.IGNORECASE)

_LAYERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("normalization", re.compile(r"norm([123]d)?$")),
    (
        "activation",
        re.compile(r"(^|_)((ge|si|re|e|se|quick_ge|leaky_re|p_?re)_?lu6?|sigmoid|tanh|mish|hardswish|activation)$"),
    ),
    ("elementwise", re.compile(r"rotary|rope(_|$)")),
)

# The two products and the softmax between them; projections are GEMMs also inside an attention module.
_ATTENTION_CORE = frozenset({"bmm", "baddbmm", "softmax", "safe_softmax", "masked_softmax", "einsum"})

# Ops that stand for all they call: a copy inside a convolution is made for the convolution.
_COMPOSITES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "attention",
        re.compile(r"scaled_dot_product|(^|_)(flash|efficient|cudnn|mem_eff|multi_?head)_?attention"),
    ),
    ("attention", re.compile(r"(^|_)(flash_attn|flex_attention|paged_attention|unified_attention|fmha)")),
    ("communication", re.compile(r"^c10d_|^record_param_comms|^nccl_|^_?c10d_functional_|^symm_mem_")),
    ("moe", re.compile(r"(^|_)(fused_)?(moe|experts?)(_|$)|topk_softmax|grouped_topk")),
    ("optimizer", re.compile(r"^optimizer_step|^fused_(adam|adamw|sgd|adagrad)$")),
    (
        "convolution",
        re.compile(r"(^|_)conv(olution)?(_?(transpose)?[123]d|_tbc)?($|_(relu|overrideable|transpose))"),
    ),
    ("convolution", re.compile(r"(^|_)(slow_conv|thnn_conv|conv_depthwise)")),
    ("normalization", re.compile(r"(^|_)(layer|batch|group|instance|rms)_?norm(?!al)")),
    ("softmax", re.compile(r"(^|_)(log_)?softmax$")),
    (
        "rng",
        re.compile(r"(^|_)(dropout|bernoulli|randn?|normal|uniform|multinomial|randperm|randint|exponential)$"),
    ),
    ("pooling", re.compile(r"(^|_)(max|avg|adaptive_\w+|fractional_\w+|lp)_?pool")),
    (
        "activation",
        re.compile(r"^(relu6?|leaky_relu|gelu|silu|sigmoid|log_sigmoid|tanh|elu|selu|celu|mish|softplus|glu)$"),
    ),
    (
        "activation",
        re.compile(r"^(hardtanh|hardswish|hardsigmoid|softshrink|hardshrink|prelu|rrelu|threshold|softsign)$"),
    ),
    (
        "gemm",
        re.compile(r"^(linear|addmm|mm|bmm|baddbmm|addmv|mv|matmul|scaled_mm|int_mm|grouped_mm|einsum|dot|addbmm)$"),
    ),
    (
        "reduction",
        re.compile(r"(^|_)(cross_entropy\w*|nll_loss\w*|mse_loss|l1_loss|ctc_loss|kl_div|binary_cross_entropy\w*)$"),
    ),
    (
        "embedding_gather",
        re.compile(r"^(embedding(_bag|_dense)?|index(_\w+)?|gather|scatter(_\w+)?|take\w*|repeat_interleave)$"),
    ),
    ("sort_topk", re.compile(r"^(sort|argsort|topk|kthvalue|msort)$")),
)
_PRIMITIVES: dict[str, str] = {
    op: category
    for category, ops in {
        "reduction": "sum mean amax amin max min argmax argmin prod norm vector_norm linalg_vector_norm linalg_norm "
        "var std var_mean std_mean cumsum cumprod logsumexp all any count_nonzero histc bincount foreach_norm",
        "copy_layout": "copy clone contiguous cat stack to to_copy pad constant_pad_nd reflection_pad2d im2col col2im "
        "roll flip repeat tile pixel_shuffle pixel_unshuffle unfold fold type_as reshape split_with_sizes_copy "
        "local_scalar_dense item",
        "elementwise": "add sub mul div rsub neg pow sqrt rsqrt exp log log2 log1p sin cos abs sign sgn reciprocal "
        "clamp clamp_min clamp_max maximum minimum where masked_fill fill zero eq ne lt le gt ge logical_and "
        "logical_or logical_not bitwise_and bitwise_or bitwise_not addcmul addcdiv lerp floor ceil round nan_to_num "
        "isnan isinf isfinite arange linspace full full_like zeros zeros_like ones ones_like remainder fmod erf "
        "atan2 tril triu square logit foreach_add foreach_mul foreach_div foreach_sqrt foreach_addcmul "
        "foreach_addcdiv foreach_lerp",
        "rng": "random cauchy log_normal geometric poisson native_dropout",
        "other": "upsample_nearest2d upsample_bilinear2d upsample_nearest1d upsample_bicubic2d grid_sampler_2d "
        "fft_r2c fft_c2c fft_c2r nonzero unique unique2 searchsorted bucketize linalg_solve linalg_inv nms",
    }.items()
    for op in ops.split()
}


def op_category(op_names: Sequence[str]) -> str | None:
    """Say what the work launched by an op is for.

    Args:
        op_names: the launching op and its parents, innermost first: op names (`aten::bmm`), autograd names
            (`BmmBackward0`) and module frames (`nn.Module: Owlv2Attention_0`).

    Returns:
        A category, or None where no name says it.
    """
    modules = tuple(match[1] for match in map(_MODULE.match, op_names) if match)
    ops = tuple(_plain(name) for name in op_names if not _MODULE.match(name))
    return _composite(ops, modules) or next(filter(None, map(_primitive, ops)), None) or _from_module(modules)


def deciding(name: str) -> tuple[object, ...]:
    """All that `op_category` reads of one name: in any list of names, another one with the same may take its place."""
    module = _MODULE.match(name)
    if module is None:
        plain = _plain(name)
        composite = _any_category([plain])  # where there is one, no primitive is asked for
        return (composite, plain in _ATTENTION_CORE, None if composite else _primitive(plain))
    modules = (module[1],)
    layer = _layer(modules)  # where it does one thing, it is asked for nothing else
    return ("module", _depth_of_attention(modules), _is_moe(module[1]), layer, None if layer else _from_module(modules))


def _composite(ops: Sequence[str], modules: Sequence[str]) -> str | None:
    found = _any_category(ops)
    if found in {"attention", "communication"}:
        return found
    if any(map(_is_moe, modules[: _depth_of_attention(modules)])):
        return "moe"
    if _depth_of_attention(modules) < len(modules) and not _ATTENTION_CORE.isdisjoint(ops):
        return "attention"
    return _layer(modules) or found


def _layer(modules: Sequence[str]) -> str | None:
    """Give the category of an innermost module that does one thing, however many ops it is written in."""
    words = to_words(modules[0]) if modules else ""
    return next((category for category, pattern in _LAYERS if pattern.search(words)), None)


def _depth_of_attention(modules: Sequence[str]) -> int:
    """Position of the innermost attention module, or the number of modules."""
    return next((depth for depth, name in enumerate(modules) if _ATTENTION_MODULE.search(name)), len(modules))


def _is_moe(module: str) -> bool:
    return _MOE_MODULE.search(module) is not None


def _from_module(modules: Sequence[str]) -> str | None:
    """Fall back on the innermost module when its class names a layer, as with custom kernels without an op."""
    if not modules:
        return None
    words = to_words(modules[0])
    if _ATTENTION_MODULE.search(words):
        return "attention"
    plain = {"linear": "gemm", "embedding": "embedding_gather"}
    return next((category for word, category in plain.items() if word in words.split("_")), None) or _any_category(
        [words]
    )


def _any_matches(pattern: re.Pattern[str], names: Iterable[str]) -> bool:
    return any(pattern.search(name) for name in names)


def _any_category(names: Sequence[str]) -> str | None:
    return next((category for category, pattern in _COMPOSITES if _any_matches(pattern, names)), None)


def _primitive(op: str) -> str | None:
    if op in _PRIMITIVES:
        return _PRIMITIVES[op]
    if op.startswith("custom "):
        category = classify_name(op.removeprefix("custom ")).category
        return None if category in {"other", "triton_fused_other"} else category
    return None


@lru_cache(maxsize=10_000)
def _plain(name: str) -> str:
    """Reduce an op or autograd name to the op it stands for: `AddmmBackward0` and `aten::addmm_` are `addmm`.

    Ops of other libraries keep their name, marked as custom: the kernel rules read them.
    """
    name = _ENGINE.sub("", name)
    native = _NATIVE.match(name)
    words = to_words(name[native.end() :] if native else name)
    plain = _BACKWARD.sub("", words)
    is_custom = native is None and plain == words and "::" in name and not _any_category([words])
    is_generated = name.startswith("triton_")
    return f"custom {name}" if is_custom or is_generated else plain
