"""Rules for kernels of frameworks and primitive libraries: decided by the functor, never by the wrapper around it."""

from __future__ import annotations

from analyze.kernels.rule import NameRule

NAMED_RULES: tuple[NameRule, ...] = (
    NameRule(
        "sampling_other",
        "sampling",
        r"(^|::)sampling::(?!\w*topk(?!topp))",
        ("void flashinfer::sampling::OnlineSoftmaxMapKernel<128, float>",),
    ),
    NameRule(
        "other",
        "hyper_connections",
        r"^_?mhc_",
        ("_mhc_sinkhorn_fwd_fused",),
    ),
    NameRule(
        "copy_layout",
        "kv_cache",
        r"(^|_)(reshape_and_cache|write_packed_qkv|(con)?cat_and_cache|append_paged_kv|kv_cache_(store|"
        r"update|copy|scatter)|(store|write|append|update|copy|set|insert)_(\w+_)?kv(_\w+)?|copy_blocks|"
        r"swap_blocks|gather_cache|cp_gather_cache|kvcache|transfer_kv|kv_(store|append|copy|write))(_|$|\w)",
        (
            "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>",
            "void flashinfer::AppendPagedKVCacheKernel<128, 8>",
            "concat_and_cache_mla_kernel",
            "set_mla_kv_buffer_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "copy_layout",
        "layout",
        r"::(transpose|copy|permute|clone|cast|pad)(_?kernel)?$",
        ("void fused_gemm::utils::transpose<512, 128>",),
    ),
    NameRule(
        "other",
        "tensor_maps",
        r"tensor_?maps?(_|$)",
        ("fill_tensormaps_kernel",),
        scope="words",
    ),
)

RANDOM_RULES: tuple[NameRule, ...] = (
    NameRule(
        "rng",
        "dropout",
        r"dropout",
        (
            (
                "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, "
                "4, bool>"
            ),
            "void masked_scale_dropout_kernel<float>",
        ),
        fused=True,
    ),
    NameRule(
        "sampling_other",
        "sampling",
        r"top_?k?_?top_?p|top_?p_|min_?p_|sampl(e|ing)_(from|kernel|top|probs?|logits)|"
        r"rejection_?sampl|"
        r"(^|_)(penalt(y|ies)|logits_processor|sampling|speculative|gumbel_sample|greedy_sample)(_|$)|"
        r"beam_search|(^|_)spec_decode",
        (
            "top_p_sampling_kernel",
            "rejection_greedy_sample_kernel",
            "apply_repetition_penalties_kernel",
            "top_k_top_p_sampling_from_probs_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "rng",
        "distribution",
        r"distribution_(elementwise|nullary|binary|unary)|"
        r"(^|_|::)(philox|curand|rocrand|mtgp32|xorwow|generate_seed)|"
        r"(normal|uniform|bernoulli|exponential|cauchy|geometric|log_normal|random|randint|multinomial|"
        r"poisson|gamma|gumbel)_?(kernel|and_transform|distribution|sampl\w*|fill)|"
        r""
        r"randperm|sample_multinomial",
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>",
            "randperm_handle_duplicate_keys_kernel",
        ),
    ),
)

COPY_RULES: tuple[NameRule, ...] = (
    NameRule(
        "copy_layout",
        "cat",
        r"cat_?array_?batched|"
        r"(^|_)(cat|concat\w*|stack|split_with_sizes_copy\w*|chunk_cat\w*|unbind|chunk_cat)(_|$)",
        (
            ("void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<float, unsigned int, 2, 128, 1>"),
            "at::native::detail::split_with_sizes_copy_out_contiguous_no_cast_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "copy_layout",
        "copy",
        r"direct_copy_kernel|copy_device_to_device|float\w*_copy_kernel|copyfunctor|copy_kernel_cuda|"
        r"memcpy_k",
        (
            (
                "void at::native::elementwise_kernel<128, 2, "
                "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::"
                "TensorIteratorBase&)::{lambda(float)#1}> >"
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, "
                "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>"
            ),
        ),
        scope="text",
    ),
    NameRule(
        "copy_layout",
        "layout",
        r"(^|_)(transpose\w*|permute\w*|permutation|contiguous|pad(ding)?\d?d?|(reflection|replication|"
        r"constant|zero)_pad\w*|flip|roll\w*|narrow|unfold|fold|pixel_(un)?shuffle|channel_shuffle|copy|"
        r"copy_\w*|clone|memcpy|cast|convert\w*|to_copy|pack|unpack|(un)?swizzle\w*|swap_first_dims\w*|shift_partition\w*|"
        r"transform(\dd)?_0\d+|unpadding|reindex|\w*cpy\w*|interleave|deinterleave|space_to_depth|"
        r"reorder|reshape|slice|split\w*qkv)(_|$)",
        (
            "void at::native::(anonymous namespace)::reflection_pad2d_out_kernel<float>",
            "void transpose_readWrite_alignment_kernel<float, float, 1>",
            "_copy_tensor_kernel",
            "void at::native::roll_cuda_kernel<float>",
        ),
        scope="words",
    ),
)

REDUCTION_RULES: tuple[NameRule, ...] = (
    NameRule(
        "reduction",
        "aten_reduce",
        r"(^|::)(xpu::)?reduce(_?1block)?_?kernel|lpnorm|multi_?tensor_?l2|l2norm_?functor|lpmax|"
        r"norm_?two_?ops|lp_norm",
        (
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
                "float> > >"
            ),
            "void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float, float>",
            "void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float> >",
        ),
        scope="text",
    ),
    NameRule(
        "reduction",
        "dot",
        r"(^|::|_)(dot_kernel|reduce_1block_kernel|nrm2_kernel|asum_kernel|iamax_kernel)",
        ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const> > >",),
    ),
    NameRule(
        "reduction",
        "scan",
        r"device_?scan|device_?(segmented_?)?reduce|lookback_scan|scan_?(init|state)|"
        r"(inclusive|exclusive)_?(scan|sum)|tensor_kernel_scan|cum_?(sum|prod|max|min)|prefix_?sum|"
        r"(^|_)scan(_|$)|segment_?scan|(^|_)reduce_(config|impl|by_key)|"
        r"scan_(outer|inner|by_key|impl)|trampoline_kernel_scan|"
        r"histogram|bincount",
        (
            ("void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::AgentScanPolicy<128, 15, long> >"),
            "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >",
            "void cub::DeviceReduceSingleTileKernel<>",
            "at::native::xpu::SegmentScanKernel",
            "init_lookback_scan_state_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "elementwise",
        "loss_backward",
        r"(^|_)(nll|ctc|cross_?entropy|mse|kl_?div|bce|smooth_l1|huber|margin|focal|transducer|grpo|ce)"
        r"_\w*(backward|bwd|grad)",
        (
            "void at::native::nll_loss_backward_reduce_cuda_kernel_2d<float, long>",
            "ctc_loss_backward_collect_gpu_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "reduction",
        "loss",
        r"(^|_)(nll|ctc|cross_?entropy|mse|kl_?div|bce|smooth_l1|huber|multi_?margin|cosine_embedding|"
        r"triplet|focal|transducer|grpo|dpo|orpo|jsd|tv_distance|ce)_?(loss)?\w*(forward|fwd|kernel|"
        r"log_alpha|loss)",
        (
            ("void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>"),
            "void at::native::ctc_loss_log_alpha_gpu_kernel<float, long>",
            "liger_cross_entropy_kernel",
        ),
        scope="words",
    ),
    NameRule(
        "elementwise",
        "rocprim",
        r"rocprim.*transform_(config|kernel|impl)",
        (
            (
                "void rocprim::detail::trampoline_kernel<rocprim::default_config, "
                "rocprim::detail::transform_config_selector<float> >"
            ),
        ),
        scope="text",
    ),
    NameRule(
        "other",
        "stream_compaction",
        r"partition_(kernel|config|impl|init)|device_?(select|compact|partition|unique)|"
        r"(^|_)(select_if|unique|nonzero|adjacent_difference|compact\w*)(_|$)|flag_kernel",
        (
            "void cub::DeviceSelectSweepKernel<cub::AgentSelectIfPolicy<128, 10> >",
            "void cub::DeviceCompactInitKernel<int>",
            "partition_kernel",
        ),
        scope="all_words",
    ),
)

OTHER_RULES: tuple[NameRule, ...] = (
    NameRule(
        "pooling",
        "pooling",
        r"pool(ing)?(_|\d|$|fw|bw|forward|backward)|(max|avg|average|adaptive)_?pool|miopen_?pooling|"
        r"mlo_pooling",
        (
            "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, long>",
            "void cudnn::detail::pooling_fw_4d_kernel<float>",
            "mloPoolingG",
            "void at::native::(anonymous namespace)::adaptive_average_pool<float>",
        ),
        scope="words",
    ),
    NameRule(
        "pooling",
        "roi",
        r"roi_?(align|pool)",
        ("void roi_align_forward_kernel_impl<float>",),
        scope="words",
    ),
    NameRule(
        "other",
        "resampling",
        r"upsampl|interpolat|grid_?sampl|resize|bilinear|bicubic|nearest_?neighbor|affine_grid",
        (
            "void at::native::upsample_bilinear2d_out_frame<float>",
            "void at::native::grid_sampler_2d_kernel<float, int>",
        ),
        scope="words",
    ),
    NameRule(
        "other",
        "linear_algebra",
        r"trs[mv]|(^|_)(get|pot|geq|org|orm|sye|hee|ges|get)(rf|rs|ri|qr|mqr|vd|vj|evd|ev)\w*|pivot|"
        r"laswp|cusolver|magma_|ipiv|xxtrf|lu_?(factor|solve)|cholesky|householder|"
        r"(^|_)(qr|svd|syevj?|eigh?|inverse|triangular\w*|jacobi)(_|$)|cusparse|"
        r"(^|_)(csr|csc|coo)_?(sp)?m[mv]|spmm|spmv|sddmm",
        (
            "void trsm_batch_left_lower_kernel<float>",
            "void getrf_pivot<double>",
            "void cusolver::potrf_kernel<float>",
            "void laswp_kernel_reverse<float, false>",
            "void cusparse::csrmm_kernel<float>",
        ),
        scope="words",
    ),
    NameRule(
        "other",
        "fft",
        r"(^|_)(vector|regular|multi|radix\d*)?_?(cu|roc|hip|vk)?fft(_|$|\d|w)|bluestein|"
        r"(^|_)(ifft|rfft|irfft|stft)(_|$)",
        ("void vector_fft<512u, EPT<8u>, 16u>", "fft_rtc_fwd_len1024", "void regular_fft<float>"),
        scope="words",
    ),
    NameRule(
        "other",
        "hadamard",
        r"hadamard",
        ("void fast_hadamard_transform_kernel<fast_hadamard_transform_kernel_traits<>>",),
        scope="words",
    ),
    NameRule(
        "other",
        "detection",
        r"(^|_)(nms|non_max_suppression|box_iou|iou)(_|$)",
        ("void nms_kernel_impl<float>",),
        scope="words",
    ),
    NameRule(
        "other",
        "search",
        r"search_?sorted|lower_bound|upper_bound|binary_search|(^|_)(set_intersection|hash\w*)(_|$)",
        ("void at::native::searchsorted_cuda_kernel<long, int>",),
        scope="words",
    ),
    NameRule(
        "other",
        "wait",
        r"(^|_)(spin|delay|sleep|nanosleep|spin_kernel|noop|empty_kernel|dummy|null_kernel|warmup)(_|$)",
        ("at::cuda::(anonymous namespace)::spin_kernel(long)",),
        scope="words",
    ),
    NameRule(
        "other",
        "recurrent",
        r"(^|_)(lstm|gru|rnn|elem_?wise_?rnn)(_|$)|elementwise_?lstm|rnn_block_persist|persist\w*rnn|"
        r"lstm_cell|gru_cell|elemwiselstm|elemwisernn",
        (
            "void LSTM_elementWise_fp<float, float, float>",
            "void RNN_blockPersist_fp_LSTM<float>",
            "lstm_cell_forward",
        ),
        scope="words",
    ),
)
