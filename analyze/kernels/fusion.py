"""Signs in a kernel name that it does the work of several operators, beside what its rule says."""

from __future__ import annotations

import re

from analyze.kernels.names import KernelName

_INDUCTOR = re.compile(r"^triton_[a-z_]+?_fused_")
# In Inductor's list of ops: what computes. A product or convolution stands there for its bias.
_WORKING_OP = re.compile(
    r"(?<![a-z])(?:add|sub|rsub|mul|div|pow|neg|exp|log|sqrt|rsqrt|reciprocal|sin|cos|abs|where|clamp|maximum|minimum|"
    r"gelu|silu|relu|sigmoid|tanh|erf|sum|mean|amax|amin|var_mean|softmax|rms_norm|layer_norm|batch_norm|group_norm|"
    r"addmm|mm|bmm|convolution|embedding|dropout|masked_fill|threshold_backward|to_copy|cat|stack)(?![a-z])"
)
_EPILOGUE = re.compile(r"^(?:nvjet|bmm|gemm)_.*(?:_bias(?:_|$)|swiglu|gelu|silu)")
_EMBEDDING_UPDATE = re.compile(r"split_embedding_backward\w*(?:adagrad|adam|sgd|lamb|lars)(?!\w*segments)")
_TWO_STEPS = re.compile(r"rope_(?:\w+_)?(?:store|update|cache|quant\w*)|cast_(?:and_)?transpose")


def does_several(kernel: KernelName) -> bool:
    """Say whether the name lists the work of several operators."""
    if _INDUCTOR.match(kernel.name):
        return len(set(_WORKING_OP.findall(kernel.name))) > 1
    is_fused = _EPILOGUE.search(kernel.name) or _EMBEDDING_UPDATE.search(kernel.name)
    return bool(is_fused or _TWO_STEPS.search(kernel.words))
