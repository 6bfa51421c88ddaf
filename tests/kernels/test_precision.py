"""Precision and tensor-core use as kernel names spell them."""

from __future__ import annotations

import pytest

from analyze.kernels import classify_name


@pytest.mark.parametrize(
    ("name", "precision", "tensor_core"),
    [
        ("ampere_sgemm_128x64_tn", "fp32", False),
        ("maxwell_hgemm_128x64_nn", "fp16", False),
        ("volta_dgemm_64x64_nn", "fp64", False),
        ("ampere_gcgemm_64x64_nt", "fp32", False),
        ("ampere_zgemm_64x64_nn", "fp64", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)", "fp32", False),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_tn", "fp16", True),
        ("ampere_h16816gemm_128x64_ldg8_nn", "fp16", True),
        ("volta_s884gemm_128x64_ldg8_nn", "fp16", True),
        ("ampere_s1688gemm_bf16_128x128_ldg8_stages_32x1_nn", "bf16", True),
        ("cutlass_75_tensorop_bf16_s1688gemm_bf16_128x64_nn_align8", "bf16", True),
        ("cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4", "tf32", True),
        ("cutlass_80_tensorop_d884gemm_64x64_16x3_nn_align1", "fp64", True),
        ("turing_int8_i8816gemm_int8_128x128_ldg16_tn", "int8", True),
        ("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_tensor16x8x16_kernel", "bf16", True),
        ("sm90_xmma_gemm_bf16f32_bf16f32_f32_nt_n_tilesize128x128x64_warpgroupsize1x1x1", "bf16", True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x16_stage3_ff_main_v1", "fp32", False),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x64_...", "tf32", True),
        ("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x64_tensor16x8x32", "fp8", True),
        ("nvjet_tst_128x64_64x8_1x2_h_bz_TNT", "bf16", True),
        ("nvjet_sm100_hsh_128x64_64x8_1x2_h_bz_TNT", "fp16", True),
        ("nvjet_qqtst_128x64_128x8_1x2_h_bz_TNT", "fp8", True),
        ("nvjet_sm100_ootst_128x64_Avec16UE4M3_TNT", "fp4", True),
        ("nvjet_sss_tf32_128x256_TNT", "tf32", True),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN", "fp16", True),
        ("Cijk_Ailk_Bljk_B_BS_BH_MT128x256x32_MI16x16x1_SN", "bf16", True),
        ("Cijk_Alik_Bljk_SB_MT64x64x8_SE_APM1", "fp32", False),
        ("Cijk_Alik_Bljk_S_MX_B_MT64x64x32_MI16x16x8x1", "tf32", True),
        ("Cijk_Alik_Bljk_F8BS_BH_MT256", "fp8", None),
        ("Cijk_Ailk_Bljk_BBS_BH_MT1x4x256_SN_LDSB0", "bf16", False),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32", "bf16", True),
        ("_ZN2ck16tensor_operation6device25kernel_gemm_xdl_cshuffleINS_4GridELi256EDF16_DF16_fEEvv", "fp16", True),
        ("_ZN2ck16tensor_operation6device25kernel_gemm_xdl_cshuffleINS_4GridEDF16bDF16bfEEvv", "bf16", True),
        ("void cudnn::cnn::wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)", "fp32", False),
        ("void xmma_cudnn::gemm::kernel<xmma_cudnn::implicit_gemm::wgrad::Ampere_hmma_fp32_traits>", "fp16", True),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tensor16x8x8", "tf32", True),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80", "fp32", True),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm75", "fp32", False),
        ("fmha_cutlassB_f16_aligned_64x64_k64_sm70", "fp16", True),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "unknown", True),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H128PagedKvCausal", "fp8", True),
        ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256", "mixed", True),
        ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128", "fp8", True),
        ("bmm_E2m1_E2m1E2m1_Fp32_t128x8x128", "fp4", True),
        ("_ZN5aiter36bf16gemm_bf16_tn_256x256_bpreshuffleE", "bf16", True),
        ("_ZN5aiter43fp8gemm_bf16_blockscale_BpreShuffle_128x128E", "fp8", True),
        (
            "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)",
            "bf16",
            True,
        ),
        ("void flashinfer::SingleDecodeWithKVCacheKernel<__half>(int)", "fp16", False),
        ("void marlin::Marlin<256, 4, 16, 4>(int4 const*)", "mixed", True),
        (
            (
                "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
                "128, cutlass::bfloat16_t, float, cutlass::arch::Sm90>, flash::CollectiveEpilogueFwd<"
                "cutlass::bfloat16_t> > >(int)"
            ),
            "bf16",
            True,
        ),
        (
            (
                "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
                "128, cutlass::half_t, float, cutlass::arch::Sm90>, flash::CollectiveEpilogueFwd<"
                "cutlass::half_t> > >(int)"
            ),
            "fp16",
            True,
        ),
        (
            (
                "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, "
                "128, cutlass::float_e4m3_t, float, cutlass::arch::Sm90>, flash::CollectiveEpilogueFwd<"
                "cutlass::bfloat16_t> > >(int)"
            ),
            "fp8",
            True,
        ),
        ("Cijk_BBS_BH_PostGSU4_VW4", "bf16", False),
        ("Cijk_B_BS_BH_PostGSU2", "bf16", False),
        ("Cijk_HHS_BH_Bias_PostGSU8_VW4", "fp16", False),
        ("Cijk_SB_PostGSU8", "fp32", False),
        ("Cijk_D_PostGSU2", "fp64", False),
        ("Cijk_F8BS_BH_PostGSU4", "fp8", False),
        ("_grouped_gemm_fp8_blockscale_kernel", "fp8", True),
        ("_w8a8_block_fp8_matmul", "fp8", True),
        ("void sgl_kernel::fp8_blockwise_scaled_grouped_mm<float>(int)", "fp8", True),
        ("void kgemm_4bit_inference_naive<__half, 128, 16>(int)", "mixed", False),
        ("void kgemv_4bit_inference_naive<__half>(int)", "mixed", False),
        ("void vllm::gptq::gemm_half_q_half_gptq_4bit_kernel<true, 4>(int)", "mixed", False),
        ("void vllm::awq::gemm_forward_4bit_cuda_m16nXk32<128>(int)", "mixed", True),
        (
            (
                "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ck::RowMajor, "
                "unsigned short, unsigned short, float, unsigned short> >(int)"
            ),
            "bf16",
            True,
        ),
        ("gemm_kernel", "unknown", None),
        ("kernel_mha", "unknown", None),
    ],
)
def test_matrix_kernels(name: str, precision: str, tensor_core: bool | None) -> None:
    kind = classify_name(name)
    assert (kind.precision, kind.tensor_core) == (precision, tensor_core)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, BinaryFunctor<c10::BFloat16, MulFunctor<float> > >",
            "bf16",
        ),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<double> >", "fp64"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<long> >", "unknown"),
        ("void at::native::vectorized_elementwise_kernel<4, MulFunctor<c10::complex<float> > >", "fp32"),
        (
            (
                "void at::native::elementwise_kernel<128, 2, "
                "gpu_kernel_impl<direct_copy_kernel_cuda(int)::{lambda(float)#1}> >"
            ),
            "mixed",
        ),
        (
            (
                "void at::native::elementwise_kernel<128, 2, "
                "gpu_kernel_impl_nocast<direct_copy_kernel_cuda::{lambda(float)#1}> >"
            ),
            "fp32",
        ),
        (
            "void at::native::unrolled_elementwise_kernel<CUDAFunctor_add<float>, LoadWithCast<2>, StoreWithCast<1> >",
            "mixed",
        ),
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, "
                "bfloat16tofloat32_copy_kernel_cuda(int)::{lambda(c10::BFloat16)#1}>"
            ),
            "mixed",
        ),
        (
            "void at::native::CatArrayBatchedCopy_contig<at::native::OpaqueType<4u>, unsigned int, 2, 64, 64>(int)",
            "unknown",
        ),
        ("batched_transpose_32x32_half", "unknown"),
        ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>", "fp8"),
        (
            "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>",
            "bf16",
        ),
        ("void vllm::reshape_and_cache_kernel<unsigned short, unsigned short, (vllm::Fp8KVCacheDataType)0>", "unknown"),
        ("fbgemm_gpu::_float_to_hfp8_gpu(at::Tensor const&, long, long, double)::{lambda(float)#1}", "fp8"),
        ("void f<4, fbgemm_gpu::_hfp8_to_float_gpu(at::Tensor const&)::{lambda(unsigned char)#1}>", "fp8"),
        ("void at::native::vectorized_layer_norm_kernel<c10::Half, float>(int, float)", "fp16"),
        ("triton_poi_fused_add_mul_3", "unknown"),
        ("void per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn>(int)", "fp8"),
    ],
)
def test_other_kernels_have_the_type_of_their_tensors(name: str, precision: str) -> None:
    kind = classify_name(name)
    assert (kind.precision, kind.tensor_core) == (precision, False)


def test_fusion_is_said_of_kernels_that_do_the_work_of_several_operators() -> None:
    assert classify_name("fmha_cutlassF_f16_aligned_64x64_rf_sm80").fused
    assert classify_name("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(int)").fused
    assert classify_name("nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT").fused
    assert classify_name("triton_poi_fused_addmm_gelu_view_3").fused
    assert not classify_name("triton_poi_fused_silu_3").fused
    assert not classify_name("triton_poi_fused_clone_transpose_3").fused
    assert not classify_name("nvjet_tst_64x16_64x16_2x4_2cta_h_bz_TNT").fused
    assert not classify_name("cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64_64x3_nn_align8").fused
    assert not classify_name("ampere_sgemm_128x64_tn").fused
    assert not classify_name("void flash::flash_fwd_splitkv_combine_kernel<int>").fused
