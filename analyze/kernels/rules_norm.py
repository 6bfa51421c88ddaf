"""Rules for normalisation and softmax kernels."""

from __future__ import annotations

from analyze.kernels.rule import NameRule

NORMALIZATION_RULES: tuple[NameRule, ...] = (
    NameRule(
        "normalization",
        "fused_norm",
        r"(add|residual|rope|quant|dequant|reduce|silu|gelu|relu|dropout|bias|qk|q|k)_?(\w+_)?(rms|layer|"
        r"group|q)?_?norm(?!al)|"
        r""
        r"(rms|layer|group|qk?|k|batch)_?norm(2d)?_?(\w+_)?(fused|quant\w*|rope|silu|add|cast)"
        r"(?!_backward)(_|$)|"
        r""
        r"fused\w*_(rms|q)_?norm|fused_(rms|layer|q|qk)(_|norm)",
        (
            "void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*)",
            "_fused_rms_fp8_group_quant",
            "rmsnorm_quant_kernel",
            "fused_qknorm_rope_kernel",
        ),
        scope="words",
        fused=True,
    ),
    NameRule(
        "normalization",
        "rms_norm",
        r"rms_?norm(?!al)|(^|_)rms(_|$)",
        (
            "void vllm::rms_norm_kernel<c10::BFloat16>",
            "_rms_norm_forward_kernel",
            "Rmsnorm2dFwd",
            "liger_rms_norm_fwd",
        ),
        scope="words",
    ),
    NameRule(
        "normalization",
        "layer_norm",
        r"layer_?norm|(^|_)ln(_|$)|gamma_?beta|"
        r"^cu_compute_grad_input|row_?wise_?moments|compute_grad_input|weight_norm",
        (
            "void at::native::vectorized_layer_norm_kernel<float, float>",
            "cuApplyLayerNorm",
            "GammaBetaBackwardCUDAKernel",
            "RowwiseMomentsCUDAKernel",
            "ln_fwd_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "normalization",
        "group_norm",
        r"group_?norm|compute_(internal_gradients|fused_params|backward_fused_params)|instance_?norm|"
        r"(^|_)gn_",
        ("GroupNormNHWCSumKernel", "ComputeFusedParamsCUDAKernel"),
        scope="words",
    ),
    NameRule(
        "normalization",
        "batch_norm",
        r"batch_?norm|(^|_|::)bn_(fw|bw|fwd|bwd|\w*1c11|add)|(^|_)bnorm_|"
        r"(^|_)welford(_|$)|(^|_)bn(_|$)|(^|_)sync_?bn|syncbn|bn_?add_?relu",
        (
            "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>",
            "MIOpenBatchNormFwdTrainSpatial.kd",
            "batch_norm_backward_elemt_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "normalization",
        "norm_statistics",
        r"(batch|group|layer|instance|rms)_?norm(?!al)",
        ("void at::native::vectorized_elementwise_kernel<4, at::native::batch_norm_calc_invstd(at::Tensor const&)>",),
        scope="text",
    ),
    NameRule(
        "normalization",
        "norm",
        r"(^|_)(normalization|lrn\w*|local_response_norm|l2_?norm(_fwd|_bwd|alize)?|qk_?norm|"
        r"weight_?norm)(_|$)|"
        r""
        r"(^|_)(l2|q|k|kv)_?norm|(^|_)norm_(fwd|bwd|forward|backward|quant|rope|kernel)",
        ("l2norm_fwd_kernel", "void cudnn::ops::lrnForward_evenC<float>"),
        scope="words",
    ),
)

SOFTMAX_RULES: tuple[NameRule, ...] = (
    NameRule(
        "softmax",
        "softmax",
        r"soft_?max|sparsemax",
        (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>",
            ("void at::native::cunn_SoftMaxForward<4, float, float, float, at::native::SoftMaxForwardEpilogue>"),
            "scaled_upper_triang_masked_softmax_warp_forward",
            "_softmax_kernel",
        ),
        scope="words",
    ),
)
