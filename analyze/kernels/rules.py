"""The rule table in the order in which it is tried: the first match decides."""

from __future__ import annotations

from analyze.kernels.rule import Rule
from analyze.kernels.rules_attention import ATTENTION_RULES
from analyze.kernels.rules_framework import (
    COPY_RULES,
    EMBEDDING_RULES,
    OTHER_RULES,
    RANDOM_RULES,
    REDUCTION_RULES,
    SORT_RULES,
)
from analyze.kernels.rules_matmul import CONVOLUTION_RULES, GEMM_RULES
from analyze.kernels.rules_moe import MOE_RULES, QUANTIZATION_RULES
from analyze.kernels.rules_norm import NORMALIZATION_RULES, SOFTMAX_RULES
from analyze.kernels.rules_pointwise import POINTWISE_RULES
from analyze.kernels.rules_transfer import COMMUNICATION_RULES, MEMORY_RULES
from analyze.kernels.rules_triton import TRITON_RULES

RULES: tuple[Rule, ...] = (
    MEMORY_RULES
    + TRITON_RULES
    + COMMUNICATION_RULES
    + ATTENTION_RULES
    + MOE_RULES
    + QUANTIZATION_RULES
    + NORMALIZATION_RULES
    + SOFTMAX_RULES
    + CONVOLUTION_RULES
    + EMBEDDING_RULES
    + SORT_RULES
    + GEMM_RULES
    + RANDOM_RULES
    + COPY_RULES
    + OTHER_RULES
    + REDUCTION_RULES
    + POINTWISE_RULES
)
