"""The rule table in the order in which it is tried: the first match decides."""

from __future__ import annotations

from analyze.kernels.rule import NameRule
from analyze.kernels.rules_attention import ATTENTION_RULES
from analyze.kernels.rules_framework import (
    COPY_RULES,
    NAMED_RULES,
    OTHER_RULES,
    RANDOM_RULES,
    REDUCTION_RULES,
)
from analyze.kernels.rules_index import EMBEDDING_RULES, SORT_RULES
from analyze.kernels.rules_matmul import CONVOLUTION_RULES, GEMM_RULES
from analyze.kernels.rules_moe import MOE_RULES, QUANTIZATION_RULES
from analyze.kernels.rules_norm import NORMALIZATION_RULES, SOFTMAX_RULES
from analyze.kernels.rules_pointwise import POINTWISE_RULES, ROPE_RULES
from analyze.kernels.rules_transfer import COMMUNICATION_RULES, MEMORY_RULES
from analyze.kernels.rules_triton import TRITON_RULES

RULES: tuple[NameRule, ...] = (
    MEMORY_RULES
    + TRITON_RULES
    + COMMUNICATION_RULES
    + NAMED_RULES
    + ATTENTION_RULES
    + MOE_RULES
    + NORMALIZATION_RULES
    + QUANTIZATION_RULES
    + SOFTMAX_RULES
    + ROPE_RULES
    + CONVOLUTION_RULES
    + SORT_RULES
    + EMBEDDING_RULES
    + GEMM_RULES
    + RANDOM_RULES
    + OTHER_RULES
    + COPY_RULES
    + REDUCTION_RULES
    + POINTWISE_RULES
)
