"""Rules for gathering, embedding and sorting."""

from __future__ import annotations

from analyze.kernels.rule import NameRule

SORT_RULES: tuple[NameRule, ...] = (
    NameRule(
        "sort_topk",
        "radix_sort",
        r"radix_?sort|onesweep|merge_?sort|bitonic_?sort|block_?sort|segmented_?sort|"
        r"(^|_)(sort|argsort|sorting|sort_kernel|sort_by_key)(_|$)|sort_?kv|block_merge",
        (
            ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, float, int>::Policy800>"),
            "onesweep_iteration_kernel",
            "void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, long>",
            "at::native::xpu::SegmentedRadixSortPairsDownsweepFunctor",
        ),
        scope="words",
    ),
    NameRule(
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

EMBEDDING_RULES: tuple[NameRule, ...] = (
    NameRule(
        "embedding_gather",
        "fbgemm",
        r"split_embedding|"
        r"fbgemm\w*::\w*(permute|embedding|bucketize|tbe|jagged|index|lxu|lru|segment)|"
        r"bounds_check_indices|(^|_|::)(tbe|lxu_cache|l[rf]u_cache)_|int_nbit_split_embedding|"
        r"permute_(1d|2d|indices|multi_embs)|bucketize|jagged_\w+|linearize_cache|"
        r"batched_unary_embedding|(^|_|::)ssd_cache",
        (
            "void split_embedding_codegen_forward_unweighted_kernel<float, float, long>",
            "void fbgemm_gpu::permute_2D_data_kernel<int>",
            "void fbgemm_gpu::_block_bucketize_sparse_features_cuda_kernel2<float>",
        ),
    ),
    NameRule(
        "elementwise",
        "fbgemm",
        r"fbgemm_gpu::_?(offsets_range|range)",
        ("void fbgemm_gpu::_offsets_range_cuda_kernel<long>",),
    ),
    NameRule(
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
    NameRule(
        "embedding_gather",
        "index",
        r"index_?elementwise_kernel|scatter_?gather|index_?func|gpu_index_kernel|index_?select|"
        r"index_?(put|copy|fill|add|get|reduce)|indexing_backward|indexkernel|"
        r"(?<!all)(?<!all_)gather|(?<!reduce)(?<!reduce_)scatter|take_kernel|masked_(select|scatter)|"
        r"repeat_interleave|index_?kernel|slot_mapping|kv_indices|one_?hot",
        (
            (
                "void at::native::index_elementwise_kernel<128, 4, "
                "at::native::gpu_index_kernel<at::native::index_kernel_impl<> > >"
            ),
            (
                "void at::native::_scatter_gather_elementwise_kernel<128, 8, "
                "at::native::_cuda_scatter_gather_internal_kernel<true, float> >"
            ),
            "void at::native::indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>",
            "void at::native::vectorized_gather_kernel<16, long>",
            "void at::native::indexing_backward_kernel<float, 4>",
            "create_flashinfer_kv_indices_triton",
            "compute_slot_mapping_kernel",
        ),
        scope="text",
    ),
)
