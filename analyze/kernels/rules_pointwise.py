"""Rules for optimisers, activations and elementwise work, the last to be tried.

They are tried on the template arguments too: `vectorized_elementwise_kernel<...>` is only a wrapper, and the functor
in it decides.
"""

from __future__ import annotations

from analyze.kernels.rule import NameRule

ROPE_RULES: tuple[NameRule, ...] = (
    NameRule(
        "elementwise",
        "rope",
        r"rotary|(^|_)(fused_)?rope(_|$)|apply_rot|rope(?=_)|(^|_)mrope",
        (
            "void vllm::rotary_embedding_kernel<c10::Half, true>",
            "_rope_kernel",
            "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128>",
        ),
        scope="words",
    ),
)

OPTIMIZER_RULES: tuple[NameRule, ...] = (
    NameRule(
        "optimizer",
        "fused_optimizer",
        r"(^|_)(fused_)?(adamw?|adagrad|adam_?math|sgd|lamb\d?|lars|novograd|lion|rmsprop|adafactor|"
        r"adadelta|adamax|muon|shampoo|adam_?w?_?functor)(_|$|\d)|"
        r""
        r"fused_?optimi|(^|_)optimizer_(update|step|precondition)|(^|_)kpreconditionoptimizer|"
        r"(^|_)koptimizer\w*|"
        r"(optimizer|precondition_optimizer)_?(static|\d+)|lamb_?stage",
        (
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, int> >",
            (
                "void at::native::multi_tensor_apply_kernel<at::native::FusedOptimizerTensorListMetadata<4>, "
                "at::native::FusedAdamMathFunctor<float, 4> >"
            ),
            "void kOptimizerStatic8bit2StateBlockwise<float, 0>",
        ),
        scope="all_words",
        fused=True,
    ),
)

ACTIVATION_RULES: tuple[NameRule, ...] = (
    NameRule(
        "activation",
        "gated",
        r"(act|silu|gelu|relu|swish|gelu_\w+)_?(and|n)_?mul|swi_?glu|ge_?glu|re_?glu|(^|_)glu(_|$)|"
        r"gated_(act|gelu|silu)|(silu|gelu|swish)_mul|bias_(act|gelu|silu|swiglu|relu)",
        (
            "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16> >",
            "_swiglu_fwd_kernel",
            "fused_bias_gelu",
        ),
        scope="all_words",
        fused=True,
    ),
    NameRule(
        "activation",
        "activation",
        r"(^|_)(gelu|silu|swish|relu6?|leaky_?relu|prelu|rrelu|elu|selu|celu|mish|tanh|sigmoid|"
        r"log_?sigmoid|softplus|softsign|soft_?shrink|hard_?(shrink|swish|tanh|sigmoid)|threshold|"
        r"quick_?gelu|activation|activate|act)(_|\d|$|cuda|kernel|erf|functor)",
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, "
                "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda(float)#1}>"
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, "
                "at::native::silu_kernel(at::TensorIteratorBase&)::{lambda(float)#1}>"
            ),
            (
                "void at::native::elementwise_kernel<128, 2, "
                "at::native::threshold_kernel_impl<float>(at::TensorIterator&)>"
            ),
            "void at::native::vectorized_elementwise_kernel<4, at::native::leaky_relu_kernel(at::TensorIteratorBase&)>",
        ),
        scope="all_words",
    ),
    NameRule(
        "activation",
        "activation",
        r"(^|_)miopen_?(active|neuron)|activation_(fw|bw)|cudnn.*activation",
        ("MIOpenActiveFwdLite",),
        scope="words",
    ),
)

ELEMENTWISE_RULES: tuple[NameRule, ...] = (
    NameRule(
        "elementwise",
        "foreach",
        r"multi_?tensor_?apply|(binary|unary|pointwise|ternary)_?op_?(list|scalar|functor)|"
        r"multi_tensor_(scale|axpby|unscale)",
        (
            (
                "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<1>, "
                "at::native::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>"
            ),
            "multi_tensor_apply_kernel",
        ),
        scope="all_words",
    ),
    NameRule(
        "elementwise",
        "pointwise",
        r"elementwise|element_?wise|pointwise|"
        r"(^|_)(fill\w*|add|sub|mul|div|axpy|axpby|scal|scale\w*|where|arange|range|linspace|iota|"
        r"compare\w*|masked_fill|clamp\w*|pow\w*|exp|log|sqrt|rsqrt|abs|neg|sin|cos|bias|set|ones|zeros?|"
        r"clear|memset|reset\w*|zero\w*|init\w*|\w*finite\w*|offsets?|cu_seq_?lens|seq_?lens|lerp|"
        r"addc(mul|div)|mask\w*|for_?each|parallel_for|transform|triu|tril|eltwise|op_?tensor\w*|sum_add|"
        r"residual|accumulate|increment|advance|amp_\w*|unary|binary|plus|multiplies|polar|eye|diag\w*)"
        r"(_|\d|$)|"
        r""
        r"functor|op(_?\dd)?_?tensor|miopen_?set|sub_?tensor_?op|add_?func|scale_?packed|addbias",
        (
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
                "std::array<char*, 3ul> >"
            ),
            "void cudnn::ops::scalePackedTensor_kernel<float, float>",
            "SubTensorOpWithScalar1d",
            "vectorized_elementwise_kernel",
            "void scal_kernel<float, float, 1, false, 6>",
        ),
        scope="all_words",
    ),
    NameRule(
        "reduction",
        "reduction",
        r"(^|_)(reduc\w*|sum|mean|max|min|argmax|argmin|amax|amin|norm|var|std|prod|any|all|logsumexp|"
        r"dbias|dgamma|dbeta|loss|accuracy|count\w*)(_|\d|$)",
        ("void reduce_sum_kernel<float>", "argmax_kernel", "row_sum"),
        scope="words",
    ),
    NameRule(
        "embedding_gather",
        "index",
        r"(^|_)(index\w*|indices|lookup\w*|embed\w*|select)(_|$)",
        ("lookup_table_kernel", "compute_position_indices"),
        scope="words",
    ),
    NameRule(
        "copy_layout",
        "copy",
        r"(^|_)(copy\w*|cat|concat\w*|move|transfer|load|store|buffer)(_|$)|copy",
        ("block_store_kernel",),
        scope="words",
    ),
)

POINTWISE_RULES: tuple[NameRule, ...] = OPTIMIZER_RULES + ACTIVATION_RULES + ELEMENTWISE_RULES
