"""Products in fp32 on CUDA cores, on a device that has something faster."""

from __future__ import annotations

from analyze.findings.finding import Outcome, Passed
from analyze.findings.rule import Case, Rule
from analyze.findings.words import slower_products


def check(case: Case) -> Outcome:
    """What tensor cores would save."""
    if case.measures.savings.scenario("asked-precision"):
        return Passed(RULE.id, "told by precision-not-used")
    return slower_products(case, RULE, "FP32 GEMMs leave tensor cores idle", "in fp32 on CUDA cores", _CHANGES)


_CHANGES = {"bf16": "autocast to bfloat16", "fp16": "autocast to float16, in training with a GradScaler"}


RULE = Rule(
    id="fp32-gemm",
    asks="Do products run in fp32 on CUDA cores?",
    limit=0.01,
    what="GEMMs or convolutions run in fp32 without tensor cores, though the GPU computes faster in TF32 or half.",
    why="Tensor cores multiply up to sixteen times as fast as CUDA cores on the same chip.",
    fix='torch.set_float32_matmul_precision("high"), cudnn.allow_tf32, or autocast to half precision',
    unless="The model needs full fp32 accuracy: check it. Small products are limited by memory or launches.",
    measured="Replay with these kernels shortened by the ratio of the GPU's dense peaks (gpus.toml): an upper bound.",
    link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    check=check,
    costs=("fp32-products",),
)
