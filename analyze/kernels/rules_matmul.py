"""Rules for convolutions and matrix products of the vendor libraries.

Convolutions come first: `implicit_convolve_sgemm`, `implicit_gemm` and `igemm_fwd` are convolutions.
"""

from __future__ import annotations

from analyze.kernels.rule import NameRule

CONVOLUTION_RULES: tuple[NameRule, ...] = (
    NameRule(
        "copy_layout",
        "im2col",
        r"im\d?d?2col|col2im|im2d2col|im3d2col|vol2col|col2vol|(^|_)im_?2_?col",
        ("void at::native::im2col_kernel<float>", "Im2d2Col_v2", "Im3d2Col"),
    ),
    NameRule(
        "copy_layout",
        "layout_conversion",
        r"(nchw|nhwc|cnhw|ncdhw|ndhwc|nc32hw\w*|kcrs|krsc)\w*to_?(nchw|nhwc|cnhw|ncdhw|ndhwc|nc32hw|kcrs|"
        r"krsc)|"
        r""
        r"(nchw|nhwc|cnhw)2(nchw|nhwc|cnhw)|batched_transpose|tensortransform|subtensoropwithcast|"
        r"subtensoropwithtransform|transform_?tensor|nhwcaddpadding|addpadding",
        (
            "void cudnn::ops::nchwToNhwcKernel<float, float, float>",
            "batched_transpose_32x32_half",
            "void tensorTransformGeneric<float>",
            "SubTensorOpWithCastTensor1d",
            "transpose_NCHW2CNHW_V2_2D_WG_off64",
            "nhwcAddPaddingKernel",
        ),
    ),
    NameRule(
        "convolution",
        "helper",
        r"compute\w*offsetskernel|reduce_wgrad|wgrad_?(reduction|reduce)|wrw_reduc|generatewinogradtiles",
        (
            "cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)",
            "cudnn::cnn::reduce_wgrad_nchw_helper",
        ),
        tensor_core="no",
    ),
    NameRule(
        "convolution",
        "winograd",
        r"winograd|sp3asmconv|xwinograd|mlopen_?winograd",
        (
            "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>",
            "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
        ),
        tensor_core="no",
        scope="text",
    ),
    NameRule(
        "convolution",
        "fft",
        r"fft[12]d_[rc]2[rc]|flip_filter|compute_gemm_pointers|fft_?conv",
        ("void fft2d_r2c_32x32<float, false, 0u, false>", "flip_filter", "compute_gemm_pointers(float2**)"),
        precision="fp32",
        tensor_core="no",
    ),
    NameRule(
        "convolution",
        "cudnn_cuda_core",
        r"convolve|convolution_?(engine|kernel)?2?d?$|"
        r"(wgrad|dgrad|wgrad2d|dgrad2d)_(alg\d?_?)?(\w*)engine|"
        r"(^|::)cudnn::(cnn|detail)::\w*(dgrad|wgrad|fprop|conv)|"
        r"(^|_|::)(d|w)grad(2d)?_(grouped|c1_k1|alg)|conv2d_(c1_k1|grouped)_\w*",
        (
            "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1>",
            "void cudnn::cnn::wgrad2d_grouped_direct_kernel<float>",
            "void dgrad_engine<float, 128, 6, 7, 3, 3, 5, true>",
            "void cudnn::cnn::conv2d_grouped_direct_kernel<float>",
        ),
        tensor_core="no",
    ),
    NameRule(
        "convolution",
        "cudnn_scudnn",
        r"scudnn",
        ("volta_scudnn_128x64_relu_interior_nn_v1",),
        precision="fp32",
        tensor_core="no",
    ),
    NameRule(
        "convolution",
        "cudnn",
        r"\d*cudnn_(tf32|fp32|fp16|bf16|\d)|[shi](884|1688|16816|8816|16832)(cudnn|fprop|dgrad|wgrad)|"
        r"(xmma_|cudnn\w*_|conv\w*_|\d)(fprop|dgrad|wgrad|bprop)(2d|3d|_|\b)",
        (
            "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
            "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc",
            "void cutlass_cudnn::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_128x128>",
        ),
        scope="text",
    ),
    NameRule(
        "convolution",
        "implicit_gemm",
        r"implicit_?(gemm|convolution)|convolution_(fwd|forward|bwd|backward)|igemm_(fwd|bwd|wrw)|"
        r"gemm_?fprop|implicitgemm\w*|gridwise_?conv|conv\w*_(xdl|wmma|mfma|dl)|"
        r"kernel_(grouped|batched)_\w*conv|bwd_weight|bwd_data|device_?(grouped_?)?conv|grouped_?conv",
        (
            "igemm_fwd_gtcx_nhwc_fp16_bx0_ex0_bt256x128x32",
            "_ZN2ck16tensor_operation6device24kernel_grouped_conv_fwd_xdlINS_1XEEEvv",
        ),
        scope="text",
    ),
    NameRule(
        "convolution",
        "cudnn_split_k",
        r"cudnn\w*::(kernel<\w*cudnn\w*::)?reduction::|cudnn\w*::.*reducesplitk",
        (
            (
                "void cutlass_cudnn::Kernel<cutlass_cudnn::reduction::kernel::ReduceSplitK<cutlass_cudnn::"
                "MatrixShape<4, 128> > >"
            ),
        ),
        scope="text",
        tensor_core="no",
    ),
    NameRule(
        "convolution",
        "direct",
        r"depthwise|dwconv|causal_?conv|conv_?depthwise|deform(able)?_conv|naive_conv|ref_conv|direct_conv",
        (
            "void at::native::conv_depthwise2d_forward_kernel<3, float, int>",
            "causal_conv1d_fwd_kernel",
            "naive_conv_fwd_nchw_float_double_float",
            "_causal_conv1d_update_kernel",
        ),
        scope="words",
        tensor_core="no",
    ),
    NameRule(
        "convolution",
        "convolution",
        r"miopen\w*conv|gen_conv|mlopen_?conv|gcn_?asm_?conv|(^|_)conv(olution)?([123]d)?(_|$)|"
        r"(^|_)conv[123]d\w*|nhwc_conv",
        ("miopenGcnAsmConv1x1U", "gen_conv", "conv2d_forward_kernel"),
        scope="words",
    ),
)

GEMM_RULES: tuple[NameRule, ...] = (
    NameRule(
        "gemm",
        "nvjet",
        r"^nvjet_",
        ("nvjet_tst_128x64_64x8_1x2_h_bz_TNT", "nvjet_sm90_hss_128x256_64x4_2x1_v_bz_TNN"),
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "split_k",
        r"split_?k_?reduc|reduce_?split_?k|postgsu|splitk_?(post|finalize|fixup)|stream_?k_?(fixup|reduc)",
        (
            "void cublasLt::splitKreduce_kernel<32, 16, int, float, float>",
            "Cijk_SB_PostGSU8",
            "void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<> >",
        ),
        scope="text",
        tensor_core="no",
    ),
    NameRule(
        "gemm",
        "epilogue",
        r"epilogue::impl::globalkernel|cublaslt\w*epilogue",
        ("void epilogue::impl::globalKernel<float, float, float, true, true>",),
        tensor_core="no",
        fused=True,
    ),
    NameRule(
        "gemm",
        "weight_only_cuda_core",
        r"(^|_)gem[mv]_half_q_half|k?gem[mv]_4bit_\w*naive|(^|_)exllama",
        (
            "void kgemm_4bit_inference_naive<__half, 128, 16>",
            "void kgemv_4bit_inference_naive<__nv_bfloat16, 128, 32>",
            "gemm_half_q_half_gptq_4bit_kernel",
        ),
        scope="words",
        precision="mixed",
        tensor_core="no",
        fused=True,
    ),
    NameRule(
        "gemm",
        "gemv",
        r"gemv|gemmk1|gemvn?sp|(^|_|:)(wvsplitk\w*|llmm1|wv_splitk\w*)|dot_?based_?gemm",
        (
            "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4>",
            "std::enable_if<true, void>::type internal::gemvx::kernel<int, int, float>",
            "void gemmk1_kernel<float, 256, 5, false>",
            "wvSplitK_hf_sml_<__half>",
        ),
        tensor_core="no",
    ),
    NameRule(
        "gemm",
        "tensile",
        r"(^|_)cijk_\w+_",
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN", "Cijk_Alik_Bljk_SB_MT64x64x8_SE_APM1"),
    ),
    NameRule(
        "gemm",
        "cublas_simt",
        r"(^|_)(volta|turing|ampere|maxwell|pascal|kepler|hopper|sm\d+|magma|gemm)?_?(gc|[sdczhi])"
        r"gemm(3m)?(_|$|ex|kernel)|"
        r""
        r"simt_[sdczhi]gemm|gemmex_kernel",
        (
            "volta_sgemm_128x64_nn",
            "ampere_sgemm_32x32_sliced1x4_tn",
            "void magma_sgemmEx_kernel<float, float>",
        ),
        scope="text",
    ),
    NameRule(
        "gemm",
        "xmma",
        r"xmma_(sparse_)?gemm|xmma\w*::gemm",
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_tensor16x8x16_kernel",),
        scope="text",
    ),
    NameRule(
        "gemm",
        "tensor_core_gemm",
        r"[sdhi](884|1688|16816|8816|16832|161616|16864|88128|168128|16864)\w*gemm|tensorop_\w*gemm",
        (
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn",
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>",
            "volta_fp16_s884gemm_fp16_64x64_ldg8_f2f_nn",
        ),
        scope="text",
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "trtllm_gen",
        r"^(bmm|gemm)_(bfloat16|fp16|fp32|e4m3|e2m1|mxe\dm\d|mxint4)_",
        ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128_s6_et64x8", "gemm_Bfloat16_E2m1E2m1_Fp32_t128x128x256"),
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "weight_only",
        r"marlin(?!_moe)|"
        r"(^|_)(awq|gptq|gptqmarlin|machete|wna16|w4a16|w8a16|fpa_?intb|bnb|"
        r"gemm_4bit\w*|kgemm_4bit\w*|qserve|int4|nf4|tinygemm)(_|$)\w*",
        (
            "void marlin::Marlin<256, 4, 16, 4, 3, false, 8>",
            "void vllm::awq::gemm_forward_4bit_cuda_m16nXk32<128>",
            "kgemm_4bit_inference",
        ),
        scope="words",
        precision="mixed",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "gemm",
        "deep_gemm",
        r"deep_gemm::|(fp8|bf16|fp4)_gemm_(kernel|1d|nt|nn|impl)",
        ("void deep_gemm::fp8_gemm_kernel<7168u, 2048u, 128u>", "deep_gemm::sm90_fp8_gemm_1d2d_impl"),
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "mixed_input",
        r"a16w(fp)?4|a8w(fp)?4|matmul_ogs",
        ("_gemm_a16w4_kernel_BLOCK_SIZE_M_8", "_matmul_ogs_NNT_bf16xbf16xmxfp4_64x128x128x1"),
        precision="mixed",
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "aiter",
        r"(^|::)(aiter|ck_tile|ck)::\w*(gemm|matmul)|"
        r"(^|::|_)(bf16|f8|fp8|f4|i8|a8w8|a16w16|flatmm)_?gemm|gemm_a\d+w\d+|batched_gemm_(bf16|a\d)|"
        r"ck_tile::\w*(gemm|flatmm|universal)",
        (
            "_ZN5aiter36bf16gemm_bf16_tn_64x64_bpreshuffleE",
            "_gemm_a8w8_blockscale_kernel",
            "_ZN2ck26kernel_gemm_xdl_cshuffle_v3INS_1XEEEvv",
        ),
        scope="name",
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "cutlass",
        r"cutlass\w*::gemm::|cutlass\w*_gemm|gemmuniversal|warpspecialized\w*gemm|collectivemma|"
        r"gemm_universal|cutlass\d*x?_\w*gemm|cute::\w*gemm",
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int> > >",),
        scope="text",
        tensor_core="yes",
    ),
    NameRule(
        "gemm",
        "matmul",
        r"(?<!fb)gemm|(^|_)gmm(_|$)|(^|_)a\d+_?w\d+(_|$)|matmul|mul_mat|flatmm|"
        r"(^|_)(b?mm|addmm|baddbmm|linear|mat_mul|grouped_mm|scaled_mm|trmm|syrk|herk|symm)(_|$)|"
        r"joint_matrix|gen_gemm|xetla",
        (
            "gemm_kernel",
            "_matmul_kernel",
            "void fused_linear_kernel<float>",
            "grouped_gemm_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "gemm",
        "cutlass_sycl",
        r"compat\d*experimental|compat::experimental::detail",
        ("_ZTSN6compat12experimental6detail13KernelFunctorIXadL_ZN7cutlass13device_kernelIXEEEEE",),
        scope="text",
        tensor_core="unknown",
    ),
    NameRule(
        "gemm",
        "cutlass",
        r"^cutlass\w*::kernel2?$",
        ("void cutlass::Kernel (cutlass_70_wmma_tensorop_s161616gemm_f16_16x16_64x2_tn_align8Params)",),
    ),
)
