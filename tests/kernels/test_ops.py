"""What the work of an op is for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyze.kernels import op_category
from analyze.kernels.categories import NAMES


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (["aten::bmm", "aten::matmul", "nn.Module: Owlv2Attention_0", "nn.Module: Owlv2Encoder_0"], "attention"),
        (["aten::_softmax", "aten::softmax", "nn.Module: ViTSelfAttention_3"], "attention"),
        (["aten::addmm", "aten::linear", "nn.Module: Linear_3", "nn.Module: Owlv2Attention_0"], "gemm"),
        (["aten::add", "nn.Module: Owlv2Attention_0"], "elementwise"),
        (["aten::bmm", "aten::_scaled_dot_product_attention_math", "aten::scaled_dot_product_attention"], "attention"),
        (["aten::_flash_attention_backward", "ScaledDotProductFlashAttentionBackward0"], "attention"),
        (["aten::_softmax", "aten::softmax"], "softmax"),
        (["aten::bmm", "BmmBackward0", "autograd::engine::evaluate_function: BmmBackward0"], "gemm"),
        (["aten::clamp_min_", "aten::relu_"], "activation"),
        (["aten::clamp_min"], "elementwise"),
        (["aten::threshold_backward", "ReluBackward0"], "activation"),
        (["aten::cudnn_convolution", "aten::_convolution", "aten::convolution", "aten::conv2d"], "convolution"),
        (["aten::mm", "aten::miopen_convolution"], "convolution"),
        (["aten::copy_", "aten::contiguous", "aten::cudnn_convolution"], "convolution"),
        (["aten::convolution_backward", "ConvolutionBackward0"], "convolution"),
        (["aten::native_layer_norm_backward", "NativeLayerNormBackward0"], "normalization"),
        (["aten::pow", "nn.Module: LlamaRMSNorm_0"], "normalization"),
        (["aten::copy_", "aten::_to_copy", "aten::to"], "copy_layout"),
        (["aten::mm", "nn.Module: MixtralSparseMoeBlock_0"], "moe"),
        (["aten::mm", "aten::linear", "nn.Module: Linear_0", "nn.Module: Qwen2MoeModel_0"], "gemm"),
        (["aten::bmm", "nn.Module: Qwen2MoeAttention_0", "nn.Module: Qwen2MoeDecoderLayer_0"], "attention"),
        (["record_param_comms", "c10d::allreduce_"], "communication"),
        (["aten::_foreach_add_", "Optimizer.step#Adam.step"], "optimizer"),
        (["aten::_fused_adam_"], "optimizer"),
        (["aten::embedding_dense_backward", "EmbeddingBackward0"], "embedding_gather"),
        (["fbgemm::permute_2D_sparse_data"], "embedding_gather"),
        (["vllm::unified_attention"], "attention"),
        (["_C::rms_norm"], "normalization"),
        (["triton_poi_fused_addmm_gelu_view_15", "CompiledFunction"], "activation"),
        (["aten::native_dropout", "aten::dropout"], "rng"),
        (["nn.Module: Linear_0"], "gemm"),
        (["aten::empty"], None),
        (["Torch-Compiled Region: 0/0"], None),
        ([], None),
    ],
)
def test_ops_and_parents(ops: list[str], expected: str | None) -> None:
    assert op_category(ops) == expected


@given(
    st.lists(
        st.one_of(st.text(max_size=60), st.sampled_from(["aten::bmm", "nn.Module: A_0", "XBackward0"])), max_size=6
    )
)
def test_any_names(ops: list[str]) -> None:
    assert op_category(ops) in (*NAMES, None)
