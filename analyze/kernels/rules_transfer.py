"""Rules for copies by the runtime and for communication between devices.

Communication is looked for first: collective kernels carry words such as Sum, reduce and scatter, and a collective
taken for computation would falsify the device time ledger.
"""

from __future__ import annotations

from analyze.kernels.rule import NameRule

MEMORY_RULES: tuple[NameRule, ...] = (
    NameRule(
        "memcpy",
        "runtime",
        r"^\s*memcpy\b",
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)"),
    ),
    NameRule("memset", "runtime", r"^\s*memset\b", ("Memset (Device)",)),
    NameRule(
        "memcpy",
        "runtime",
        r"^copy(host|device)to(host|device)$|^(hip|cuda|cu|musa)memcpy|^zecommandlistappendmemorycopy|"
        r"memcpyasync|^urenqueuemem\w*(copy|read|write)",
        ("CopyHostToDevice", "hipMemcpyDtoDAsync", "zeCommandListAppendMemoryCopy(M2D)"),
    ),
    NameRule(
        "memset",
        "runtime",
        r"^(hip|cuda|cu|musa)memset|^zecommandlistappendmemoryfill|^urenqueueusmfill",
        ("hipMemsetD8", "zeCommandListAppendMemoryFill"),
    ),
    NameRule(
        "memcpy",
        "rocm_blit",
        r"__amd_rocclr_copy(buffer|image)",
        ("__amd_rocclr_copyBuffer.kd", "__amd_rocclr_copyBufferAligned"),
    ),
    NameRule("memset", "rocm_blit", r"__amd_rocclr_fill(buffer|image)", ("__amd_rocclr_fillBufferAligned.kd",)),
    NameRule(
        "memcpy",
        "sycl",
        r"usm_?mem_?cpy|__usmmemcpy|sycl\w*memcpy",
        ("_ZTSZZN4sycl3_V16detail14__usmmemcpy_2dEE",),
        scope="text",
    ),
)

_COLLECTIVE = (
    r"all_?reduce|all_?gather(?!_scatter)|reduce_?scatter(?!_grad)|all_?to_?all|all_?2_?all|send_?recv|"
    r"collective_permute"
)

COMMUNICATION_RULES: tuple[NameRule, ...] = (
    NameRule(
        "communication",
        "nccl",
        r"^(nccl|rccl)\w*kernel|^nccl[a-z]*(allreduce|reduce|broadcast|sendrecv|allgather)|^oncclkernel",
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
            "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
            "ncclSymkDevKernel_AllGather_LL",
            "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        ),
    ),
    NameRule(
        "communication",
        "msccl",
        r"msccl(pp)?",
        ("mscclKernel_Sum_half_LL128_true", "void mscclpp::allreduceAllToAll<float>(float*)"),
    ),
    NameRule(
        "communication",
        "oneccl",
        r"oneccl|(^|::|_)ccl(::|_)|\bccl_(kernel|comm)",
        ("oneccl_allreduce_large_kernel<half>", "ccl::v1::ring_exchange"),
        scope="text",
    ),
    NameRule(
        "communication",
        "deep_ep",
        r"deep_ep::|(^|::)ep::(cuda::)?(inter|intra)node|"
        r"(inter|intra)node(_ll)?::(dispatch|combine|notify|cached_notify)|"
        r"^(cached_)?notify_(dispatch|combine)$|^(hybrid_)?(dispatch|combine)(_impl)?$",
        (
            "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int4*)",
            "deep_ep::internode_ll::clean_low_latency_buffer",
        ),
    ),
    NameRule(
        "communication",
        "nvshmem",
        r"nvshmem|rocshmem|(^|_|:)shmem_|userbuffers|(^|_)ub_(allreduce|reducescatter|allgather)",
        ("nvshmemi_transfer_barrier_kernel", "userbuffers_fp16_sum_inplace_gpu_rr"),
    ),
    NameRule(
        "communication",
        "custom_all_reduce",
        r"cross_device|multimem|(^|_|::|push)(one|two|2)_?shot|rsag|quick_?reduce|lamport|"
        r"(^|_|::)(1|2)stage_all_?reduce|symm_?mem",
        (
            "void vllm::cross_device_reduce_2stage<__half, 4>(vllm::RankData*)",
            "multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>",
            "void trtllm_allreduce::oneShotLamport<float>",
        ),
        scope="name",
    ),
    NameRule(
        "communication",
        "expert_parallel",
        r"(^|_)(ep|moe|all2all|a2a|pplx|mori)_(\w*_)?(dispatch|combine)_(intra|inter|low|send|recv|"
        r"kernel_ll|all)|"
        r""
        r"moe_(comm|a2a)|(^|_)(pplx|mori)_",
        ("EpDispatchIntraNodeKernel<float>", "mori::moe::EpCombineInterNodeKernel", "moeA2ADispatchKernel"),
        scope="words",
    ),
    NameRule(
        "communication",
        "collective",
        rf"^(?!.*(gemm|matmul))(.*_)?({_COLLECTIVE})(_|$|\d)",
        (
            "void tensorrt_llm::kernels::allReduceFusionKernel<__half>",
            "allreduce_rms_fusion_kernel<bf16>",
            "reduce_scatter_kernel",
            "all-to-all-start",
        ),
        scope="words",
    ),
    NameRule(
        "communication",
        "synchronisation",
        r"^(?!.*(gemm|matmul))(.*_)?(barrier(_\w+)?|\w*halos?\w*|a2a|(wait|send)_signal\w*|(remote|ring)"
        r"_push\w*|(put|wait|get)_signal(_kernel)?|p2p_(copy|send|recv)|peer_(copy|barrier)|"
        r"system_barrier)(_|$)",
        ("barrier_kernel(unsigned int**, int)", "put_signal_kernel(unsigned int**)"),
        scope="words",
    ),
)
