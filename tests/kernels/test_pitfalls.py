"""What goes wrong when kernel names are taken by their words, one test each."""

from __future__ import annotations

import pytest

from analyze.kernels import classify_name


def category(name: str) -> str:
    return classify_name(name).category


def test_specific_words_win_over_gemm_and_wrappers_come_last() -> None:
    assert category("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == "communication"
    assert category("fused_moe_gemm_kernel") == "moe"
    assert category("fmha_cutlassF_f16_aligned_64x64_rf_sm80") == "attention"
    assert category("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int> >") == "elementwise"


def test_cutlass_is_not_always_a_gemm() -> None:
    flash = "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > >(int)"
    norm = "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16gmemalign16"
    gemm = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_32x6_tn_align8>(int)"
    assert [category(flash), category(norm), category(gemm)] == ["attention", "normalization", "gemm"]


def test_flashinfer_is_not_always_attention() -> None:
    assert category("void flashinfer::norm::RMSNormKernel<8u, __half>(__half*)") == "normalization"
    assert category("void flashinfer::activation::act_and_mul_kernel<__half, &silu<float> >(__half*)") == "activation"
    assert category("void flashinfer::sampling::TopPSamplingFromProbKernel<1024u>(float*)") == "sampling_other"
    assert category("flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot<1>") == "communication"
    assert category("void flashinfer::SinglePrefillWithKVCacheKernel<flashinfer::KernelTraits<1> >()") == "attention"


def test_gemm_in_a_name_is_not_always_a_gemm() -> None:
    assert category("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int)") == "embedding_gather"
    assert category("_fbgemm_silu_mul") == "activation"
    assert category("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_kernel") == "convolution"
    bwd_weight = "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_4GridEEvv"
    assert category(bwd_weight) == "convolution"
    assert category("void library::grouped_gemm::utils::transpose<512, 128>(unsigned char const*)") == "copy_layout"


def test_template_variants_of_convolutions_are_no_ops() -> None:
    assert category("void implicit_convolve_sgemm<float, float, 128, 5, 5>(int, int)") == "convolution"
    assert category("volta_scudnn_128x64_relu_interior_nn_v1") == "convolution"
    assert category("cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64_64x3_nn_align8") == "gemm"


def test_softmax_inside_other_kernels() -> None:
    assert category("void flash_fwd_kernel<Flash_fwd_kernel_traits<64>, Softmax<2> >(int)") == "attention"
    assert category("void vllm::moe::topkGatingSoftmax<4, 64, 4, 16>(float const*)") == "moe"
    forward = (
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, at::native::LogSoftMaxForwardEpilogue>"
    )
    assert category(forward) == "softmax"


@pytest.mark.parametrize(
    ("functor", "expected"),
    [
        ("at::native::CUDAFunctor_add<float>", "elementwise"),
        ("at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", "copy_layout"),
        ("at::native::float16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", "copy_layout"),
        ("at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda(float)#1}", "activation"),
        ("at::native::batch_norm_calc_invstd(at::Tensor const&)::{lambda(float)#1}", "normalization"),
        ("at::native::launch_clamp_scalar(at::TensorIteratorBase&)::{lambda(float)#1}", "elementwise"),
        ("at::native::tanh_backward_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", "activation"),
    ],
)
def test_the_functor_decides_not_the_wrapper(functor: str, expected: str) -> None:
    for wrapper in ("vectorized_elementwise_kernel<4, {}>", "elementwise_kernel<128, 2, gpu_kernel_impl_nocast<{}> >"):
        assert category(f"void at::native::{wrapper.format(functor)}(int, {functor})") == expected


def test_index_kernels_in_elementwise_wrappers() -> None:
    assert (
        category("void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel<int> >(int)") == "embedding_gather"
    )
    assert category("void at::native::_scatter_gather_elementwise_kernel<128, 8, int>(int)") == "embedding_gather"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float>(int)", "gemm"),
        ("reduce_segments", "attention"),
        ("void vllm::paged_attention_v2_reduce_kernel<__half, 128>(int)", "attention"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", "communication"),
        ("moe_sum_kernel", "moe"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor> >(int)", "reduction"),
        ("convert_kernel", "copy_layout"),
        ("void rocprim::trampoline_kernel<rocprim::default_config_selector, rocprim::transform_config>", "elementwise"),
        ("void at::native::distribution_elementwise_grid_stride_kernel<float, 4, normal_kernel>(int)", "rng"),
    ],
)
def test_words_inside_other_words(name: str, expected: str) -> None:
    assert category(name) == expected


def test_the_parameter_list_is_not_searched() -> None:
    backward = (
        "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<float>(at::PhiloxCudaState, int)"
    )
    assert category(backward) == "embedding_gather"
    assert category("void fill_kernel<int>(softmax_params, flash_params)") == "elementwise"


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int)",
        "at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>",
        "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::Half, float>(T1 *)",
        "std::enable_if<true, void>::type at::native::vectorized_layer_norm_kernel<c10::Half, float>(int, float)",
        "_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIN3c104HalfEfEEviT0_",
        "vectorized_layer_norm_kernel<c10::Half, float>.kd",
        "vectorized_layer_norm_kernel<c10::Half, float> [clone .kd]",
        "vectorized_layer_norm_kernel<c10::Half, flo",
    ],
)
def test_spellings_of_one_kernel(name: str) -> None:
    kind = classify_name(name)
    assert (kind.category, kind.precision) == ("normalization", "fp16")


def test_return_types_and_suffixes() -> None:
    gemv = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float>(int)"
    assert category(gemv) == "gemm"
    assert category("gemm_kernel[SIMD32 {64; 1; 1} {16; 16; 1}]") == "gemm"
    assert category("void cutlass::Kernel (cutlass_70_wmma_tensorop_s161616gemm_f16_16x16_64x2Params)") == "gemm"


def test_cut_names_fall_back_on_what_is_left() -> None:
    assert category("multi_tensor_apply_kernel") == "elementwise"
    assert category("void at::native::vectorized_elementwise_kernel<4, at::native::...") == "elementwise"


def test_one_rocprim_kernel_runs_every_algorithm() -> None:
    trampoline = "void rocprim::detail::trampoline_kernel<rocprim::default_config, rocprim::detail::{}<float> >(int)"
    assert category(trampoline.format("wrapped_scan_config")) == "reduction"
    assert category(trampoline.format("radix_sort_onesweep_config")) == "sort_topk"
    assert category(trampoline.format("partition_config_selector")) == "other"


def test_collectives_whose_names_tell_no_type() -> None:
    assert classify_name("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)").precision == "unknown"
    assert classify_name("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)").precision == "unknown"
    assert category("void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)") == "communication"
    assert category("void deep_ep::intranode::dispatch<2, 768, 8192>(int4*)") == "communication"


def test_work_beside_attention_and_collectives_is_neither() -> None:
    assert category("build_attention_mask_kernel") != "attention"
    assert category("add_relative_attention_bias_kernel") == "elementwise"
    assert category("max_reduce_scatter_grad_kernel") != "communication"


def test_a_product_that_waits_for_its_operands_is_a_product() -> None:
    assert category("kernel_consumer_all_gather_gemm") == "gemm"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("triton_poi_fused_addmm_gelu_view_3", "activation"),
        ("triton_poi_fused_add_addmm_2", "elementwise"),
        ("triton_poi_fused_convolution_0", "elementwise"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10", "copy_layout"),
        ("triton_poi_fused_all_to_all_single_clone_view_0", "copy_layout"),
        ("triton_tem_fused_addmm_2", "gemm"),
        ("triton_tem_fused_convolution_2", "convolution"),
        ("triton_per_fused_add_native_layer_norm_3", "normalization"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_4", "normalization"),
        ("triton_poi_fused__to_copy_add_mean_mul_rsqrt_pow_rsqrt_4", "normalization"),
        ("triton_red_fused_mean_relu_4", "reduction"),
        ("triton_poi_fused_0", "triton_fused_other"),
        ("triton__0d1d2d", "triton_fused_other"),
    ],
)
def test_inductor_names_list_neighbours(name: str, expected: str) -> None:
    assert category(name) == expected


def test_user_kernels_known_by_name_alone() -> None:
    assert [category("_permute_kernel"), category("kernel_mha"), category("fused_moe_kernel")] == [
        "moe",
        "attention",
        "moe",
    ]
