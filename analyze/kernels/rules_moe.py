"""Rules for mixture-of-experts routing and grouped GEMMs, and for quantisation."""

from __future__ import annotations

from analyze.kernels.rule import NameRule

MOE_RULES: tuple[NameRule, ...] = (
    NameRule(
        "moe",
        "moe_gemm",
        r"(^|_)fmoe_|"
        r"(^|_)(fused_)?(moe|experts?)_(\w+_)?(gemm\w*|mxgemm|grouped_gemm|matmul|mm|mlp)(_|$|\d)|"
        r"moe_?gemm|(^|_)fused_moe(_kernel)?(_|$)|marlin_moe|fmoe|(^|_)moe_(wna16|ck2?stages|stage\d)|"
        r"gemm\w*_moe(_|$)|scatter2scatter|group_bwd_w|kernel_moe_\w*gemm",
        (
            "fused_moe_kernel",
            "_ZN5aiter47fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x128E",
            "void marlin_moe_wna16::Marlin<float>",
            "moe_gemm_stage1",
            "void ck::kernel_moe_gemm<float>",
        ),
        scope="words",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "moe",
        "routing",
        r"(^|_)moe(_|$)|(^|_)(experts?|router?|routing|gating)(_|$)|topk_?(gating_?)?softmax|"
        r"moe_?(sorting|align|sum|permute|unpermute|finalize)|expert_?tokens|group(ed)?_?topk",
        (
            "moe_align_block_size_kernel",
            "void vllm::moe::topkGatingSoftmax<8, 64, 4, 16>",
            "MoeSortingKernel",
            "count_and_sort_expert_tokens_kernel",
            "grouped_topk_fused_kernel",
            "biased_grouped_topk_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "moe",
        "expert_rows",
        r"(expand|permute|unpermute|shuffle|scatter|finalize)_(input_)?(rows|tokens|matmul|to_fused|moe)|"
        r"(token|row)s?_(un)?permut|^permute_kernel$|(^|_)unpermute(_|$)|row_id_map|"
        r"fused_(mapping|build_expert)|"
        r"to_fused(_|$)|reduce_fused_impl|dispatch_layout|compute_strides_tma|topk_(sum|forward|idx)|"
        r"aux_(fi|loss)|build_expert|expand_input|combined_routing|(^|_)ep_(scatter|gather)",
        (
            "expandInputRowsKernel",
            "_finalize_matmul_scatter_bf16",
            "_permute_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "moe",
        "routing",
        r"\bmoe::",
        ("void trtllm::gen_kernel<moe::dev::routing::Params>",),
        scope="text",
    ),
)

# A GEMM of quantised operands is a GEMM.
_NOT_GEMM = r"^(?!.*((?<!fb)gemm|gemv|matmul)).*"

QUANTIZATION_RULES: tuple[NameRule, ...] = (
    NameRule(
        "quantization",
        "hybrid_fp8",
        r"(float|half|bf16)_to_hfp8|hfp8_to_(float|half|bf16)",
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, "
                "fbgemm_gpu::_float_to_hfp8_gpu(at::Tensor const&)::{lambda(float)#1}>"
            ),
            "_hfp8_to_float_cuda_kernel",
        ),
        scope="text",
        precision="fp8",
    ),
    NameRule(
        "quantization",
        "fused_activation",
        r"(silu|gelu|swiglu|geglu|relu|act(ivation)?)_(\w+_)?(quant\w*|cast_and_transpose|to_fp8)",
        ("silu_and_mul_per_block_quant_kernel", "swiglu_and_per_token_cast_and_transpose_impl"),
        scope="words",
        fused=True,
    ),
    NameRule(
        "quantization",
        "cast_transpose",
        r"cast_(only_)?(transpose|and_transpose)|"
        r"per_(token|channel|group|row|block|tensor)\w*_(cast|dequant\w*)|"
        r"cast_(back|to_fp8|to_fp4|fp8)|fp8_?rowwise|(^|_)to_?(fp8|mxfp\d|nvfp4|mx)(_|$)|"
        r"transpose_cast",
        (
            "void transformer_engine::cast_transpose_kernel<float>",
            "per_token_cast_to_fp8_kernel",
            "_FP8rowwise_to_float_cuda_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "quantization",
        "quantization",
        _NOT_GEMM + r"((^|_)k?(de|re)?quant(iz\w*|int8|fp8|ise\w*)?(_|$|\d)|fake_?quant|"
        r"(^|_)(compute_)?(scale|amax)_(kernel|update|and_amax)|(^|_)(amax|absmax)(_|$)|q_?param\w*|"
        r"kquantize\w*|"
        r"kdequantize\w*|scaled_(fp8|int8|fp4)_quant|dynamic_(per_token|scaled)_\w*quant|"
        r"convert_(fp8|to_mx|fp4)|(^|_)(mx|nv)fp\d_(quant|pack)|blockwise_quant|(up|down)cast_(from|"
        r"to)_\w*(mx|fp[48])|(to|2)_(fp[48]|int[48]|e4m3|mxfp\d|nvfp4)(_|$)|cvt_\w*fp[48])",
        (
            "void vllm::scaled_fp8_quant_kernel<float>",
            "void kQuantizeBlockwise<__half, 4096, 4, 0, 1>",
            "kDequantizeBlockwise",
            "dynamic_per_token_scaled_fp8_quant_kernel",
            "_dequantize_4bit_kernel",
        ),
        scope="words",
    ),
)
