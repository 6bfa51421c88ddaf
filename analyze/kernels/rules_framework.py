"""Rules for kernels of frameworks and primitive libraries: decided by the functor, never by the wrapper around it."""

from __future__ import annotations

from analyze.kernels.rule import Rule

EMBEDDING_RULES: tuple[Rule, ...] = (
    Rule(
        "embedding_gather",
        "fbgemm",
        r"split_embedding|"
        r"fbgemm\w*::\w*(permute|embedding|bucketize|tbe|jagged|index|lxu|lru|segment)|"
        r"bounds_check_indices|(^|_|::)(tbe|lxu_cache|lru_cache)_|int_nbit_split_embedding|"
        r"permute_(1d|2d|indices|multi_embs)|bucketize|jagged_\w+|linearize_cache|"
        r"batched_unary_embedding|(^|_|::)ssd_cache",
        (
            "void split_embedding_codegen_forward_unweighted_kernel<float, float, long>",
            "void fbgemm_gpu::permute_2D_data_kernel<int>",
            "void fbgemm_gpu::_block_bucketize_sparse_features_cuda_kernel2<float>",
        ),
    ),
    Rule(
        "elementwise",
        "fbgemm",
        r"fbgemm_gpu::_?(offsets_range|range)",
        ("void fbgemm_gpu::_offsets_range_cuda_kernel<long>",),
    ),
    Rule(
        "embedding_gather",
        "embedding",
        r"embedding(?!.*(rotary|rope))|partial_?segments|partials_per_segment|sum_and_scatter|"
        r"segment_offset|compute_grad_weight",
        (
            "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, long>",
            "compute_num_of_partial_segments",
            "krn_partials_per_segment",
            "void at::native::embedding_backward_feature_kernel<float>",
        ),
        scope="name",
    ),
    Rule(
        "embedding_gather",
        "index",
        r"index_?elementwise_kernel|scatter_?gather|index_?func|gpu_index_kernel|index_?select|"
        r"index_?(put|copy|fill|add|get|reduce)|indexing_backward|indexkernel|"
        r"gather(?!_\w*(all|logits))|scatter(?!_reduce_gemm)|take_kernel|masked_(select|scatter)|"
        r"repeat_interleave|index_?kernel|slot_mapping|kv_indices|one_?hot",
        (
            "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<> > >",
            "void at::native::_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal_kernel<true, float> >",
            "void at::native::indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>",
            "void at::native::vectorized_gather_kernel<16, long>",
            "void at::native::indexing_backward_kernel<float, 4>",
            "create_flashinfer_kv_indices_triton",
            "compute_slot_mapping_kernel",
        ),
        scope="text",
    ),
)

NAMED_RULES: tuple[Rule, ...] = (
    Rule(
        "copy_layout",
        "kv_cache",
        r"(^|_)(reshape_and_cache|write_packed_qkv|concat_and_cache|append_paged_kv|kv_cache_(store|update|copy|scatter)|(store|write|append|update|copy|set|insert)_(\w+_)?kv(_\w+)?|copy_blocks|swap_blocks|gather_cache|cp_gather_cache|kvcache|transfer_kv|kv_(store|append|copy|write))(_|$|\w)",
        (
            "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>",
            "void flashinfer::AppendPagedKVCacheKernel<128, 8>",
            "concat_and_cache_mla_kernel",
            "set_mla_kv_buffer_kernel",
        ),
        scope="words",
    ),
    Rule(
        "copy_layout",
        "layout",
        r"::(transpose|copy|permute|clone|cast|pad)(_?kernel)?$",
        ("void fused_gemm::utils::transpose<512, 128>",),
    ),
    Rule(
        "other",
        "tensor_maps",
        r"tensor_?maps?(_|$)",
        ("fill_tensormaps_kernel",),
        scope="words",
    ),
)

SORT_RULES: tuple[Rule, ...] = (
    Rule(
        "sort_topk",
        "radix_sort",
        r"radix_?sort|onesweep|merge_?sort|bitonic_?sort|block_?sort|segmented_?sort|"
        r"(^|_)(sort|argsort|sorting|sort_kernel|sort_by_key)(_|$)|sort_?kv|block_merge",
        (
            "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, float, int>::Policy800>",
            "onesweep_iteration_kernel",
            "void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, long>",
            "at::native::xpu::SegmentedRadixSortPairsDownsweepFunctor",
        ),
        scope="words",
    ),
    Rule(
        "sort_topk",
        "topk",
        r"top_?k(?!_?top_?p)|radix_?(select|find_?kth)|mbtopk|kth_?value|gather_?top|digit_?counts",
        (
            "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>",
            "void at::native::mbtopk::radixFindKthValues<float>",
            "topk_kernel",
        ),
    ),
)

RANDOM_RULES: tuple[Rule, ...] = (
    Rule(
        "rng",
        "dropout",
        r"dropout",
        (
            "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>",
            "void masked_scale_dropout_kernel<float>",
        ),
        fused=True,
    ),
    Rule(
        "sampling_other",
        "sampling",
        r"top_?k?_?top_?p|top_?p_|min_?p_|sampl(e|ing)_(from|kernel|top|probs?|logits)|"
        r"rejection_?sampl|"
        r"(^|_)(penalt(y|ies)|logits_processor|sampling|speculative|gumbel_sample|greedy_sample)(_|$)|"
        r"beam_search|(^|_)spec_decode",
        (
            "void flashinfer::sampling::TopPSamplingFromProbKernel<1024>",
            "rejection_greedy_sample_kernel",
            "apply_repetition_penalties_kernel",
            "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>",
        ),
        scope="words",
    ),
    Rule(
        "rng",
        "distribution",
        r"distribution_(elementwise|nullary|binary|unary)|"
        r"(^|_|::)(philox|curand|rocrand|mtgp32|xorwow|generate_seed)|"
        r"(normal|uniform|bernoulli|exponential|cauchy|geometric|log_normal|random|randint|multinomial|poisson|gamma|gumbel)_?(kernel|and_transform|distribution|sampl\w*|fill)|"
        r"randperm|sample_multinomial",
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>",
            "randperm_handle_duplicate_keys_kernel",
        ),
    ),
)

COPY_RULES: tuple[Rule, ...] = (
    Rule(
        "copy_layout",
        "cat",
        r"cat_?array_?batched|"
        r"(^|_)(cat|concat\w*|stack|split_with_sizes_copy\w*|chunk_cat\w*|unbind|chunk_cat)(_|$)",
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<float, unsigned int, 2, 128, 1>",
            "at::native::detail::split_with_sizes_copy_out_contiguous_no_cast_kernel",
        ),
        scope="words",
    ),
    Rule(
        "copy_layout",
        "copy",
        r"direct_copy_kernel|copy_device_to_device|float\w*_copy_kernel|copyfunctor|copy_kernel_cuda|"
        r"memcpy_k",
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}> >",
            "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}>",
        ),
        scope="text",
    ),
    Rule(
        "copy_layout",
        "layout",
        r"(^|_)(transpose\w*|permute\w*|permutation|contiguous|pad(ding)?\d?d?|(reflection|replication|constant|zero)_pad\w*|flip|roll\w*|narrow|unfold|fold|pixel_(un)?shuffle|channel_shuffle|copy|copy_\w*|clone|memcpy|cast|convert\w*|to_copy|pack|unpack|interleave|deinterleave|space_to_depth|reorder|reshape|slice|split\w*qkv)(_|$)",
        (
            "void at::native::(anonymous namespace)::reflection_pad2d_out_kernel<float>",
            "void transpose_readWrite_alignment_kernel<float, float, 1>",
            "_copy_tensor_kernel",
            "void at::native::roll_cuda_kernel<float>",
        ),
        scope="words",
    ),
)

REDUCTION_RULES: tuple[Rule, ...] = (
    Rule(
        "reduction",
        "aten_reduce",
        r"(^|::)(xpu::)?reduce(_?1block)?_?kernel|lpnorm|multi_?tensor_?l2|l2norm_?functor|lpmax|"
        r"norm_?two_?ops|lp_norm",
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >",
            "void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float, float>",
            "void multi_tensor_apply_kernel<TensorListMetadata<1>, L2NormFunctor<float> >",
        ),
        scope="text",
    ),
    Rule(
        "reduction",
        "dot",
        r"(^|::|_)(dot_kernel|reduce_1block_kernel|nrm2_kernel|asum_kernel|iamax_kernel)",
        ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const> > >",),
    ),
    Rule(
        "reduction",
        "scan",
        r"device_?scan|device_?(segmented_?)?reduce|lookback_scan|scan_?(init|state)|"
        r"(inclusive|exclusive)_?(scan|sum)|tensor_kernel_scan|cum_?(sum|prod|max|min)|prefix_?sum|"
        r"(^|_)scan(_|$)|segment_?scan|(^|_)reduce_(config|impl|by_key)|scan_(outer|inner|by_key|impl)|trampoline_kernel_scan|"
        r"histogram|bincount",
        (
            "void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::AgentScanPolicy<128, 15, long> >",
            "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >",
            "void cub::DeviceReduceSingleTileKernel<>",
            "at::native::xpu::SegmentScanKernel",
            "init_lookback_scan_state_kernel",
        ),
        scope="words",
    ),
    Rule(
        "elementwise",
        "loss_backward",
        r"(nll|ctc|cross_?entropy|mse|kl_?div|bce|smooth_l1|huber|margin)_\w*(backward|bwd|grad)",
        (
            "void at::native::nll_loss_backward_reduce_cuda_kernel_2d<float, long>",
            "ctc_loss_backward_collect_gpu_kernel",
        ),
        scope="words",
    ),
    Rule(
        "reduction",
        "loss",
        r"(nll|ctc|cross_?entropy|mse|kl_?div|bce|smooth_l1|huber|multi_?margin|cosine_embedding|triplet)_?(loss)?\w*(forward|fwd|kernel|log_alpha|loss)",
        (
            "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>",
            "void at::native::ctc_loss_log_alpha_gpu_kernel<float, long>",
            "liger_cross_entropy_kernel",
        ),
        scope="words",
    ),
    Rule(
        "elementwise",
        "rocprim",
        r"rocprim.*transform_(config|kernel|impl)",
        (
            "void rocprim::detail::trampoline_kernel<rocprim::default_config, rocprim::detail::transform_config_selector<float> >",
        ),
        scope="text",
    ),
    Rule(
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

OTHER_RULES: tuple[Rule, ...] = (
    Rule(
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
    Rule(
        "pooling",
        "roi",
        r"roi_?(align|pool)",
        ("void roi_align_forward_kernel_impl<float>",),
        scope="words",
    ),
    Rule(
        "other",
        "resampling",
        r"upsampl|interpolat|grid_?sampl|resize|bilinear|bicubic|nearest_?neighbor|affine_grid",
        (
            "void at::native::upsample_bilinear2d_out_frame<float>",
            "void at::native::grid_sampler_2d_kernel<float, int>",
        ),
        scope="words",
    ),
    Rule(
        "other",
        "linear_algebra",
        r"trs[mv]|(^|_)(get|pot|geq|org|orm|sye|hee|ges|get)(rf|rs|ri|qr|mqr|vd|vj|evd|ev)\w*|pivot|"
        r"laswp|cusolver|magma_|ipiv|xxtrf|lu_?(factor|solve)|cholesky|householder|"
        r"(^|_)(qr|svd|syevj?|eigh?|inverse|triangular\w*|jacobi)(_|$)|cusparse|"
        r"(^|_)(csr|csc|coo)(mm|mv|spmm)?(_|$)|spmm|spmv|sddmm",
        (
            "void trsm_batch_left_lower_kernel<float>",
            "void getrf_pivot<double>",
            "void cusolver::potrf_kernel<float>",
            "void laswp_kernel_reverse<float, false>",
            "void cusparse::csrmm_kernel<float>",
        ),
        scope="words",
    ),
    Rule(
        "other",
        "fft",
        r"(^|_)(vector|regular|multi|radix\d*)?_?(cu|roc|hip|vk)?fft(_|$|\d|w)|bluestein|"
        r"(^|_)(ifft|rfft|irfft|stft)(_|$)",
        ("void vector_fft<512u, EPT<8u>, 16u>", "fft_rtc_fwd_len1024", "void regular_fft<float>"),
        scope="words",
    ),
    Rule(
        "other",
        "hadamard",
        r"hadamard",
        ("void fast_hadamard_transform_kernel<fast_hadamard_transform_kernel_traits<>>",),
        scope="words",
    ),
    Rule(
        "other",
        "detection",
        r"(^|_)(nms|non_max_suppression|box_iou|iou)(_|$)",
        ("void nms_kernel_impl<float>",),
        scope="words",
    ),
    Rule(
        "other",
        "search",
        r"search_?sorted|lower_bound|upper_bound|binary_search|(^|_)(set_intersection|hash\w*)(_|$)",
        ("void at::native::searchsorted_cuda_kernel<long, int>",),
        scope="words",
    ),
    Rule(
        "other",
        "wait",
        r"(^|_)(spin|sleep|nanosleep|spin_kernel|noop|empty_kernel|dummy|null_kernel|warmup)(_|$)",
        ("at::cuda::(anonymous namespace)::spin_kernel(long)",),
        scope="words",
    ),
    Rule(
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
