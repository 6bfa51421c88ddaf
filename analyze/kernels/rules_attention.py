"""Rules for fused attention and for the scans of linear attention and state space models.

They stand before softmax, normalisation and GEMM because attention kernels carry all three words in their templates,
and anchor on `flash_fwd`, `flash::` and the like: `flashinfer` alone also hosts GEMM, normalisation and sampling.
"""

from __future__ import annotations

from analyze.kernels.rule import NameRule

HELPER_RULES: tuple[NameRule, ...] = (
    NameRule(
        "attention",
        "flash_attention_helper",
        r"flash\w*(bwd|fwd|splitkv|attn)\w*(preprocess|postprocess|combine|convert_?dq|dot_do_o|metadata)|"
        r"prepare_varlen|get_mla_metadata|flash::flash(fwd|bwd)\w*(combine|preprocess|postprocess)",
        (
            "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8> > > >",
            "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, float>(float)",
            "void flash::flash_bwd_convert_dq_kernel<float>",
            "flash::prepare_varlen_num_blocks_kernel(int)",
        ),
        scope="text",
        tensor_core="no",
    ),
    NameRule(
        "attention",
        "attention_reduction",
        r"(paged_attention|attn|attention|mla|mha|fmha|pa|sdpa|flash|decode_att)_(\w+_)?(reduce|merge|"
        r"combine|preprocess|postprocess|split_reduce)(_|$)|"
        r""
        r"reduce_segments|merge_(attn_)?states?(_|$)|(^|_)state_merge|(^|_)lse(_|$)|bwd_preprocess|"
        r"splitkv_combine|"
        r"persistent_variable_length_merge|bwd_dq_dk_dv_convert|fmha_bwd_(dot_do_o|convert_dq)|"
        r"fmha_fwd_splitkv_combine|decode_softmax_reduce_?v|fwd_kernel_stage2",
        (
            "void vllm::paged_attention_v2_reduce_kernel<__half, 128, 128, 512>",
            "merge_attn_states_kernel",
            "_bwd_preprocess",
            "_fwd_kernel_stage2",
        ),
        scope="words",
        tensor_core="no",
    ),
    NameRule(
        "attention",
        "plan",
        r"(attn|attention|mla|flash|fmha|mha)_(\w+_)?(plan|metadata|schedule|tile_count)(_|$)",
        ("compute_attn_metadata_kernel", "mla_decode_metadata"),
        scope="words",
        tensor_core="no",
    ),
)

FUSED_RULES: tuple[NameRule, ...] = (
    # The 16 bits in these names are bf16 as often as fp16.
    NameRule(
        "attention",
        "cudnn_sdpa",
        r"^cudnn_generated_\w*sdpa_\w*f16",
        ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3",),
        precision="unknown",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "flash_attention",
        r"\bflash::|flash_(fwd|bwd)|flash_?attn|flash_?attention|flash_?mla|compute_attn_ws|"
        r"flash_decod|(^|::)hopper_flash",
        (
            "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::half_t>, false>",
            "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > >",
            "_flash_attn_fwd_kernel",
            "flash_mla_sparse_fwd_kernel",
        ),
        scope="text",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "memory_efficient",
        r"fmha_cutlass[fb]_f32_\w*sm(50|70|75)|fmha_cutlass[fb]_\w*sm50|"
        r"attentionkernel<float, cutlass::arch::sm(50|70|75)",
        (
            "fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::Params)",
            "fmha_cutlassB_f16_aligned_64x64_k64_sm50",
        ),
        scope="text",
        tensor_core="no",
        fused=True,
    ),
    NameRule(
        "attention",
        "fmha",
        r"fmha|attention_?kernel_batched_impl|mem_?eff_?attention|attentionkernel<",
        (
            "fmha_cutlassF_f16_aligned_64x64_rf_sm80",
            "fmhaSm100aKernel_QkvE4m3OBfloat16H128PagedKvCausal",
            "void attention_kernel_batched_impl<AttentionKernel<float, cutlass::arch::Sm80> >",
            "aiter::fmha_fwd_hd128_bf16_causal",
        ),
        scope="text",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "sdpa",
        r"(^|_)sdpa?(_|$)",
        (
            "micro_sdpa",
            "sdp_micro_kernel",
        ),
        scope="words",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "aotriton",
        r"^_*(attn_(fwd|bwd)|bwd_kernel_(dk|dq|fuse))",
        ("attn_fwd.kd", "bwd_kernel_dk_dv"),
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "sage_attention",
        r"sage_?(attn|attention|fwd)",
        ("sageattn_fwd_kernel",),
        precision="int8",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "sage_attention",
        r"(^|_)qk_int\d?\w*_(sv|pv)_f",
        ("qk_int_sv_f16_attn_kernel", "qk_int8_sv_f16_accum_f32_attn"),
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "flashinfer_decode",
        r"(batch|single)_decode_with(_\w+)?_kv_cache",
        ("void flashinfer::SingleDecodeWithKVCacheKernel<flashinfer::PosEncodingMode>",),
        scope="words",
        tensor_core="no",
        fused=True,
    ),
    NameRule(
        "attention",
        "flashinfer",
        r"(batch|single)_(prefill|decode)_with(_\w+)?_kv_cache|batch_mla|pod_with_kv_cache|"
        r"(prefill|decode)_with_kv_cache|batch_pod",
        ("void flashinfer::SinglePrefillWithKVCacheKernel<flashinfer::KernelTraits<>>",),
        scope="words",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "indexer_logits",
        r"mqa_logits",
        ("void deep_gemm::sm90_fp8_paged_mqa_logits<2u, 64u, 128u>",),
        precision="fp8",
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "mla",
        r"(^|_|::)(mla|mqa|gqa|pa)_(a\d+w\d+|bf16|fp16|fp8|f16|decode|prefill|fwd|bwd|logits|stage\d|"
        r"kernel|sparse)|"
        r""
        r"_mla_",
        (
            "mla_a16w16_qh16_m16x4_n16x1",
            "aiter::pa_bf16_pertokenFp8_gqa8_2tg_4w",
            "pa_fwd_kernel",
        ),
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "mfma_paged",
        r"attention\w*mfma",
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<__half, __half, 16>",),
        tensor_core="yes",
        fused=True,
    ),
    NameRule(
        "attention",
        "natten",
        r"natten|(^|_)na[123]d_(fwd|bwd|forward|backward)|neighborhood_attention",
        ("void natten::cuda::fna::na2d_fwd<float>", "na2d_forward_kernel"),
        scope="words",
        tensor_core="unknown",
        fused=True,
    ),
    NameRule(
        "attention",
        "deformable",
        r"ms_deform(able)?_(attn|attention|im2col|col2im)|deformable_(col2im|im2col)_gpu_kernel_shm",
        ("ms_deformable_im2col_gpu_kernel<float>",),
        scope="words",
        tensor_core="no",
        fused=True,
    ),
    NameRule(
        "attention",
        "attention",
        r"^(?!.*(masks?(_|$)|residual|transpose|add_\w*bias))(.*_)?"
        r"(attn|attention|mha|gqa|mqa|mla|sdpa|flash_decode|attend)(_|$|\d)|"
        r"varlen_prefill|"
        r"^(fwd|bwd)_kernel(_(fp8|int8\w*|no_prompt_cache|token_att\w*|with_v\w*|alibi|inner|dkv|dq))?$|"
        r"attnres|(^|_)hstu_|"
        r"(^|_)d(q|k|v|q_?dk_?dv|k_?dv|k_?dv_?dq)_(inner|causal|noncausal|kernel)|"
        r"(^|_)neighborhood_(?!mask)|(^|_)nsa_|decode_att_|fwd_(grouped_)?kernel_stage1|"
        r"pagedattention|selfattn|ring_attn",
        (
            "kernel_unified_attention_2d",
            "vllm::paged_attention_v1_kernel<float>",
            "_varlen_prefill_kernel",
            "void fastertransformer::mmha::masked_multihead_attention_kernel<float>",
            "_fwd_grouped_kernel_stage1",
        ),
        scope="words",
        tensor_core="unknown",
        fused=True,
    ),
)

SCAN_RULES: tuple[NameRule, ...] = (
    NameRule(
        "attention",
        "state_space",
        r"selective_(scan|state)|(^|_)ssd?_(scan|chunk|state|fwd|bwd)|mamba|"
        r"chunk_(scan|state|cumsum)_|state_passing|(^|_)ssm_",
        (
            "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<32, 4> >",
            "_chunk_scan_fwd_kernel",
            "_state_passing_fwd_kernel",
        ),
        scope="words",
        tensor_core="unknown",
        fused=True,
    ),
    NameRule(
        "attention",
        "linear_attention",
        r"delta_rule|(^|_)(kda|gdn|gla|ssu|wkv)(_|$)|"
        r"(^|_)(gla|gdn|kda|rwkv\d?|wkv\d?|retention|hgrn|lightning|linear_attn|linear_attention|"
        r"simple_gla|deltanet)_(\w+_)?(fwd|bwd|attn|attention|chunk|forward|backward|kernel)|"
        r""
        r"(^|_)chunk_(\w+_)?(fwd|bwd|kernel)_|fused_recurrent|recompute_w_u|solve_tril|merge_16x16|"
        r"chunk_local_cumsum|prepare_wy|device_kernel_flat_kernel|(^|_)wkv\d?(_|$)|"
        r"(^|_)(parallel|chunkwise)_(\w+_)?(fwd|bwd)|wy_repr|(^|_)wu_(fwd|bwd)",
        (
            "chunk_gated_delta_rule_fwd_kernel_h",
            "fused_recurrent_gated_delta_rule_fwd_kernel",
            "chunk_fwd_kernel_o",
            "recompute_w_u_fwd_kernel",
            "kernel_forward_wkv<float>",
        ),
        scope="words",
        tensor_core="unknown",
        fused=True,
    ),
)

ATTENTION_RULES: tuple[NameRule, ...] = HELPER_RULES + FUSED_RULES + SCAN_RULES
